#!/usr/bin/env python3
"""Measures `scalide report` on a long run: the seconds of the command, its memory, the size of the page, and the seconds until headless Chromium
has opened it: from the navigation to the second picture after the load event, with all plots.

Usage: report_page.py [--tool TOOL] [--tensors 2000] [--steps 10000] [--every 10] [--repeat 5]
The page should open in 2 s and have at most 20 MB for 2,000 tensors and 10,000 steps. No time fails a test.
"""
import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
from browser import Browser, find_browser  # noqa: E402
from run_files import write_run  # noqa: E402

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", default=str(HERE.parents[1] / "build/generators/scalide"))
    for name, number in (("tensors", 2000), ("steps", 10000), ("every", 10), ("repeat", 5)):
        parser.add_argument(f"--{name}", type=int, default=number)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="scalide-") as folder:
        run = write_run(Path(folder, "run"), options.tensors, options.steps, options.every, ["outlier"], histograms_every=20)
        page = Path(folder, "page.html")
        print(f"run files   {sum(file.stat().st_size for file in run.iterdir()) / 1e6:8.1f} MB")
        start = time.monotonic()
        subprocess.run([options.tool, "report", str(HERE.parent / "tool/two_layers.scl"), str(run), "-o", str(page)], check=True, stdout=subprocess.DEVNULL)
        print(f"command     {time.monotonic() - start:8.1f} s")
        print(f"memory      {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:8.1f} MiB")
        print(f"page        {page.stat().st_size / 1e6:8.1f} MB")
        program = find_browser()
        if not program:
            sys.exit("no time of opening: Chromium is not installed")
        with Browser(program) as browser:
            times = sorted(browser.open(page) for _ in range(options.repeat))
            assert not browser.messages, browser.messages
            print(f"open        {times[len(times) // 2]:8.2f} s (median of {options.repeat}; {times[0]:.2f} to {times[-1]:.2f})")
