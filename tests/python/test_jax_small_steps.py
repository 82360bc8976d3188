"""Steps of loops over small arrays, which are one kernel on CPUs: the same bits as a call of the step for each element."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import scalide
import scalide.jax


def normal(*shape, scale=1.0):
    return np.asarray(np.random.default_rng(7).normal(size=shape) * scale, np.float32)


def integers(*shape):
    return np.random.default_rng(7).integers(-99, 99, shape).astype(np.int32)


STEPS = {
    "softmax": (lambda h, x: (jax.nn.softmax(h + x, -1), jnp.sum(h * x)), normal(17, 7), normal(5, 17, 7)),
    "matmul": (lambda h, x, w: (jnp.tanh(w @ h + x), (h[::-1], jnp.argmax(h))), normal(45), normal(5, 45), normal(45, 45, scale=0.1)),
    "row_times_matrix": (lambda h, x, w: (jnp.tanh(h @ w + x), h.max()), normal(61), normal(5, 61), normal(61, 61, scale=0.1)),
    "batches": (lambda h, x, w: (jnp.einsum("bij,bjk->bik", h, w) * 0.2 + x, h.sum((1, 2))), normal(2, 4, 4), normal(5, 2, 4, 4), normal(2, 4, 4)),
    "filter": (lambda h, x, q: (h + q @ h @ q.T + jnp.outer(x, x), jnp.trace(h)), normal(4, 4), normal(9, 4), normal(4, 4, scale=0.3)),
    "concatenation": (lambda h, x: (jnp.concatenate([x, h[:-1] * 0.5]), (h.T @ h)[None]), normal(6, 2), normal(7, 1, 2)),
    "integers": (lambda h, x: ((h * 1000003 + x) % 1000, (h @ h.T).sum()), integers(3, 4), integers(5, 3, 4)),
    "narrow_state": (lambda h, x: ((h.astype(jnp.float32) * 0.5 + x).astype(jnp.bfloat16), h.astype(jnp.float32).sum()),
                     jnp.asarray(normal(37), jnp.bfloat16), normal(5, 37)),
    "norm": (lambda h, x: ((h - h.mean(-1, keepdims=True)) / jnp.sqrt(h.var(-1, keepdims=True) + 1e-5) + x, (h.argmin(0), h.max(0))),
             normal(17, 33), normal(5, 17, 33)),
    "scalar": (lambda h, x: (jnp.sin(h) * x + h**3, jnp.exp(h)), np.float32(0.3), normal(5)),
    "row_of_a_carry": (lambda h, x: (lax.dynamic_update_slice(h, x[None] * 2, (jnp.int32(abs(x[0])), 0)), h.sum()), normal(6, 3), normal(5, 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_has_the_bits_of_calls(name):
    step, carry, elements, *weights = STEPS[name]
    loop = scalide.build(scalide.jax.trace(lambda h, xs, *w: lax.scan(lambda h, x: step(h, x, *w), h, xs), carry, elements, *weights))
    call = scalide.build(scalide.jax.trace(lambda h, x, *w: step(h, x, *w), carry, elements[0], *weights))
    state, outputs = carry, []
    for element in elements:
        state, output = call(state, element, *weights)
        outputs.append(output)
    expected = jax.tree.leaves((state, jax.tree.map(lambda *each: np.stack(each), *outputs)))
    for got, wanted in zip(jax.tree.leaves(loop(carry, elements, *weights)), expected, strict=True):
        np.testing.assert_array_equal(np.asarray(got), np.asarray(wanted))
