"""jax.nn.scaled_matmul and jax.nn.scaled_dot_general. JAX has these products for GPUs alone: the oracle is its quantization and gradient around
the product that its documentation gives."""
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from oracle import differs

import scalide
import scalide.jax

try:
    from jax._src.cudnn import scaled_matmul_stablehlo as module
except ImportError:
    module = None
pytestmark = pytest.mark.skipif(module is None or not hasattr(jax.nn, "scaled_dot_general"), reason="this JAX has no jax.nn.scaled_dot_general")


def documented(lhs, rhs, lhs_scales, rhs_scales, preferred_element_type=np.float32):
    def wide(codes, scales):
        return codes.astype(jnp.float32) * jnp.repeat(scales.astype(jnp.float32), codes.shape[-1] // scales.shape[-1], axis=-1)

    product = jnp.einsum("BMK,BNK->BMN", wide(lhs, lhs_scales), wide(rhs, rhs_scales), precision="highest")
    return product.astype(preferred_element_type)


def in_jax(monkeypatch, fn, *args):
    with monkeypatch.context() as patch:
        patch.setattr(module, "_scaled_matmul", documented)
        jax.clear_caches()
        want = jax.tree.leaves(jax.jit(lambda *args: fn(*args))(*args))
    jax.clear_caches()
    return want


def check(monkeypatch, fn, *args):
    same(monkeypatch, scalide.build(scalide.jax.trace(fn, *args))(*args), fn, *args)


def same(monkeypatch, got, fn, *args):
    """Equal codes, sums of at most 96 terms in another order: each element is as near as 96 roundings of f32 beside the sum of its terms'
    magnitudes."""
    want, terms = in_jax(monkeypatch, fn, *args), in_jax(monkeypatch, fn, *map(np.abs, args))
    problems = [differs(a, b, 96 * 2.0**-24 * np.asarray(each, np.float64)) for a, b, each in zip(jax.tree.leaves(got), want, terms, strict=True)]
    assert not any(problems), problems


def uneven(seed, shape):
    """Rows of very different magnitudes, one of zeros."""
    random = np.random.default_rng(seed)
    rows = np.exp2(random.integers(-12, 12, (*shape[:-1], 1)))
    rows[..., -1, :] = 0
    return (random.standard_normal(shape) * rows).astype(np.float32)


@pytest.mark.parametrize("scale_type, dtype", [(ml_dtypes.float8_e8m0fnu, "float32"), (np.float32, "float32"), (np.float32, "bfloat16")])
@pytest.mark.parametrize("b, blocks", [(1, 2), (3, 2), (1, 1)])
def test_scaled_matmul(monkeypatch, scale_type, dtype, b, blocks):
    random = np.random.default_rng(b)
    codes = [random.standard_normal((b, rows, 64)).astype(ml_dtypes.float8_e4m3fn) for rows in (32, 48)]
    scales = [np.exp2(random.integers(-5, 5, (b, rows, blocks))).astype(scale_type) for rows in (32, 48)]
    check(monkeypatch, lambda *args: jax.nn.scaled_matmul(*args, preferred_element_type=jnp.dtype(dtype)), *codes, *scales)


def mxfp8(lhs, rhs, numbers=(((1,), (0,)), ((), ())), dtype=jnp.float32):
    return jax.nn.scaled_dot_general(lhs, rhs, numbers, dtype, configs=[jax.nn.get_scaled_dot_general_config("mxfp8")] * 3)


def test_mxfp8(monkeypatch):
    check(monkeypatch, mxfp8, uneven(0, (32, 64)), uneven(1, (64, 96)))
    batched = (((2,), (2,)), ((0,), (0,)))
    check(monkeypatch, lambda x, w: mxfp8(x, w, batched), uneven(2, (3, 32, 64)), uneven(3, (3, 96, 64)))


def test_gradient_of_mxfp8(monkeypatch):
    """JAX quantizes the cotangent and the other operand again."""
    gradients = jax.grad(lambda x, w, ct: (mxfp8(x, w) * ct).sum(), (0, 1))
    check(monkeypatch, gradients, uneven(0, (32, 64)), uneven(1, (64, 96)), uneven(2, (32, 96)))


def plain(x, w):
    return x @ w


def gradients(f):
    return jax.grad(lambda x, w, ct: (f(x, w) * ct).sum(), (0, 1))


def batched(x, w):
    return mxfp8(x, w, (((2,), (1,)), ((0,), (0,))))


@pytest.mark.parametrize("theirs, ours, shapes", [(mxfp8, plain, [(32, 64), (64, 96)]), (batched, plain, [(3, 32, 64), (3, 64, 96)]),
                                                  (gradients(mxfp8), gradients(plain), [(32, 64), (64, 96), (32, 96)])],
                         ids=["product", "batched", "gradients"])  # fmt: skip
def test_policy_mxfp8(monkeypatch, theirs, ours, shapes):
    """A product under the policy is JAX's of the same blocks."""
    args = [uneven(seed, shape) for seed, shape in enumerate(shapes)]
    same(monkeypatch, scalide.build(scalide.jax.trace(ours, *args), numerics="mxfp8")(*args), theirs, *args)


def test_nvfp4_is_one_clear_error():
    configs = [jax.nn.get_scaled_dot_general_config("nvfp4")] * 3
    with pytest.raises(NotImplementedError, match="dtypes must be among .*, got float4_e2m1fn"):
        scalide.jax.trace(lambda x, w: jax.nn.scaled_dot_general(x, w, (((1,), (0,)), ((), ())), configs=configs), jnp.ones((16, 64)), jnp.ones((64, 32)))
