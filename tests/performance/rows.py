#!/usr/bin/env python3
"""Reductions, norms, scans, sort and top_k over the rows of f32 arrays, beside jax.jit (and torch) on the same cores. All programs run in each
round, one after the other; a ratio is the median of the ratios of the rounds, with the faster rival. Slowest first.

Usage: rows.py [--build BUILD] [--threads N] [--seconds S] [--rounds N] [--torch PYTHON] [--json FILE] [NAME ...]
BUILD is the folder that ./check filled (build); JAX comes from PyPI into a folder of its own there. --torch: an interpreter that has torch.
"""
import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SHAPES = [(4096, 256), (64, 65536)]
# name: node of Scalide, its result; jax; torch
CASES = {
    "reduce_sum": ("reduce_sum(x) {axes: [1]}", "f32[R]", "x.sum(1)", "x.sum(1)"),
    "reduce_max": ("reduce_max(x) {axes: [1]}", "f32[R]", "x.max(1)", "x.amax(1)"),
    "argmax": ("argmax(x) {axis: 1}", "i32[R]", "x.argmax(1)", "x.argmax(1)"),
    "logsumexp": ("logsumexp(x) {axes: [1]}", "f32[R]", "jax.nn.logsumexp(x, 1)", "x.logsumexp(1)"),
    "softmax": ("softmax(x) {axes: [1]}", "f32[R, C]", "jax.nn.softmax(x, 1)", "x.softmax(1)"),
    "rms_norm": ("rms_norm(x, g)", "f32[R, C]", "x * jax.lax.rsqrt((x * x).mean(1, keepdims=True) + 1e-6) * g",
                 "torch.nn.functional.rms_norm(x, g.shape, g, 1e-6)"),
    "cumsum": ("cumsum(x) {axis: 1}", "f32[R, C]", "x.cumsum(1)", "x.cumsum(1)"),
    "cummax": ("cummax(x) {axis: 1}", "f32[R, C]", "jax.lax.cummax(x, 1)", "x.cummax(1)[0]"),
    "cumlogsumexp": ("cumlogsumexp(x) {axis: 1}", "f32[R, C]", "jax.lax.cumlogsumexp(x, 1)", "x.logcumsumexp(1)"),
    "sort": ("sort(x) {dimension: 1}", "f32[R, C]", "jax.lax.sort(x, dimension=1)", "x.sort(1)[0]"),
    "top_k": ("top_k(x) {k: 8}", "f32[R, 8]", "jax.lax.top_k(x, 8)", "x.topk(8, 1)"),
}


def rival(framework, name, rows, columns, seconds, threads):
    """Times one case in this process; prints milliseconds (median)."""
    import numpy as np

    random = np.random.default_rng(0)
    arrays = random.standard_normal((rows, columns), np.float32), random.standard_normal(columns, np.float32)
    if framework == "jax":
        import jax

        function = jax.jit(eval("lambda x, g: " + CASES[name][2], {"jax": jax}))
        call = lambda arguments=[jax.numpy.asarray(array) for array in arrays]: jax.block_until_ready(function(*arguments))
    else:
        import torch

        torch.set_num_threads(threads)
        function = eval("lambda x, g: " + CASES[name][3], {"torch": torch})
        call = lambda arguments=[torch.from_numpy(array) for array in arrays]: function(*arguments)
    times = []
    for _ in range(3):
        call()
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - begin))
    print(statistics.median(times))


def generate(build, name, rows, columns):
    node, result = (text.replace("R", str(rows)).replace("C", str(columns)) for text in CASES[name][:2])
    gain = f", g: f32[{columns}]" if "g)" in node else ""
    results, types = ("y, i", f"{result}, {result.replace('f32', 'i32')}") if name == "top_k" else ("y", result)
    folder = build / "performance" / "rows"
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"{name}_{rows}.scl"
    source.write_text(f"program p (x: f32[{rows}, {columns}]{gain}) -> (y: {result} = y) {{\n  {results} = {node} : {types}\n}}\n")
    subprocess.run([build / "generators/scalide", "build", source, "--name", source.stem, "--output", folder, "--shared"], check=True, stdout=subprocess.DEVNULL)
    return [build / "tests/performance/run_program", folder / f"lib{source.stem}.so", source.stem]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--torch", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("names", nargs="*", default=list(CASES))
    arguments = parser.parse_args()
    from mlp_step import jax_python, median_ratio, run_json

    rivals = {"jax": jax_python(arguments.build)} | ({"torch": arguments.torch} if arguments.torch else {})
    rows = []
    for name in arguments.names:
        for shape in SHAPES:
            ours = generate(arguments.build, name, *shape)
            times = {}
            for _ in range(arguments.rounds):
                times.setdefault("scalide", []).append(run_json([*ours, arguments.threads, arguments.seconds], arguments.threads)["ms_median"])
                for framework, python in rivals.items():
                    command = [python, __file__, "--rival", framework, name, *shape, arguments.seconds, arguments.threads]
                    times.setdefault(framework, []).append(run_json(command, arguments.threads))
            medians = {framework: statistics.median(values) for framework, values in times.items()}
            best = min(rivals, key=medians.get)
            ratio = median_ratio(times[best], times["scalide"])
            rows.append({"operator": name, "rows": shape[0], "columns": shape[1], "ms": medians, "rival": best, "ratio": ratio})
    rows.sort(key=lambda row: row["ratio"])
    print(f"{'operator':<14} {'shape':>12} {'scalide ms':>10} {'rival ms':>10} {'ratio':>6}")
    for row in rows:
        shape, ms = f"{row['rows']}x{row['columns']}", row["ms"]
        print(f"{row['operator']:<14} {shape:>12} {ms['scalide']:>10.3f} {ms[row['rival']]:>10.3f} {row['ratio']:>6.2f}   ({row['rival']})")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rival"]:
        framework, name, rows, columns, seconds, threads = sys.argv[2:]
        rival(framework, name, int(rows), int(columns), float(seconds), int(threads))
    else:
        main()
