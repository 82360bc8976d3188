#!/usr/bin/env python3
"""Updates of one row of a donated array: an embedding table, a cache of keys. The rival is jax.jit with a donated argument.

Usage: PYTHONPATH=build/python in_place.py [--rows N] [--json FILE]
The array has N rows of 256 numbers (default: 65536, which are 64 MiB in f32). `out`: Library.out, which updates the array of the caller.
`donate`: Library.donate of a NumPy array, `in jax`: of a JAX array. `call`: library(...), which returns a new array, so it copies the old one.
`ratio`: time of jax.jit divided by time of `donate`.
"""
import argparse
import json
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import scalide
import scalide.jax

FUNCTIONS = {
    "at.add": lambda e, i, v: e.at[i].add(v),
    "at.set": lambda e, i, v: e.at[i].set(v),
    "dynamic_update_slice": lambda e, i, v: lax.dynamic_update_slice(e, v, (i[0], 0)),
}


def best(run, rounds=20):
    """The least time of a call, in milliseconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def measure(fn, dtype, rows):
    i, v = np.int32([5]), jnp.ones((1, 256), dtype)
    library = scalide.build(scalide.jax.trace(fn, jax.ShapeDtypeStruct((rows, 256), dtype), i, v, donate_argnums=0))
    array, held = scalide.empty((rows, 256), jnp.dtype(dtype)), [jnp.zeros((rows, 256), dtype)]
    array[:] = 0
    jitted, row = jax.jit(fn, donate_argnums=0), np.asarray(v)

    def step(run):
        held[0] = jax.block_until_ready(run(held[0], i, v))

    found = {"out": best(lambda: library.out(array, i, row)), "donate": best(lambda: library.donate(array, i, row)),
             "in jax": best(lambda: step(library.donate)), "call": best(lambda: library(array, i, row), 5), "jax": best(lambda: step(jitted))}  # fmt: skip
    return {**found, "ratio": found["jax"] / found["donate"]}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2**16)
    parser.add_argument("--json")
    given = parser.parse_args()
    found = {f"{name} {dtype}": measure(fn, dtype, given.rows) for name, fn in FUNCTIONS.items() for dtype in ("float32", "bfloat16")}
    print(f"{'':32} {'out ms':>9} {'donate ms':>9} {'in jax ms':>9} {'call ms':>9} {'jax ms':>9} {'ratio':>7}")
    for name, row in found.items():
        print(f"{name:32} {row['out']:9.4f} {row['donate']:9.4f} {row['in jax']:9.4f} {row['call']:9.2f} {row['jax']:9.4f} {row['ratio']:7.2f}")
    if given.json:
        with open(given.json, "w") as file:
            json.dump(found, file, indent=1)
