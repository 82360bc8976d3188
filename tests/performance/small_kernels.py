#!/usr/bin/env python3
"""Small kernels and kernels of one token: sort, depthwise convolution, attention. The rivals are NumPy and jax.jit.

Usage: PYTHONPATH=build/python small_kernels.py [--json FILE]
Columns, in microseconds: `out` is a call of Library.out, `numpy` and `jax` the same computation, `copy` a copy of all operands in NumPy.
Ratios: times of NumPy, JAX and the copy divided by `out`. Each value is compared with NumPy in float64.
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

DEPTHWISE = ("NHWC", "HWIO", "NHWC")


def numpy_depthwise(x, w):
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    result = np.zeros_like(x)
    for i in range(3):
        for j in range(3):
            result += padded[:, i : i + x.shape[1], j : j + x.shape[2]] * w[i, j, 0]
    return result


def numpy_attention(q, k, v):
    groups = q.reshape(q.shape[0], k.shape[2], -1, q.shape[3])
    scores = np.matmul(groups, k.transpose(0, 2, 3, 1)) / np.sqrt(q.dtype.type(q.shape[3]))
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.matmul(weights, v.transpose(0, 2, 1, 3)).reshape(q.shape)


def narrow_matmul(rows):
    return (f"matmul [{rows}, 2048] by [2048, 64]", lambda x, w: x @ w, np.matmul, [(rows, 2048), (2048, 64)])


CASES = [
    *[(f"sort [{lines}, {n}]", lambda x: jnp.sort(x, 1), lambda x: np.sort(x, 1), [(lines, n)]) for lines, n in ((64, 33), (64, 64), (1000, 128), (1, 64))],
    *[
        (f"depthwise 3 x 3 of [{b}, 15, 13, 7]",
         lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=DEPTHWISE, feature_group_count=7), numpy_depthwise,
         [(b, 15, 13, 7), (3, 3, 1, 7)]) for b in (1, 8)
    ],
    ("attention of one token, 8 x 2048 positions", jax.nn.dot_product_attention, numpy_attention, [(8, 1, 8, 40), (8, 2048, 2, 40), (8, 2048, 2, 40)]),
    *[narrow_matmul(rows) for rows in (2, 4, 32)],
]  # fmt: skip


def best(run, seconds=0.5):
    """The least time of a call in microseconds, of calls that last this long together."""
    run()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1e6 * min(times)


def measure(fn, rival, shapes):
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    library = scalide.build(scalide.jax.trace(fn, *arrays))
    value = np.asarray(library(*arrays))
    np.testing.assert_allclose(value, rival(*[array.astype(np.float64) for array in arrays]), rtol=2e-5, atol=2e-4)
    jitted, result, copies = jax.jit(fn), scalide.empty(value.shape, np.float32), [np.empty_like(array) for array in arrays]
    found = {
        "out": best(lambda: library.out(*arrays, result)), "numpy": best(lambda: rival(*arrays)),
        "jax": best(lambda: jitted(*arrays).block_until_ready()),
        "copy": best(lambda: [np.copyto(copy, array) for copy, array in zip(copies, arrays)]),
    }  # fmt: skip
    return {**found, **{f"{name} / out": found[name] / found["out"] for name in ("numpy", "jax", "copy")}}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json")
    given = parser.parse_args()
    found = {}
    for name, fn, rival, shapes in CASES:
        found[name] = measure(fn, rival, shapes)
        if len(found) == 1:
            print(f"{'us':44}" + "".join(f"{column:>16}" for column in found[name]))
        print(f"{name:44}" + "".join(f"{value:16.2f}" for value in found[name].values()))
    if given.json:
        with open(given.json, "w") as file:
            json.dump(found, file, indent=1)
