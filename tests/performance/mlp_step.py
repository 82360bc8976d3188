#!/usr/bin/env python3
"""Times the training step 784-512-512-10, batch 128, next to jax.jit on the same cores. Each round runs all programs one after the other. A ratio
is the median of the ratios of the rounds, so a machine that is slower for a while is slower for both programs.

Usage: mlp_step.py [--build BUILD] [--threads N] [--seconds S] [--rounds N] [--fastest] [--json FILE] [--markdown]
BUILD is the build folder (build), after ./demo and ./check. The program installs JAX from PyPI into BUILD/jax.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Policy: the dtype in which JAX runs the same step. mxfp8 is missing: it needs a batch size that is a multiple of 32, and the batch here is a symbol.
RIVAL = {"f32": "f32", "bf16": "bf16", "f16_plain": "f16", "f16_master": "f16", "f16_scaled": "f16", "f8_master": "f32", "f8_scaled": "f32"}


def jax_python(build):
    folder = build / "jax"
    python = folder / "bin" / "python"
    if not python.exists():
        print("installing jax (PyPI)", file=sys.stderr)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "jax", "numpy"], check=True)
    return python


def run_json(command, threads):
    """The JSON line of a command that may use the first `threads` cores."""
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    cores = sorted(os.sched_getaffinity(0))[:threads]
    result = subprocess.run(["taskset", "-c", ",".join(map(str, cores)), *map(str, command)], env=environment, capture_output=True, text=True, check=True)
    return json.loads(result.stdout.splitlines()[0])


def generate(build, name, numerics):
    generator, share = build / "digits" / "digits_generator", build / "install" / "share" / "scalide"
    policy = HERE / f"{numerics}.yaml" if (HERE / f"{numerics}.yaml").exists() else numerics
    folder = build / "performance"
    subprocess.run([generator, "build", "digits_step", "--home", share, "--numerics", policy, "--name", name, "-p", "pixels=784", "-p", "hidden=512",
                    "--output", folder, "--shared"], check=True, stdout=subprocess.DEVNULL)
    return folder / f"lib{name}.so"


def median_ratio(times, others):
    return statistics.median(a / b for a, b in zip(times, others))


def ratio_of_fastest(times, others):
    return min(times) / min(others)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.5, help="time for which each program runs in a round")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--fastest", action="store_true", help="compare the fastest round of each program: for a machine that has other work")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", action="store_true", help="print the rows of the table in docs/numbers.md too")
    arguments = parser.parse_args()
    python = jax_python(arguments.build)
    times = {}
    libraries = {numerics: (generate(arguments.build, "step_" + numerics, numerics), "step_" + numerics) for numerics in RIVAL}
    for _ in range(arguments.rounds):
        for numerics, (library, name) in libraries.items():
            command = [arguments.build / "tests/performance/run_program", library, name, arguments.threads, arguments.seconds, "b=128"]
            times.setdefault(("scalide", numerics), []).append(run_json(command, arguments.threads)["ms_median"])
        for dtype in sorted(set(RIVAL.values())):
            line = run_json([python, HERE / "mlp_step_jax.py", dtype, arguments.seconds], arguments.threads)
            times.setdefault(("jax", dtype), []).append(line["ms_median"])
            rival = line["program"].rsplit(" ", 1)[0]
    typical, ratio = (min, ratio_of_fastest) if arguments.fastest else (statistics.median, median_ratio)
    what = "fastest" if arguments.fastest else "medians"
    rows = []
    print(f"{'numerics':<12} {'scalide ms':>10} {'jax.jit ms':>10} {'ratio':>6}   rival: {rival}, {arguments.threads} threads, {what} of {arguments.rounds} rounds of {arguments.seconds} s")
    for numerics, dtype in RIVAL.items():
        ours, theirs = times["scalide", numerics], times["jax", dtype]
        row = {"numerics": numerics, "scalide_ms": typical(ours), "rival": f"{rival} {dtype}", "rival_ms": typical(theirs)}
        rows.append(row | {"ratio": ratio(theirs, ours)})
        print(f"{numerics:<12} {row['scalide_ms']:>10.3f} {row['rival_ms']:>10.3f} {rows[-1]['ratio']:>6.2f}   ({dtype})")
    print(f"f16_scaled / f16_plain: {ratio(times['scalide', 'f16_scaled'], times['scalide', 'f16_plain']):.3f}")
    if arguments.markdown:
        for row in rows:
            print(f"| `{row['numerics']}` | {row['scalide_ms']:.2f} ms | {row['rival'].split()[-1]} | {row['rival_ms']:.2f} ms | {row['ratio']:.2f}x |")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
