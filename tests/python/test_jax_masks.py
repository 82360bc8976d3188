"""Masks and infinities in functions on scaled arrays: the first cost no bits, the second stay."""
import flax.linen as nn
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from oracle import differs, errors

import scalide.jax as jsa

LOWEST = float(np.finfo(np.float32).min)


def draw(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def scaled(values, exponent, dtype=np.float32):
    """These values at the scale 2^exponent."""
    scale = np.float32(2.0**exponent)
    return jsa.ScaledArray((np.asarray(values) / scale).astype(dtype), scale)


def value(array):
    return np.asarray(jsa.asarray(array, np.float32))


def assert_close(got, fn, *args):
    """Each element is as near to that of JAX as roundings leave it."""
    jitted = jax.jit(fn)
    want = jitted(*args)
    problem = differs(value(got).astype(want.dtype), want, *errors(jitted, args, want))
    assert not problem, problem


@pytest.mark.parametrize("exponent", [-20, -5, 0, 10])
@pytest.mark.parametrize("mask", [-1e4, -1e9, -1e30, LOWEST, -np.inf])
def test_what_a_mask_leaves_keeps_its_bits(mask, exponent):
    x, keep = draw(8, 8), np.tril(np.ones((8, 8), bool))
    got = jsa.scalify(lambda x: jnp.where(keep, x, mask))(scaled(x, exponent))
    assert got.scale <= max(1, 2.0**exponent)
    np.testing.assert_array_equal(value(got)[keep], x[keep])
    np.testing.assert_allclose(value(got)[~keep], np.float32(mask), rtol=1e-6)


@pytest.mark.parametrize("exponent", [-20, 0, 10])
def test_attention_with_a_causal_mask(exponent):
    module, x = nn.MultiHeadDotProductAttention(4), draw(2, 8, 16)
    causal = nn.make_causal_mask(x[..., 0])
    params = jax.tree.map(np.asarray, module.init(jax.random.PRNGKey(0), x))

    def attend(params, x):
        return module.apply(params, x, mask=causal)

    got = jsa.scalify(attend)(jax.tree.map(lambda leaf: scaled(leaf, exponent), params), scaled(x, exponent))
    assert_close(got, attend, params, x)
    q, k, v = draw(1, 8, 2, 4), draw(1, 8, 2, 4)[:, ::-1], draw(1, 8, 2, 4) + 1

    def product(q, k, v):
        return jax.nn.dot_product_attention(q, k, v, is_causal=True)

    assert_close(jsa.scalify(product)(*(scaled(a, exponent) for a in (q, k, v))), product, q, k, v)


@pytest.mark.parametrize("lowest", [-1e4, -1e9, LOWEST])
def test_attention_with_a_mask_that_is_added(lowest):
    """As transformers write it, the mask an array of floats: plain, and scaled as all else."""
    x, keep = draw(4, 8), np.tril(np.ones((4, 8), np.float32))

    def attend(x, keep):
        return jax.nn.softmax(x + (1 - keep) * lowest)

    for mask in (keep, scaled(keep, 0)):
        assert_close(jsa.scalify(attend)(scaled(x, -3), mask), lambda x: attend(x, keep), x)


def test_masks_in_f16_and_clipped_gradients():
    x, keep = draw(8, 8), np.tril(np.ones((8, 8), bool))
    lowest = float(np.finfo(np.float16).min)

    def attend(x):
        return jax.nn.softmax(jnp.where(keep, x, jnp.float16(lowest)))

    assert_close(jsa.scalify(attend)(scaled(x, 0, np.float16)), attend, x.astype(np.float16))
    tiny = (draw(64) * 2.0**-16).astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(value(jsa.scalify(lambda x: jnp.clip(x, -1, 1))(scaled(tiny, -16, np.float16))), tiny)
    large = draw(64) * 2.0**30
    np.testing.assert_allclose(value(jsa.scalify(lambda x: jnp.clip(x, -1, 3))(scaled(large, 30))), np.clip(large, -1, 3), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_infinities_stay(dtype):
    infinite = np.float32(np.inf)
    cases = {
        "log": (jnp.log, [0, 1], [-infinite, 0]),
        "quotient": (lambda x: 1 / x, [0, 4], [infinite, 0.25]),
        "product": (lambda x: x * 2, [infinite, 4], [infinite, 8]),
        "difference": (lambda x: x - x, [infinite, 4], [np.nan, 0]),
        "largest": (lambda x: jnp.maximum(x, -infinite), [8, 12], [8, 12]),
        "chosen": (lambda x: jnp.where(x > 8, x, -infinite), [8, 12], [-infinite, 12]),
    }
    for name, (function, given, expected) in cases.items():
        np.testing.assert_array_equal(value(jsa.scalify(function)(scaled(given, 2, dtype))), np.float32(expected), name)
    large = value(jsa.scalify(lambda x: jnp.exp(x))(scaled([20, 0], 2, np.float16)))
    np.testing.assert_array_equal(large, np.float32([np.inf, 1]), "a rounding of the program overflows")


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_beside_an_infinite_scale_others_stay(dtype):
    x, infinite = scaled([8, 12], 2, dtype), jsa.ScaledArray._of(np.array([-np.inf, np.inf], dtype), np.float32(np.inf))
    np.testing.assert_array_equal(value(jsa.lax.scaled_max(x, infinite)), [8, np.inf])
    np.testing.assert_array_equal(value(jsa.scalify(jnp.minimum)(x, infinite)), [-np.inf, 12])
    np.testing.assert_array_equal(value(jsa.scalify(lambda x, y: jnp.where(jnp.array([True, False]), x, y))(x, infinite)), [8, np.inf])
    np.testing.assert_array_equal(np.asarray(jsa.scalify(lambda x, y: x > y)(x, infinite)), [True, False])
    joined = jsa.scalify(lambda x, y: jnp.concatenate([x, y]))(x, infinite)
    np.testing.assert_array_equal(value(joined), [8, 12, -np.inf, np.inf])
    assert joined.scale == x.scale
