#!/usr/bin/env python3
"""Times the training step 784-512-512-10, batch 64, in the FP8 policies, next to f8_master (one current scale per array) and bf16. Policies run in
turns; the fastest run of each counts. `ratio`: time divided by the time of f8_master. The last row is jax.jit in f32.

Usage: PYTHONPATH=BUILD/python SCALIDE_TOOL=BUILD/generators/scalide BUILD/venv/bin/python fp8_policies.py [--batch N] [--rounds N]
BUILD is the folder that ./check filled (build). All CPUs of the process compute: `taskset -c 0` before it gives one thread.
"""
import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np

import scalide
from scalide.jax import trace

POLICIES = ("f32", "bf16", "f8_master", "f8_delayed", "f8_row", "f8_block", "mxfp8")
WIDTHS = (784, 512, 512, 10)


def loss(weights, x, y):
    for weight, bias in weights[:-1]:
        x = jax.nn.relu(x @ weight + bias)
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(x @ weights[-1][0] + weights[-1][1]) * y, -1))


def step(weights, x, y):
    value, gradients = jax.value_and_grad(loss)(weights, x, y)
    return value, jax.tree.map(lambda a, b: a - 0.1 * b, weights, gradients)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=100)
    arguments = parser.parse_args()
    random = np.random.default_rng(0)
    draw = lambda *shape: random.normal(size=shape).astype(np.float32)
    weights = [(draw(m, n) * 0.05, draw(n) * 0.05) for m, n in zip(WIDTHS, WIDTHS[1:])]
    data = weights, draw(arguments.batch, WIDTHS[0]), np.eye(WIDTHS[-1], dtype=np.float32)[np.arange(arguments.batch) % WIDTHS[-1]]
    program = trace(step, *data)
    libraries = {policy: scalide.build(program, numerics=policy) for policy in POLICIES}
    runs = {policy: (library, data + tuple(filter(None, [library.init()]))) for policy, library in libraries.items()}  # f8_delayed has state
    runs["jax f32"] = jax.jit(step), data
    fastest = dict.fromkeys(runs, float("inf"))
    for _ in range(arguments.rounds):
        for policy, (run, given) in runs.items():
            start = time.perf_counter()
            jax.block_until_ready(run(*given))
            fastest[policy] = min(fastest[policy], time.perf_counter() - start)
    print(f"{'policy':10} {'ms':>7} {'ratio':>6}")
    for policy in runs:
        print(f"{policy:10} {1e3 * fastest[policy]:7.3f} {fastest[policy] / fastest['f8_master']:6.2f}")


if __name__ == "__main__":
    main()
