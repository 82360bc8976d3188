#!/usr/bin/env python3
"""Runs ctest, and prints every 15 seconds how far it is and about how long it will take, in place of a line for each test that passes.

Usage: run_tests.py BUILD JOBS ARGUMENTS...     ARGUMENTS: of ctest
All other lines of ctest are printed as they are. The status is that of ctest. A test's time is that of its last run in this build folder.
"""
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

#: Seconds of a test that has not run in this build folder, by the first word of its name.
SECONDS = {"training": 300, "fresh": 50, "python": 12, "guarded": 12, "install": 10, "packages": 10, "performance": 20, "docs": 3, "device": 3, "emit": 2,
           "rule": 2, "gpu": 1, "kernel": 0.5}  # fmt: skip
USUAL_SECONDS = 0.2
LISTED = re.compile(r"^ *Test +#\d+: (.*)$")
STARTED = re.compile(r"^ *Start +\d+: (.*)$")
#: Names may contain spaces. Dots fill the line.
FINISHED = re.compile(r"^ *\d+/\d+ Test +#\d+: (.*?) \.*\s*(Passed|\*\*\*\S+) .*sec$")


def estimates(build, command):
    """The seconds of each test that will run."""
    lines = subprocess.run([*command, "-N"], capture_output=True, text=True).stdout.splitlines()
    costs = build / "Testing" / "Temporary" / "CTestCostData.txt"
    known = [line.rsplit(" ", 2) for line in costs.read_text().splitlines()] if costs.exists() else []
    seconds = {words[0]: float(words[2]) for words in known if len(words) == 3 and words[1] != "0"}
    names = [found[1] for line in lines if (found := LISTED.match(line))]
    return {name: seconds.get(name, SECONDS.get(name.split(".")[0], USUAL_SECONDS)) for name in names}


class Progress:
    def __init__(self, waiting, jobs):
        self.waiting, self.jobs, self.count, self.failed = waiting, jobs, len(waiting), 0
        self.start, self.seconds, self.running = time.monotonic(), sum(waiting.values()), {}

    def begin(self, name):
        self.running[name] = time.monotonic()

    def finish(self, name, verdict):
        self.waiting.pop(name, None)
        self.running.pop(name, None)
        self.failed += verdict not in ("Passed", "***Skipped", "***Not")

    def text(self):
        now = time.monotonic()
        begun = sum(min(now - start, self.waiting.get(name, 0)) for name, start in self.running.items())
        elapsed, left = now - self.start, sum(self.waiting.values()) - begun
        done = self.seconds - left
        # Early, little is known about the speed of this machine.
        speed = done / elapsed if done > self.seconds / 20 else self.jobs
        minutes = max(1, round(left / speed / 60))
        return f"  tests: {self.count - len(self.waiting)} of {self.count}, {self.failed} failed, {elapsed:.0f} s so far, about {minutes} min left"


def main():
    build, jobs, command = Path(sys.argv[1]), int(sys.argv[2]), ["ctest", "--test-dir", sys.argv[1], "-j", *sys.argv[2:]]
    progress, ended = Progress(estimates(build, command), jobs), threading.Event()

    def report():
        while not ended.wait(15):
            print(progress.text(), flush=True)

    threading.Thread(target=report, daemon=True).start()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as ctest:
        signal.signal(signal.SIGTERM, lambda *_: ctest.terminate())
        for line in ctest.stdout:
            started, finished = STARTED.match(line), FINISHED.match(line)
            if started:
                progress.begin(started[1])
            if finished:
                progress.finish(*finished.groups())
            if not (started or finished and finished[2] == "Passed"):
                print(line, end="", flush=True)
        ended.set()
    sys.exit(ctest.returncode)


if __name__ == "__main__":
    main()
