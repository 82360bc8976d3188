#!/usr/bin/env python3
"""What a call from Python costs: a program of one small addition, called as scalide.Library and in jitted functions, beside `jax.jit` of the same
in the same run; medians of the rounds, in us. Usage: python_calls.py [--calls N] [--rounds N] [--json FILE], with the package installed, or
PYTHONPATH=build/python build/venv/bin/python tests/performance/python_calls.py
"""
import argparse
import json
import statistics
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import scalide
import scalide.jax


def add(x, y):
    return x + y


def seconds(call, count):
    call()
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    x = np.arange(16, dtype=np.float32)
    on_device, out, sixteen = jnp.asarray(x), np.empty_like(x), [np.arange(16, dtype=np.float32) for _ in range(16)]
    library = scalide.build(scalide.jax.trace(add, x, x))
    many = scalide.build(scalide.jax.trace(lambda *arrays: [a + 1 for a in arrays], *sixteen))
    jitted, jitted_many, inside = jax.jit(add), jax.jit(lambda *arrays: [a + 1 for a in arrays]), jax.jit(scalide.jax.call(library))
    assert np.array_equal(library(x, x), 2 * x) and np.array_equal(inside(x, x), 2 * x)
    calls = {
        "Library, NumPy arrays": lambda: library(x, x),
        "Library.out": lambda: library.out(x, x, out),
        "Library, JAX arrays": lambda: library(on_device, on_device),
        "Library, 16 arrays in and out": lambda: many(*sixteen),
        "jit(scalide.jax.call)": lambda: inside(on_device, on_device).block_until_ready(),
        "jax.jit, JAX arrays": lambda: jitted(on_device, on_device).block_until_ready(),
        "jax.jit, NumPy arrays": lambda: np.asarray(jitted(x, x)),
        "jax.jit, 16 NumPy arrays in and out": lambda: jax.block_until_ready(jitted_many(*sixteen)),
    }
    times = {name: [] for name in calls}
    for _ in range(arguments.rounds):
        for name, call in calls.items():
            times[name].append(1e6 * seconds(call, arguments.calls))
    rows = {name: statistics.median(values) for name, values in times.items()}
    for name, value in rows.items():
        print(f"{name:<38} {value:8.1f} us")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
