#!/usr/bin/env python3
"""Matmuls whose number of rows or columns is a symbol, compared with the same program for a number, and with NumPy (OpenBLAS).

Usage: symbolic_rows.py [--build BUILD] [--rounds N] [--seconds S] [--size K] [NAME ...]
NAME: only the rows whose name contains it. All programs run in turns on one thread, on a K x K matrix. ratio: time of the program for a
number divided by time of the program with the symbol. NumPy computes in f32 and is the rival of the rows in f32 only.

Ratios with K = 1024, EPYC Zen 4, one thread, 2026-11-25, without and with a form for b = 1:
  rows    f32 0.30, 1.00    bf16 0.64, 1.01    f8_master 0.74, 1.01
  columns f32 0.04, 0.99    bf16 0.18, 1.00    f8_master 0.37, 1.00
"""
import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

os.environ.update(OPENBLAS_NUM_THREADS="1")
import numpy as np  # noqa: E402, reads the number of threads

HERE = Path(__file__).resolve().parent
SHAPES = {"rows": ("{b}, {k}", "{k}, {k}", "{b}, {k}"), "columns": ("{k}, {k}", "{k}, {b}", "{k}, {b}")}


def program(name, axis, b, size):
    lhs, rhs, result = (shape.format(b=b, k=size) for shape in SHAPES[axis])
    return f"program {name}(x: f32[{lhs}], w: f32[{rhs}]) -> (y: f32[{result}]) {{\n  y = dot_general(x, w) {{contract: [[1], [0]]}}\n}}\n"


class Ours:
    def __init__(self, build, folder, axis, b, policy, size):
        self.name = f"{axis}_{policy}_{b}"
        self.run, self.folder = build / "tests/performance/run_program", folder / self.name
        source = folder / f"{self.name}.scl"
        source.write_text(program(self.name, axis, b, size))
        subprocess.run([build / "generators/scalide", "build", source, "-n", policy, "--shared", "-o", self.folder], check=True, stdout=subprocess.DEVNULL)

    def microseconds(self, seconds, *symbols):
        command = [self.run, self.folder / f"lib{self.name}.so", self.name, "1", str(seconds), *symbols]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return 1e3 * next(value for key, value in json.loads(printed.splitlines()[-1]).items() if "min" in key)


def numpy_microseconds(axis, b, size, seconds):
    lhs, rhs = (np.ones((b, size), np.float32), np.ones((size, size), np.float32)) if axis == "rows" else (np.ones((size, size), np.float32), np.ones((size, b), np.float32))
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        lhs @ rhs
        best = min(best, time.perf_counter() - start)
    return 1e6 * best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    print(f"{'name':<24} {'number us':>10} {'symbol us':>10} {'ratio':>6} {'NumPy us':>9}")
    with tempfile.TemporaryDirectory(prefix="scalide-performance-") as folder:
        for axis in SHAPES:
            for policy in ("f32", "bf16", "f8_master"):
                symbolic = Ours(arguments.build, Path(folder), axis, "b", policy, arguments.size)
                for b in (1, 2, 8):
                    name = f"{axis} {policy} b={b}"
                    if arguments.names and not any(word in name for word in arguments.names):
                        continue
                    static = Ours(arguments.build, Path(folder), axis, b, policy, arguments.size)
                    rounds = [(static.microseconds(arguments.seconds), symbolic.microseconds(arguments.seconds, f"b={b}"),
                               numpy_microseconds(axis, b, arguments.size, arguments.seconds)) for _ in range(arguments.rounds)]  # fmt: skip
                    number, symbol, rival = map(min, zip(*rounds))
                    print(f"{name:<24} {number:>10.1f} {symbol:>10.1f} {number / symbol:>6.2f} " + (f"{rival:>9.1f}" if policy == "f32" else f"{'-':>9}"))


if __name__ == "__main__":
    main()
