"""The training step of examples/digits in JAX: prints one JSON line. Usage: mlp_step_jax.py DTYPE SECONDS (f32, bf16, f16)."""
import json
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

WIDTHS, BATCH, RATE = (784, 512, 512, 10), 128, 0.1
DTYPES = {"f32": jnp.float32, "bf16": jnp.bfloat16, "f16": jnp.float16}


def loss(parameters, images, labels):
    h = images
    for w, b in parameters[:-1]:
        h = jax.nn.relu(h @ w + b)
    w, b = parameters[-1]
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(h @ w + b), labels[:, None], axis=1))


def step(parameters, images, labels):
    value, gradients = jax.value_and_grad(loss)(parameters, images, labels)
    return jax.tree_util.tree_map(lambda p, g: p - jnp.asarray(RATE, p.dtype) * g, parameters, gradients), value


def main():
    dtype, seconds = DTYPES[sys.argv[1]], float(sys.argv[2])
    random = np.random.default_rng(0)
    parameters = [(jnp.asarray(random.standard_normal((k, n)) * k**-0.5, dtype), jnp.zeros(n, dtype)) for k, n in zip(WIDTHS, WIDTHS[1:])]
    images = jnp.asarray(random.random((BATCH, WIDTHS[0])), dtype)
    labels = jnp.asarray(random.integers(0, WIDTHS[-1], BATCH))
    start = time.perf_counter()
    compiled = jax.jit(step, donate_argnums=0)
    parameters, value = jax.block_until_ready(compiled(parameters, images, labels))
    compile_seconds = time.perf_counter() - start
    times, start = [], time.perf_counter()
    while time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        parameters, value = jax.block_until_ready(compiled(parameters, images, labels))
        times.append(1e3 * (time.perf_counter() - begin))
    print(json.dumps({"program": f"jax {jax.__version__} {sys.argv[1]}", "ms_min": min(times), "ms_median": float(np.median(times)),
                      "runs": len(times), "compile_s": compile_seconds}))


if __name__ == "__main__":
    main()
