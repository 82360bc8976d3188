#!/usr/bin/env python3
"""Kernels of each kind beside their limit, one thread, best of the same run: a copy that moves as many bytes for map, row, column, full and
transpose; the FMA peak for contract.

Usage: kernel_kinds.py [--build BUILD] [--seconds S] [--json FILE] [NAME ...]
BUILD is the folder that ./check filled (build). NAME: only the cases whose name has it.
"""
import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent

# kind, name, arguments -> results { body }, values of symbols. One kernel each.
CASES = [
    ("map", "square f32", "(x: f32[8000000]) -> (y: f32[8000000])", "y = mul(x, x)"),
    ("map", "square f16", "(x: f16[16000000]) -> (y: f16[16000000])", "y = mul(x, x)"),
    ("map", "square bf16", "(x: bf16[16000000]) -> (y: bf16[16000000])", "y = mul(x, x)"),
    ("map", "f32 to f8_e4m3fn", "(x: f32[8000000]) -> (y: f8_e4m3fn[8000000])", "y = convert_element_type(x) {dtype: f8_e4m3fn}"),
    ("map", "f32 to f8_e5m2", "(x: f32[8000000]) -> (y: f8_e5m2[8000000])", "y = convert_element_type(x) {dtype: f8_e5m2}"),
    ("map", "f8_e4m3fn to f32", "(x: f8_e4m3fn[8000000]) -> (y: f32[8000000])", "y = convert_element_type(x) {dtype: f32}"),
    ("map", "update in place f32", "(w: f32[8000000] inout, g: f32[8000000]) -> (w = v)", "s = mul(g, 0.125)\n  v = sub(w, s)"),
    ("map", "exp f32", "(x: f32[8000000]) -> (y: f32[8000000])", "y = exp(x)"),
    ("map", "bias f32[b, n], n = 10", "(x: f32[b, n], v: f32[n]) -> (y: f32[b, n])",
     "w = broadcast_in_dim(v) {dims: [1], shape: [b, n]}\n  y = add(x, w)", "b=800000", "n=10"),
    ("map", "concatenate f32[300000, 500000, 200000]", "(a: f32[300000], b: f32[500000], c: f32[200000]) -> (y: f32[1000000])",
     "y = concatenate(a, b, c) {dimension: 0}"),
    ("map", "concatenate rows f32[300, 500, 200; 8192]", "(a: f32[300, 8192], b: f32[500, 8192], c: f32[200, 8192]) -> (y: f32[1000, 8192])",
     "y = concatenate(a, b, c) {dimension: 0}"),
    ("map", "roll f32[100000]", "(x: f32[100000]) -> (y: f32[100000])",
     "a = slice(x) {start: [99997], limit: [100000]}\n  b = slice(x) {start: [0], limit: [99997]}\n  y = concatenate(a, b) {dimension: 0}"),
    ("row", "softmax f32[4000, 1000]", "(x: f32[4000, 1000]) -> (y: f32[4000, 1000])", "y = softmax(x) {axes: [1]}"),
    ("row", "layer_norm f16[4000, 784]", "(x: f16[4000, 784], g: f16[784], b: f16[784]) -> (y: f16[4000, 784])", "y = layer_norm(x, g, b)"),
    ("row", "maximum f32[4000, 1000]", "(x: f32[4000, 1000]) -> (y: f32[4000])", "y = reduce_max(x) {axes: [1]}"),
    ("column", "sum f32[4000, 1000]", "(x: f32[4000, 1000]) -> (y: f32[1000])", "y = reduce_sum(x) {axes: [0]}"),
    ("column", "maximum bf16[4000, 1000]", "(x: bf16[4000, 1000]) -> (y: f32[1000])", "w = convert_element_type(x) {dtype: f32}\n  y = reduce_max(w) {axes: [0]}"),
    ("full", "sum f32", "(x: f32[8000000]) -> (y: f32[])", "y = reduce_sum(x) {axes: [0]}"),
    ("full", "largest magnitude f16", "(x: f16[16000000]) -> (y: f32[])", "a = abs(x)\n  w = convert_element_type(a) {dtype: f32}\n  y = reduce_max(w) {axes: [0]}"),
    ("transpose", "f32[2000, 2000]", "(x: f32[2000, 2000]) -> (y: f32[2000, 2000])", "y = transpose(x) {permutation: [1, 0]}"),
    ("transpose", "bf16[2000, 2000]", "(x: bf16[2000, 2000]) -> (y: bf16[2000, 2000])", "y = transpose(x) {permutation: [1, 0]}"),
    ("transpose", "f8_e5m2[2000, 2000]", "(x: f8_e5m2[2000, 2000]) -> (y: f8_e5m2[2000, 2000])", "y = transpose(x) {permutation: [1, 0]}"),
]


def run(command, **environment):
    result = subprocess.run([str(word) for word in command], env={**os.environ, **environment}, capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(f"{command[0]}: {result.stderr.strip()}")
    return result.stdout


def measure(build, scratch, case, seconds):
    """One row: gigabytes a second of the kernel and of the copy."""
    kind, name, signature, body, *symbols = case
    (scratch / "p.scl").write_text(f"program p{signature} {{\n  {body}\n}}\n")
    run([build / "generators/scalide", "build", scratch / "p.scl", "--output", scratch, "--shared"])
    kinds = [kernel["kind"] for kernel in json.loads((scratch / "p.json").read_text())["programs"][0]["kernels"]]
    if kinds != [kind]:
        raise SystemExit(f"{name}: expected one kernel of kind {kind}, got {kinds}")
    line = json.loads(run([build / "tests/performance/run_program", scratch / "libp.so", "p", 1, seconds, *symbols], COPY="1"))
    gigabytes = line["bytes"] / 1e6
    return {"kind": kind, "case": name, "unit": "GB/s", "kernel": gigabytes / line["ms_min"], "limit": gigabytes / line["copy_ms_min"]}


def contractions(build, names):
    for name in names or [""]:
        for row in json.loads(run([build / "tests/performance/contract_performance", name])):
            yield {"kind": "contract", "case": row["case"], "unit": "GF", "kernel": row["gflops"], "limit": row["fma_peak"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build")
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    wanted = [case for case in CASES if not arguments.names or any(name in f"{case[0]} {case[1]}" for name in arguments.names)]
    rows = []
    print(f"{'kind':<10} {'case':<34} {'kernel':>8} {'limit':>8}       {'ratio':>5}")

    def show(row):
        row["ratio"] = row["kernel"] / row["limit"]
        rows.append(row)
        print(f"{row['kind']:<10} {row['case']:<34} {row['kernel']:>8.1f} {row['limit']:>8.1f} {row['unit']:<5} {row['ratio']:>5.2f}", flush=True)

    with tempfile.TemporaryDirectory(prefix="scalide-performance-") as scratch:
        for case in wanted:
            show(measure(arguments.build, Path(scratch), case, arguments.seconds))
    for row in contractions(arguments.build, [name for name in arguments.names if not wanted]) if not arguments.names or not wanted else []:
        show(row)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
