"""Sums of up to ten million products stay as accurate as short ones. Kernels add f32 terms in blocks (generators/lower/rows/blocked_sum.h):
an accumulator that added all terms one after the other would be wrong by 2e-4 at a million of them.

Tolerance: 2e-6 of the float64 sum of the same numbers, for random terms of one sign. A chain of 1,024 additions is wrong by up to
0.24 * 2^-24 * sqrt(1024) * 4 = 1.8e-6 in the worst of a thousand elements; what follows a block is rounded less often.
"""
import ml_dtypes
import numpy as np
import pytest

from scalide import Library

TOLERANCE = 2e-6
FORMATS = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f8_e4m3fn": ml_dtypes.float8_e4m3fn}
PRODUCTS = {  # operands of a product, and the axes that it contracts
    "rows_by_columns": ("{m}, {k}", "{k}, {n}", "[[1], [0]]", "mk,kn->mn"),
    "rows_by_rows": ("{m}, {k}", "{n}, {k}", "[[1], [1]]", "mk,nk->mn"),
    "columns_by_columns": ("{k}, {m}", "{k}, {n}", "[[0], [0]]", "km,kn->mn"),
}


@pytest.fixture
def build(libraries):
    return lambda text: Library(libraries(text))


def draw(shape, seed, dtype=np.float32):
    return np.random.default_rng(seed).random(shape, dtype=np.float32).astype(dtype)


def expect_close(got, exact):
    error = np.abs(np.asarray(got, np.float64) - exact) / exact
    assert error.max() <= TOLERANCE, f"relative error {error.max():.2e}"


def extents(text, **numbers):
    return tuple(int(word.strip()) for word in text.format(**numbers).split(","))


@pytest.mark.parametrize("dtype", FORMATS)
@pytest.mark.parametrize("product", PRODUCTS)
def test_product(build, product, dtype):
    left, right, contract, formula = PRODUCTS[product]
    k_of = {"k": "k", "m": 5, "n": 19}
    library = build(
        f"program p(x: {dtype}[{left.format(**k_of)}], w: {dtype}[{right.format(**k_of)}]) -> (y: f32[5, 19]) {{\n"
        f"  a = convert_element_type(x) {{dtype: f32}}\n  b = convert_element_type(w) {{dtype: f32}}\n"
        f"  y = dot_general(a, b) {{contract: {contract}}}\n}}\n")
    for k in (1023, 1024, 1025, 65 * 1024 + 1, 300_000):
        x, w = (draw(extents(side, k=k, m=5, n=19), seed, FORMATS[dtype]) for seed, side in enumerate((left, right)))
        expect_close(library(x, w), np.einsum(formula, x.astype(np.float64), w.astype(np.float64)))


@pytest.mark.parametrize("shape", [(3, 1_000_000, 2), (1, 10_000_000, 1)])
def test_product_of_known_extents(build, shape):
    m, k, n = shape
    library = build(f"program p(x: f32[{m}, {k}], w: f32[{k}, {n}]) -> (y: f32[{m}, {n}]) {{\n  y = dot_general(x, w) {{contract: [[1], [0]]}}\n}}\n")
    x, w = draw((m, k), 0), draw((k, n), 1)
    expect_close(library(x, w), x.astype(np.float64) @ w.astype(np.float64))


def test_gradient_of_a_bias_beside_that_of_a_weight(build):
    library = build(
        "program p(x: f32[b, 3], d: f32[b, 20]) -> (w: f32[3, 20], bias: f32[20]) {\n"
        "  w = dot_general(x, d) {contract: [[0], [0]]}\n  bias = reduce_sum(d) {axes: [0]}\n}\n")
    for rows in (1, 1024, 1025, 400_000):
        x, d = draw((rows, 3), 0), draw((rows, 20), 1)
        weight, bias = library(x, d)
        expect_close(weight, x.astype(np.float64).T @ d.astype(np.float64))
        expect_close(bias, d.sum(0, dtype=np.float64))


@pytest.mark.parametrize("rows", ["n", 1_000_000])
def test_columns(build, rows):
    library = build(f"program p(x: f32[{rows}, 3]) -> (y: f32[3], most: f32[3]) {{\n  y = reduce_sum(x) {{axes: [0]}}\n  most = reduce_max(x) {{axes: [0]}}\n}}\n")
    for count in (127, 128, 64 * 128, 64 * 128 + 1, 200 * 128 + 77, 1_000_000) if rows == "n" else (rows,):
        x = draw((count, 3), 0)
        y, most = library(x)
        expect_close(y, x.sum(0, dtype=np.float64))
        np.testing.assert_array_equal(most, x.max(0))


@pytest.mark.parametrize("images", ["b", 40])
def test_convolution_of_weights(build, images):
    """The gradient of the weights of a convolution sums over images and places: 40 * 60 * 50 terms."""
    library = build(
        f"program p(x: f32[{images}, 62, 50, 2], d: f32[{images}, 60, 50, 9]) -> (w: f32[3, 1, 2, 9]) {{\n"
        "  w = conv_general_dilated(x, d) {lhs_spec: [3, 0, 1, 2], rhs_spec: [3, 0, 1, 2], out_spec: [2, 3, 0, 1]}\n}\n")
    for count in (1, 7, 40) if images == "b" else (images,):
        x, d = draw((count, 62, 50, 2), 0), draw((count, 60, 50, 9), 1)
        exact = np.stack([np.einsum("bijf,bijg->fg", x[:, i : i + 60].astype(np.float64), d.astype(np.float64)) for i in range(3)])
        expect_close(library(x, d)[:, 0], exact)


def test_convolution_over_many_features(build):
    library = build(
        "program p(x: f32[1, 6, 6, 3000], w: f32[3, 3, 3000, 5]) -> (y: f32[1, 4, 4, 5]) {\n"
        "  y = conv_general_dilated(x, w) {lhs_spec: [0, 3, 1, 2], rhs_spec: [3, 2, 0, 1], out_spec: [0, 3, 1, 2]}\n}\n")
    x, w = draw((1, 6, 6, 3000), 0), draw((3, 3, 3000, 5), 1)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (3, 3), (1, 2))
    expect_close(library(x, w), np.einsum("bijcuv,uvco->bijo", windows, w.astype(np.float64)))


def test_infinity_and_nan_are_sums_of_their_column_alone(build):
    library = build("program p(x: f32[2, k], w: f32[k, 4]) -> (y: f32[2, 4]) {\n  y = dot_general(x, w) {contract: [[1], [0]]}\n}\n")
    for place in (0, 1500, 99_999):
        x, w = np.ones((2, 100_000), np.float32), np.ones((100_000, 4), np.float32)
        w[place, 1], w[place, 2] = np.inf, np.nan
        y = np.asarray(library(x, w))
        np.testing.assert_array_equal(y, np.array([[100_000, np.inf, np.nan, 100_000]] * 2, np.float32))
