#!/usr/bin/env python3
"""How long a training step takes from a JAX function to a library: traced and built with an empty cache, again with a full one, and JAX's own
tracing and compilation of it; medians of the rounds, in s. Usage: python_build.py [--gpt LAYERS] [--numerics f32,f8_scaled] [--rounds N]
[--json FILE], with the package installed, or PYTHONPATH=build/python build/venv/bin/python tests/performance/python_build.py

The step is SGD of 784-512-512-10, batch 128; with --gpt AdamW of a causal transformer: 4 sequences of 32 tokens, width 64, 4 heads.
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
import transformer

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


BATCH, LENGTH, WIDTH, HEADS, TOKENS = 4, 32, 64, 4, 256


def gpt_step(state, x, y):
    params, m, v = state
    value, gradients = jax.value_and_grad(transformer.loss)(params, x, y, HEADS)
    m = jax.tree_util.tree_map(lambda m, g: 0.9 * m + 0.1 * g, m, gradients)
    v = jax.tree_util.tree_map(lambda v, g: 0.999 * v + 0.001 * g * g, v, gradients)
    params = jax.tree_util.tree_map(lambda p, m, v: p - 1e-3 * (m / (jnp.sqrt(v) + 1e-8) + 0.01 * p), params, m, v)
    return (params, m, v), value


def gpt(layers):
    draw = np.random.default_rng(0)
    params = transformer.initial(draw, layers, TOKENS, LENGTH, WIDTH)
    zeros = jax.tree_util.tree_map(np.zeros_like, params)
    tokens = draw.integers(0, TOKENS, (BATCH, LENGTH)).astype(np.int32)
    return (params, zeros, zeros), tokens, tokens


def mlp():
    params = [{"w": np.ones(pair, np.float32), "b": np.zeros(pair[1], np.float32)} for pair in zip(SIZES, SIZES[1:])]
    return params, np.ones((128, SIZES[0]), np.float32), np.zeros(128, np.int32)


def seconds(call):
    jax.clear_caches()  # every tracing starts anew
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gpt", type=int, metavar="LAYERS")
    parser.add_argument("--numerics", type=lambda text: text.split(","), default=["f32"])
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    function, given = (gpt_step, gpt(arguments.gpt)) if arguments.gpt else (step, mlp())

    def build(cache, numerics):
        scalide.build(scalide.jax.trace(function, *given, donate_argnums=0), numerics=numerics, cache=cache)

    times = {}
    for _ in range(arguments.rounds):
        for numerics in arguments.numerics:
            with tempfile.TemporaryDirectory() as cache:
                for state in ("empty", "full"):
                    times.setdefault(f"scalide {numerics}, {state} cache", []).append(seconds(lambda: build(cache, numerics)))
        times.setdefault("jax.jit", []).append(seconds(lambda: jax.jit(function).lower(*given).compile()))
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, value in medians.items():
        print(f"{name:<32} {value:.2f} s")
    if arguments.json:
        arguments.json.write_text(json.dumps(medians))


if __name__ == "__main__":
    main()
