#!/usr/bin/env python3
"""Measures how long the five libraries of examples/digits take to generate, each in a process of its own: cold (an empty cache) and warm.

Usage: generation.py [--build BUILD] [--rounds N] [--json FILE]
BUILD is the folder that ./demo filled (build). Warm: the least and the median of N rounds; `cpu` is what the processes computed, which
other programs on the machine change less.
"""
import argparse
import json
import re
import resource
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
NUMERICS = ["f32", "bf16", "f16_scaled", "f8_scaled", "f8_master"]


def generate(build, scratch, numerics):
    """Wall and processor seconds, and the kernels of one library."""
    command = [build / "digits/digits_generator", "build", "digits_step", "--home", build / "install/share/scalide", "--numerics", numerics, "--name",
               f"digits_{numerics}", "--output", scratch / numerics, "--cache", scratch / "cache"]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    kernels, compiled = map(int, re.search(r": (\d+) kernels in \d+ steps, (\d+) compiled", printed).groups())
    return {"wall": wall, "cpu": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, "kernels": kernels, "compiled": compiled}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="scalide-performance-") as scratch:
        cold = {numerics: generate(arguments.build, Path(scratch), numerics) for numerics in NUMERICS}
        warm = {numerics: [] for numerics in NUMERICS}
        for _ in range(arguments.rounds):
            for numerics in NUMERICS:
                warm[numerics].append(generate(arguments.build, Path(scratch), numerics))
    for numerics in NUMERICS:
        assert all(run["compiled"] == 0 for run in warm[numerics])
        walls, processor = [run["wall"] for run in warm[numerics]], [run["cpu"] for run in warm[numerics]]
        rows.append({"numerics": numerics, "kernels": cold[numerics]["kernels"], "compiled": cold[numerics]["compiled"], "cold": cold[numerics]["wall"],
                     "warm_min": min(walls), "warm_median": statistics.median(walls), "warm_cpu": statistics.median(processor)})
    total = {"numerics": "together", **{key: sum(row[key] for row in rows) for key in rows[0] if key != "numerics"}}
    print(f"{'numerics':<12} {'kernels':>7} {'compiled':>8} {'cold s':>8} {'warm s: min':>12} {'median':>8} {'cpu':>8}")
    for row in [*rows, total]:
        print(f"{row['numerics']:<12} {row['kernels']:>7} {row['compiled']:>8} {row['cold']:>8.2f} {row['warm_min']:>12.3f} {row['warm_median']:>8.3f} {row['warm_cpu']:>8.3f}")
    if arguments.json:
        arguments.json.write_text(json.dumps([*rows, total], indent=1) + "\n")


if __name__ == "__main__":
    main()
