"""dot_general, convolutions and windows, forward and gradient."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax
from oracle import check, few

from scalide import Program, build
from scalide.jax import TraceError, trace

extents = st.sampled_from([1, 3, 4, 9])
floats = st.sampled_from(["float32", "float16", "bfloat16"])


def normal(seed, shape, dtype="float32"):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), dtype)


@few
@given(b=extents, m=extents, k=extents, n=extents, dtype=floats, seed=st.integers(0, 1000))
def test_dot_general(b, m, k, n, dtype, seed):
    x, y = normal(seed, (b, m, k), dtype), normal(seed + 1, (b, k, n), dtype)
    i = jnp.asarray(np.random.default_rng(seed).integers(-9, 9, (m, k)), jnp.int8)
    check({
        "batched": (jnp.matmul, (x, y)),
        "matrix": (lambda x, y: x[0] @ y[0], (x, y)),
        "vector": (lambda x, y: x[0] @ y[0, :, 0], (x, y)),
        "transposed": (lambda x, y: lax.dot_general(x, y, (((2,), (1,)), ((), ()))), (x, y)),
        "two_axes": (lambda x: jnp.einsum("bmk,bmk->", x, x), (x,)),
        "batch_last": (lambda x, y: jnp.einsum("bmk,bkn->mnb", x, y), (x, y)),
        "outer": (lambda x, y: jnp.einsum("bmk,bkn->bmkn", x, y), (x, y)),
        "tensordot": (lambda x, y: jnp.tensordot(x, y, ((0, 2), (0, 1))), (x, y)),
        "wide": (lambda x, y: lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,))), preferred_element_type=jnp.float32), (x, y)),
        "integers": (lambda i: lax.dot_general(i, i, (((1,), (1,)), ((), ())), preferred_element_type=jnp.int32), (i,)),
    })  # fmt: skip


def product(preferred):
    return lambda x, y: lax.dot_general(x, y, (((1,), (1,)), ((), ())), preferred_element_type=preferred)


def test_products_of_two_kinds_of_dtypes():
    """Integers and bools with floats: as in JAX, they are converted to the dtype of the result, then multiplied."""
    draw = np.random.default_rng(0)
    f32, i32 = normal(0, (4, 5)), jnp.asarray(draw.integers(-(2**31), 2**31 - 1, (3, 5)), jnp.int32)
    i8, bits = jnp.asarray(draw.integers(-128, 128, (3, 5)), jnp.int8), jnp.asarray(draw.random((3, 5)) > 0.5)
    check({
        "f32_i8": (product(jnp.float32), (f32, i8)),
        "i32_f32": (product(None), (i32, f32)),  # most of these integers are no f32
        "f32_bool": (product(None), (f32, bits)),
        "bf16_i32": (product(None), (f32.astype(jnp.bfloat16), i32)),
        "bf16_bool_f32": (product(jnp.float32), (f32.astype(jnp.bfloat16), bits)),
        "i8_i8_f32": (product(jnp.float32), (i8, i8)),
        "i32_i32_f32": (product(jnp.float32), (i32, i32)),
        "bool_bool_f32": (product(jnp.float32), (bits, bits)),
        "i32_f16": (product(None), (i32, f32.astype(jnp.float16))),  # most are infinite in f16
        "f16_i32": (product(None), (f32.astype(jnp.float16), i32)),
        "i32_times_f16": (lambda x, y: x * y, (i32, f32[:3].astype(jnp.float16))),
        "i32_f16_f32": (product(jnp.float32), (i32, f32.astype(jnp.float16))),
        "bool_i8": (product(None), (bits, i8)),
        "bool_bool_i32": (product(jnp.int32), (bits, bits)),
        "convolution": (lambda x, w: lax.conv_general_dilated(x[None], w[:, :, None], (1,), "SAME", preferred_element_type=jnp.float32), (i8.T, i8)),
    }, gradient=False)  # fmt: skip


def test_integer_products():
    draw = np.random.default_rng(1)

    def integers(shape, dtype):
        ends = np.iinfo(dtype)
        return jnp.asarray(draw.choice([ends.min, ends.max, *draw.integers(ends.min, ends.max, 6, endpoint=True)], shape).astype(dtype))

    def operands(m, n, k, lhs, rhs):
        return integers((m, k), lhs), integers((n, k), rhs)

    check({
        "i8": (product(jnp.int32), operands(9, 33, 70, "int8", "int8")),
        "u8": (product(jnp.int32), operands(9, 33, 70, "uint8", "uint8")),
        "i8_to_i8": (product(None), operands(5, 4, 6, "int8", "int8")),
        "i16": (product(jnp.int32), operands(9, 33, 70, "int16", "int16")),
        "i32": (product(None), operands(5, 4, 6, "int32", "int32")),
        "row": (product(jnp.int32), operands(1, 33, 70, "int8", "int8")),
        "column": (product(jnp.int32), operands(9, 1, 70, "int8", "int8")),
        "one": (product(jnp.int32), operands(1, 1, 70, "int8", "int8")),
        "no_terms": (product(jnp.int32), operands(3, 4, 0, "int8", "int8")),
        "converted": (lambda x, y: x.astype(jnp.int32) @ y.astype(jnp.int32).T, operands(9, 33, 70, "int8", "uint8")),
        "batched": (lambda x, y: jnp.einsum("bmk,bkn->bmn", x, y, preferred_element_type=jnp.int32), (integers((3, 5, 7), "int8"), integers((3, 7, 6), "int8"))),
        "two_axes": (lambda x, y: jnp.einsum("amk,kna->nm", x, y, preferred_element_type=jnp.int32), (integers((3, 5, 7), "int8"), integers((7, 6, 3), "int8"))),
        "convolution": (lambda x, w: lax.conv_general_dilated(x, w, (1, 1), "VALID", preferred_element_type=jnp.int32), (integers((2, 3, 5, 20), "int8"), integers((4, 3, 2, 3), "int8"))),
        "padded_convolution": (lambda x, w: lax.conv_general_dilated(x, w, (2, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), preferred_element_type=jnp.int32),
                               (integers((2, 5, 9, 6), "uint8"), integers((3, 2, 6, 20), "uint8"))),
        "quantized": (lambda x, y, s, b: jnp.clip(jnp.round(product(jnp.int32)(x, y).astype(jnp.float32) * s + b), -128, 127).astype(jnp.int8),
                      (*operands(9, 33, 70, "int8", "int8"), jnp.full((33,), 2.0**-14), jnp.arange(33.0))),
    }, gradient=False)  # fmt: skip


def test_float_products_of_an_integer_dtype_are_refused():
    with pytest.raises(TraceError, match="dot_general: a matmul of floats must have a float result, got i32. Leave out preferred_element_type"):
        trace(product(jnp.int32), normal(0, (4, 5)), normal(1, (3, 5)))


@few
@given(stride=st.sampled_from([(1, 1), (2, 1), (2, 2)]), padding=st.sampled_from(["SAME", "VALID", [(1, 2), (0, 1)]]), dilation=st.sampled_from([(1, 1), (1, 2)]),
       lhs_dilation=st.sampled_from([(1, 1), (2, 1)]), layout=st.sampled_from(["NCHW", "NHWC"]), groups=st.sampled_from([1, 2]), seed=st.integers(0, 1000))  # fmt: skip
def test_convolutions(stride, padding, dilation, lhs_dilation, layout, groups, seed):
    images, weights = (2, 4, 8, 7), (6, 4 // groups, 3, 2)
    specs = ("NCHW", "OIHW", "NCHW")
    if layout == "NHWC":
        images, weights, specs = (2, 8, 7, 4), (3, 2, 4 // groups, 6), ("NHWC", "HWIO", "NHWC")
    if isinstance(padding, str) and lhs_dilation != (1, 1):
        padding = [(0, 1), (1, 1)]

    def convolve(x, w):
        return lax.conv_general_dilated(x, w, stride, padding, lhs_dilation, dilation, specs, groups)

    check({"2d": (convolve, (normal(seed, images), normal(seed + 1, weights))),
           "1d": (lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME"), (normal(seed, (2, 3, 9)), normal(seed + 1, (4, 3, 3))))})  # fmt: skip


@few
@given(window=st.sampled_from([(2, 2), (3, 1)]), stride=st.sampled_from([(1, 1), (2, 2)]), padding=st.sampled_from(["SAME", "VALID"]), dtype=floats,
       seed=st.integers(0, 1000))  # fmt: skip
def test_windows(window, stride, padding, dtype, seed):
    x = normal(seed, (2, 7, 6, 3), dtype)
    window, stride = (1, *window, 1), (1, *stride, 1)
    low, high, zero = (np.asarray(v, dtype) for v in (-np.inf, np.inf, 0))
    check({
        "max": (lambda x: lax.reduce_window(x, low, lax.max, window, stride, padding), (x,)),
        "min": (lambda x: lax.reduce_window(x, high, lax.min, window, stride, padding), (x,)),
        "sum": (lambda x: lax.reduce_window(x, zero, lax.add, window, stride, padding), (x,)),
        "dilated": (lambda x: lax.reduce_window(x, zero, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "VALID", window_dilation=(1, 2, 1, 1)), (x,)),
    })  # fmt: skip


def test_numpy_convolutions():
    """Without batch and features, with weights in reverse order."""
    x, w = normal(0, (12,)), normal(1, (3,))
    check({"1d": (jnp.convolve, (x, w)), "2d": (lambda x, w: jax.scipy.signal.convolve2d(x.reshape(3, 4), w[None]), (x, w))})


def test_window_by_a_function():
    x = normal(0, (5, 6))
    check({"norm": (lambda x: lax.reduce_window(x, jnp.float32(0), lambda a, b: jnp.sqrt(a * a + b * b), (2, 2), (1, 1), "VALID"), (x,))}, gradient=False)


def test_second_derivative_of_a_window():
    x = normal(0, (1, 6, 6, 1))

    def pooled(x):
        return lax.reduce_window(jnp.sin(x), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    check({"jvp": (lambda x: jax.jvp(pooled, (x,), (jnp.cos(x),))[1], (x,)), "hessian": (jax.grad(lambda x: jax.grad(lambda x: pooled(x).sum())(x).sum()), (x,))})


def test_products_of_bools():
    generator = np.random.default_rng(7)
    x, y = (jnp.asarray(generator.random(shape) < 0.2) for shape in [(5, 300), (300, 4)])
    check({"matmul": (lambda x, y: x @ y, (x, y)), "einsum": (lambda x, y: jnp.einsum("ij,jk->i", x, y), (x, y))}, gradient=False)


@pytest.mark.parametrize("policy", ["f32", "bf16", "f16_master", "f16_scaled", "f8_master", "f8_scaled", "f8_delayed", "f8_row", "f8_block", "mxfp8"])
def test_products_without_a_sum_are_not_rounded(policy):
    """Angles of rotary embeddings, and a gradient whose JAX program has a dot_general without a sum: policies mean sums."""
    steps, inverse = np.arange(2048, dtype=np.float32), np.float32(1 / 10000 ** (np.arange(0, 32, 2) / 32))
    cases = {
        "angles": lambda t, w: jnp.cos(jnp.einsum("i,j->ij", t, w)),
        "one": lambda t, w: jnp.cos(t[:, None] @ w[None, :]),
        "batch": lambda t, w: jnp.cos(jnp.einsum("bi,bj->bij", t.reshape(1, -1), w.reshape(1, -1))[0]),
        "mapped": lambda t, w: jnp.cos(jax.vmap(lambda a: jax.vmap(jnp.dot, (None, 0))(a, w))(t)),
    }
    want = np.cos(steps.astype(np.float64)[:, None] * inverse.astype(np.float64))
    for name, f in cases.items():
        library = build(trace(f, steps, inverse), numerics=policy)
        assert "matmuls" not in library.summary and not library.init(), name
        assert np.abs(library(steps, inverse) - want).max() <= 6e-5, name

    def gradient(w, x):
        return jax.grad(lambda w: jnp.sum(jnp.tanh(w * x)))(w), jax.jacrev(lambda w: w @ x)(w[None])

    w, x = np.asarray(normal(0, (8,))), np.asarray(normal(1, (8,)))
    for got, expected in zip(build(trace(gradient, w, x), numerics="f32")(w, x), jax.jit(gradient)(w, x)):
        np.testing.assert_allclose(got, expected, rtol=1e-6)


@pytest.mark.parametrize("policy", ["f16_master", "f16_scaled"])
def test_hidden_operands_of_f16_policies_are_f16(policy):
    """An array between two matmuls keeps the 11 bits of f16: it is not stored in bf16, which has 8."""
    x, w, v = np.asarray(normal(0, (64, 256))), np.asarray(normal(1, (256, 512))) / 16, np.asarray(normal(2, (512, 64))) / 22
    want = np.tanh(x.astype(np.float64) @ w.astype(np.float64)) @ v.astype(np.float64)
    got = build(trace(lambda x, w, v: jnp.tanh(x @ w) @ v, x, w, v), numerics=policy)(x, w, v)
    assert np.linalg.norm(got - want) <= 5e-4 * np.linalg.norm(want)


def test_ragged_dot():
    """One matmul for each group of rows. A group may be empty, and rows after the last group give zeros. JAX decomposes its primitive; programs in
    text and C++ have the operator."""
    x, w = normal(0, (12, 8)), normal(1, (3, 8, 5))
    gradient = jax.grad(lambda x, w, sizes: jnp.sum(jnp.sin(lax.ragged_dot(x, w, sizes))), (0, 1))
    library, gradients = build(trace(lax.ragged_dot, x, w, jnp.int32([4, 0, 8]))), build(trace(gradient, x, w, jnp.int32([4, 0, 8])))
    text = "program p(x: f32[12, 8], w: f32[3, 8, 5], sizes: i32[3]) -> (y: f32[12, 5]) {\n  y = ragged_dot(x, w, sizes)\n}\n"
    operator = build(Program(text))
    for sizes in ([4, 0, 8], [12, 0, 0], [1, 2, 3]):
        rows, groups = np.zeros((12, 5)), np.repeat(np.arange(3), sizes)
        for row, group in enumerate(groups):
            rows[row] = np.float64(x[row]) @ np.float64(w[group])
        for run in library, operator:
            np.testing.assert_allclose(run(x, w, jnp.int32(sizes)), rows, atol=2e-6)  # sums of 8 products
        dx, dw = gradients(x, w, jnp.int32(sizes))
        for row, group in enumerate(groups):
            np.testing.assert_allclose(dx[row], np.float64(w[group]) @ np.cos(rows[row]), atol=2e-6)
        np.testing.assert_array_equal(dx[len(groups):], 0)
        np.testing.assert_allclose(dw[2], np.float64(x[: len(groups)][groups == 2]).T @ np.cos(rows[: len(groups)][groups == 2]), atol=5e-6)


INFINITE = np.ones((8, 16), np.float32)
INFINITE[0, 0] = np.inf
FACTOR = np.ones((8, 4), np.float32)
FACTOR[0, :2] = 0  # inf * 0 is NaN


@pytest.mark.parametrize("test", [jnp.isfinite, jnp.isnan, jnp.isinf, jnp.nan_to_num, lambda y: y == y, lambda y: jnp.abs(y) < jnp.inf, lambda y: jnp.where(y > 3, 1.0, y),
                                  lambda y: jnp.isfinite(y).all(), lambda y: (y, jnp.isnan(y).any()), lambda y: jnp.isnan(y + 1)],
                         ids="finite nan inf nan_to_num equal less where all stored sum".split())  # fmt: skip
@pytest.mark.parametrize("product", ["matrix", "batch", "long", "row", "convolution"])
def test_a_test_of_a_product_sees_infinities_and_nan(product, test):
    """LLVM assumes that the sums of a product are finite. What the same kernel computes from them must not be folded because of that."""
    if product == "convolution":
        args = INFINITE[None, None], np.ones((2, 1, 3, 3), np.float32)

        def f(x, y):
            return test(lax.conv_general_dilated(x, y, (1, 1), "SAME"))
    else:
        x, y = INFINITE.T.copy(), FACTOR
        args = {"matrix": (x, y), "batch": (x[None], y[None]), "row": (x[:1], y), "long": (np.tile(x, 400), np.tile(y, (400, 1)))}[product]

        def f(x, y):
            return test(x @ y)

    got, want = build(trace(f, *args))(*args), jax.jit(f)(*args)
    for ours, theirs in zip(*map(jax.tree_util.tree_leaves, (got, want))):
        np.testing.assert_array_equal(ours, theirs)
