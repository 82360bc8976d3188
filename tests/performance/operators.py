#!/usr/bin/env python3
"""Every operator that is one map kernel beside a copy of as many bytes in as many threads, best of the same run: the library of all operators
is generated, and each plain function of it timed on arrays of MEGABYTES at most. Slowest first; below half of a copy, with the reason.

Usage: operators.py [--build BUILD] [--dtypes LIST] [--megabytes N] [--threads N] [--seconds S] [--json FILE] [NAME ...]
BUILD is the folder that ./check filled (build). NAME: only these operators.
"""
import argparse
import json
import os
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SIZES = {"f32": 4, "i32": 4, "u32": 4, "f16": 2, "bf16": 2, "i16": 2, "u16": 2}  # other formats take one byte
EXTENTS = [2**power for power in range(2, 25)]
SPECIAL = "special function"
ARITHMETIC = "arithmetic: accurate to 2 ulp for all arguments"
REASONS = dict.fromkeys(["polygamma", "igamma", "igammac", "regularized_incomplete_beta", "betainc", "zeta", "lgamma", "digamma", "erf_inv", "erfc", "erf",
                         "bessel_i0e", "bessel_i1e"], SPECIAL) | {
    "rem": "arithmetic: ten divisions, exact for every quotient", **dict.fromkeys(["dropout", "stochastic_grid"], "arithmetic: 20 rounds of Threefry for an element"),
    "one_hot": "writes alone, each after a read of the line, where a copy streams", **dict.fromkeys(["gelu", "geglu"], "arithmetic: erfc, accurate in its tail"),
    "softplus": "arithmetic: log1p of exp", "log_sigmoid": "arithmetic: log1p of exp",
    "logaddexp": "arithmetic: log1p of exp", "sigmoid_cross_entropy": "arithmetic: log1p of exp",
    **dict.fromkeys(["sin", "cos", "tan"], ARITHMETIC + ", the range reduced in 64-bit integers"),
    **dict.fromkeys(["asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "cbrt", "pow", "log1p", "expm1", "log",
                     "logistic"], ARITHMETIC)}


def count(shape, symbols):
    """Returns the number of elements of a shape. Extents are numbers or polynomials over the symbols."""
    elements = 1
    for extent in shape:
        elements *= eval(str(extent).replace("^", "**"), {"__builtins__": {}}, symbols)
    return elements


def extent_of(program, most):
    """Returns the largest extent for all symbols such that the arguments need at most this many bytes."""
    names = [symbol["name"] for symbol in program.get("symbols", [])]
    fitting = None
    for extent in EXTENTS if names else []:
        symbols = dict.fromkeys(names, extent)
        if sum(count(a["shape"], symbols) * SIZES.get(a["dtype"], 1) for a in program["arguments"]) > most:
            break
        fitting = extent
    return fitting


def reason_of(row):
    name = row["program"]
    return REASONS.get(name) or REASONS.get(name.rsplit("_", 1)[0], "not explained")


def is_one_map(program):
    return [kernel["kind"] for kernel in program["kernels"]] == ["map"] and not any(a["scaled"] for a in program["arguments"])


def measure(runner, library, program, extent, threads, seconds):
    symbols = [f"{symbol['name']}={extent}" for symbol in program["symbols"]]
    result = subprocess.run([runner, library, program["name"], str(threads), str(seconds), *symbols], env={**os.environ, "COPY": "1"}, capture_output=True, text=True, check=True)
    line = json.loads(result.stdout.splitlines()[0])
    return {"program": program["name"].removeprefix("operators_"), "extent": extent, "gigabytes_a_second": line["bytes"] / 1e6 / line["ms_min"], "ratio": line["copy_ms_min"] / line["ms_min"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build")
    parser.add_argument("--dtypes", nargs="+", default=["f32"])
    parser.add_argument("--megabytes", type=float, default=200, help="more than the caches hold")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("names", nargs="*", default=["all"])
    arguments = parser.parse_args()
    folder = arguments.build / "performance"
    dtypes = [word for dtype in arguments.dtypes for word in ("--dtypes", dtype)]
    names = [word for name in arguments.names for word in ("--operators", name)]
    begin = time.monotonic()
    subprocess.run([arguments.build / "generators/scalide", "build", *names, *dtypes, "--name", "operators", "--output", folder, "--shared"], check=True)
    print(f"generated in {time.monotonic() - begin:.0f} s")
    rows = []
    for program in json.loads((folder / "operators.json").read_text())["programs"]:
        extent = extent_of(program, arguments.megabytes * 1e6) if is_one_map(program) else None
        if extent:
            rows.append(measure(arguments.build / "tests/performance/run_program", folder / "liboperators.so", program, extent, arguments.threads, arguments.seconds))
    rows.sort(key=lambda row: row["ratio"])
    print(f"{'function':<44} {'extent':>8} {'GB/s':>7} {'/ copy':>6}")
    slow = [row for row in rows if row["ratio"] < 0.5]
    for row in rows:
        reason = reason_of(row) if row in slow else ""
        print(f"{row['program']:<44} {row['extent']:>8} {row['gigabytes_a_second']:>7.1f} {row['ratio']:>6.2f}   {reason}".rstrip())
    special = sum(reason_of(row) == SPECIAL for row in slow)
    share = 100 * (len(slow) - special) / len(rows)
    print(f"{len(slow)} of {len(rows)} functions are below half of a copy; the {special} special functions aside, {share:.1f} %")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
