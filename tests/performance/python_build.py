#!/usr/bin/env python3
"""How long the training step 784-512-512-10, batch 128, takes from a JAX function to a library: traced and built with an empty cache, again with
a full one, and JAX's own tracing and compilation of it; medians of the rounds, in s. Usage: python_build.py [--rounds N] [--json FILE], with
the package installed, or PYTHONPATH=build/python build/venv/bin/python tests/performance/python_build.py
"""
import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import scalide
import scalide.jax

SIZES = (784, 512, 512, 10)


def loss(params, x, y):
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    logits = jax.nn.log_softmax(x @ last["w"] + last["b"])
    return -jnp.mean(jnp.take_along_axis(logits, y[:, None], 1))


def step(params, x, y):
    value, gradients = jax.value_and_grad(loss)(params, x, y)
    return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, gradients), value


def seconds(call):
    jax.clear_caches()  # every tracing starts anew
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    params = [{"w": np.ones(pair, np.float32), "b": np.zeros(pair[1], np.float32)} for pair in zip(SIZES, SIZES[1:])]
    given = params, np.ones((128, SIZES[0]), np.float32), np.zeros(128, np.int32)

    def build(cache):
        scalide.build(scalide.jax.trace(step, *given, donate_argnums=0), cache=cache)

    times = {}
    for _ in range(arguments.rounds):
        with tempfile.TemporaryDirectory() as cache:
            times.setdefault("scalide, empty cache", []).append(seconds(lambda: build(cache)))
            times.setdefault("scalide, full cache", []).append(seconds(lambda: build(cache)))
        times.setdefault("jax.jit", []).append(seconds(lambda: jax.jit(step).lower(*given).compile()))
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, value in medians.items():
        print(f"{name:<22} {value:.2f} s")
    if arguments.json:
        arguments.json.write_text(json.dumps(medians))


if __name__ == "__main__":
    main()
