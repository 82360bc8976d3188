#!/usr/bin/env python3
"""The cost of statistics in a training step: a transformer with B=4, S=32, D=64, 4 heads and 2 blocks, with SGD and momentum.
The rival is jax.jit of the same step, which also returns amax, rms, the number of infinities and NaNs, and a histogram of exponents of each parameter,
momentum and gradient. It cannot see the rounded operands of matmuls, so the ratio is the time for an element.

Usage: PYTHONPATH=build/python tensor_statistics.py [--numerics f8_master] [--rounds 400] [--json FILE]
The programs run in turns. A time is the median of the rounds. The share is the time of a step that collects, less the time of a step that does not,
divided by 10 steps that do not.
"""
import argparse
import json
import time

import jax
import jax.numpy as jnp
import numpy as np

import scalide
import scalide.jax

BATCH, LENGTH, WIDTH, HEADS, BLOCKS = 4, 32, 64, 4, 2


def normalized(x):
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def block(p, x):
    h = normalized(x)
    q, k, v = (jnp.einsum("bsd,dhe->bhse", h, p[name]) for name in "qkv")
    scores = jax.nn.softmax(jnp.einsum("bhse,bhte->bhst", q, k) * (WIDTH // HEADS) ** -0.5)
    x = x + jnp.einsum("bhst,bhte,hed->bsd", scores, v, p["o"])
    return x + jax.nn.gelu(normalized(x) @ p["up"]) @ p["down"]


def loss(params, x, y):
    for i, p in enumerate(params):
        with jax.named_scope(f"block{i}"):
            x = block(p, x)
    return jnp.mean((x - y) ** 2)


def updated(params, momenta, x, y):
    value, gradients = jax.value_and_grad(loss)(params, x, y)
    momenta = jax.tree.map(lambda m, g: 0.9 * m + g, momenta, gradients)
    return jax.tree.map(lambda p, m: p - 0.01 * m, params, momenta), momenta, value, gradients


def step(params, momenta, x, y):
    return updated(params, momenta, x, y)[:3]


def numbers_of(x):
    magnitude, is_finite = jnp.abs(x), jnp.isfinite(x)
    exponents = jax.lax.bitcast_convert_type(magnitude, jnp.int32) >> 23
    bins = jnp.clip((exponents - 85) >> 1, 0, 31).reshape(-1)
    return jnp.max(magnitude), jnp.sqrt(jnp.mean(x * x)), jnp.sum(~is_finite), jnp.zeros(33, jnp.int32).at[bins].add(1)


def step_with_numbers(params, momenta, x, y):
    params, momenta, value, gradients = updated(params, momenta, x, y)
    return (params, momenta, value), jax.tree.map(numbers_of, (params, momenta, gradients))


def arguments():
    random = np.random.default_rng(0)

    def normal(*shape):
        return (0.1 * random.standard_normal(shape)).astype(np.float32)

    shapes = {name: (WIDTH, HEADS, WIDTH // HEADS) for name in "qkv"} | {"o": (HEADS, WIDTH // HEADS, WIDTH)}
    shapes |= {"up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
    params = [{name: normal(*shape) for name, shape in shapes.items()} for _ in range(BLOCKS)]
    return params, jax.tree.map(np.zeros_like, params), normal(BATCH, LENGTH, WIDTH), normal(BATCH, LENGTH, WIDTH)


def medians(runs, rounds):
    """The median time of each call in milliseconds. The calls take turns."""
    times = {name: [] for name in runs}
    for name, run in runs.items():
        run()
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    return {name: 1e3 * float(np.median(spent)) for name, spent in times.items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--numerics", default="f8_master")
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--json")
    options = parser.parse_args()
    values = arguments()
    program = scalide.jax.trace(step, *values)
    plain, collecting = (scalide.build(program, numerics=options.numerics, statistics=every) for every in (False, 1))
    jax_plain, jax_collecting = jax.jit(step), jax.jit(step_with_numbers)
    found = medians(
        {
            "plain": lambda: plain(*values),
            "collecting": lambda: collecting(*values),
            "jax plain": lambda: jax.block_until_ready(jax_plain(*values)),
            "jax collecting": lambda: jax.block_until_ready(jax_collecting(*values)),
        },
        options.rounds,
    )
    tensors = collecting.statistics()
    elements = {"": sum(row.elements for row in tensors), "jax ": 3 * sum(array.size for array in jax.tree.leaves(values[0]))}
    for who, count in elements.items():
        extra = found[f"{who}collecting"] - found[f"{who}plain"]
        found[f"{who}share"], found[f"{who}ns"] = extra / found[f"{who}plain"] / 10, 1e6 * extra / count
        print(
            f"{who or 'scalide '}: step {found[who + 'plain']:.3f} ms, with statistics {found[who + 'collecting']:.3f} ms: {found[who + 'share']:.1%} of each "
            f"step if each 10th collects; {count} elements, {found[who + 'ns']:.2f} ns each"
        )
    print(f"{len(tensors)} tensors; time for an element, jax divided by Scalide: {found['jax ns'] / found['ns']:.2f}")
    if options.json:
        with open(options.json, "w") as out:
            json.dump({"numerics": options.numerics, **found}, out)
