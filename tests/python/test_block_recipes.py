"""Policies with scales for blocks and rows: forward and backward matmuls against the published formulas, written element by element. No JAX.

f8_block: DeepSeek-V3 (arXiv 2412.19437, section 3.3.2; inference/kernel.py). f8_row: torchao, recipe rowwise (torchao/float8). mxfp8_floor.yaml: OCP
Microscaling Formats 1.0, section 6.3. mxfp8: cuBLAS, "D block quantization", which Transformer Engine and JAX follow."""
import re
import subprocess
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from conftest import TOOL

from scalide import Library

LAYER = """program loss(x: f32[M, K], w: f32[K, N], ct: f32[M, N]) -> (l: f32[]) {
  y = dot_general(x, w) {contract: [[1], [0]]}
  z = mul(y, ct)
  l = reduce_sum(z) {axes: [0, 1]}
}
program layer(x: f32[M, K], w: f32[K, N], ct: f32[M, N]) -> (y: f32[M, N], gx: f32[M, K], gw: f32[K, N]) {
  y = dot_general(x, w) {contract: [[1], [0]]}
  l, gx, gw = value_and_grad(x, w, ct) {program: loss, wrt: [x, w]}
}
"""
E4M3 = {"dtype": ml_dtypes.float8_e4m3fn, "largest": np.float32(448), "power": 8}


def quotient(top):
    return top / E4M3["largest"]


def ceil(top):
    scale = np.float64(1)
    while float(top) > float(scale) * 448:
        scale *= 2
    while float(top) <= float(scale) * 224:
        scale /= 2
    return np.float32(scale)


def floor(top):
    return np.float32(2.0 ** (np.floor(np.log2(np.float64(top))) - E4M3["power"]))


def rounded(matrix, rows, columns, scale_of):
    """The matrix with each block of rows x columns rounded to e4m3 by its own scale, as f64. Blocks at the edges are smaller."""
    result = np.empty(matrix.shape)
    for i in range(0, matrix.shape[0], rows):
        for j in range(0, matrix.shape[1], columns):
            block = matrix[i : i + rows, j : j + columns]
            top = np.abs(block).max()
            scale = np.maximum(scale_of(top), np.float32(2.0**-126)) if 0 < top < np.inf else np.float32(1)
            codes = np.clip(block / scale, -E4M3["largest"], E4M3["largest"]).astype(E4M3["dtype"])
            result[i : i + rows, j : j + columns] = codes.astype(np.float64) * np.float64(scale)
    return result


#: policy: (extent of a block along the sum, rows of a block of the weight, the scale of a largest magnitude). 0: the whole axis.
FLOOR = str(Path(__file__).parent / "mxfp8_floor.yaml")
RECIPES = {"f8_block": (128, 128, quotient), "f8_row": (0, 1, quotient), "mxfp8": (32, 1, ceil), FLOOR: (32, 1, floor)}


def expected(policy, x, w, ct):
    """y, gx and gw. A left operand is [rows, k], a right one [k, columns]."""
    block, rows, scale_of = RECIPES[policy]

    def product(a, b, rows_of_b=1):
        length = block or a.shape[1]
        return rounded(a, 1, length, scale_of) @ rounded(b, length, rows_of_b, scale_of)

    return product(x, w, rows), product(ct, w.T, rows), product(x.T, ct)


def uneven(seed, shape):
    """Numbers of many sizes, with zeros: a block of 128 x 128, part of a row, and a column."""
    random = np.random.default_rng(seed)
    array = random.standard_normal(shape) * np.exp2(random.integers(-12, 12, shape))
    array[128:, :128] = 0
    array[1, :40] = 0
    array[:, 3] = 0
    return array.astype(np.float32)


def close(got, expected, terms):
    """f32 sums of `terms` products, in any order."""
    bound = terms * 2.0**-23 * np.abs(expected).max(axis=-1, keepdims=True)
    assert np.all(np.abs(got - expected) <= np.maximum(bound, 1e-30)), np.abs(got - expected).max() / np.abs(expected).max()


def text_of(m, k, n, text=LAYER):
    return re.sub(r"\b[MKN]\b", lambda name: str({"M": m, "K": k, "N": n}[name[0]]), text)


@pytest.mark.parametrize("m, k, n", [(256, 256, 128), (130, 200, 150)], ids=["whole", "padded"])
@pytest.mark.parametrize("policy", RECIPES, ids=lambda policy: Path(policy).stem)
def test_forward_and_gradients(libraries, policy, m, k, n):
    arrays = uneven(0, (m, k)), uneven(1, (k, n)), uneven(2, (m, n))
    results = Library(libraries(text_of(m, k, n), policy))(*arrays)
    for got, wanted, terms in zip(results, expected(policy, *arrays), (k, n, m), strict=True):
        close(got, wanted, terms)


@pytest.mark.parametrize("policy", RECIPES, ids=lambda policy: Path(policy).stem)
def test_magnitudes_at_the_ends_of_a_binade(libraries, policy):
    """The largest magnitude is 448 times a power of two, or its neighbour in f32; or tiny, where a scale is at least 2^-126."""
    product = "program p(x: f32[12, 32], w: f32[32, 1]) -> (y: f32[12, 1]) {\n  y = dot_general(x, w) {contract: [[1], [0]]}\n}\n"
    tops = np.float32([448, np.nextafter(np.float32(448), np.float32(0)), np.nextafter(np.float32(448), np.float32(500)), 449, 511, 512, 256, 255, 224, 3.5e-38, 1.4e-45, 3e38])
    x = np.zeros((12, 32), np.float32)
    x[:, 0], x[:, 1], x[:, 2] = tops, tops / 7, tops / 3000
    w = np.zeros((32, 1), np.float32)
    for row in range(3):
        w[:] = 0
        w[row] = 1
        got = Library(libraries(product, policy))(x, w)
        block, rows, scale_of = RECIPES[policy]
        close(got, rounded(x, 1, block or 32, scale_of) @ rounded(w, block or 32, rows, scale_of), 1)


@pytest.mark.parametrize("policy", RECIPES, ids=lambda policy: Path(policy).stem)
def test_powers_of_two_give_the_same_digits(libraries, policy):
    """Scales follow the data, so arrays times a power of two are rounded alike, and the order of the products of scales must not change."""
    layer = Library(libraries(text_of(130, 200, 150), policy))
    random = np.random.default_rng(3)
    x, w, ct = (random.standard_normal(shape).astype(np.float32) for shape in ((130, 200), (200, 150), (130, 150)))
    y, gx, gw = layer(x, w, ct)
    for power in (-30, -13, 13, 30):
        factor = np.float32(2.0**power)
        for arrays, factors in (((x * factor, w, ct), (factor, 1, factor)), ((x, w * factor, ct), (factor, factor, 1)), ((x, w, ct * factor), (1, factor, factor))):
            for got, wanted, times in zip(layer(*arrays), (y, gx, gw), factors, strict=True):
                np.testing.assert_array_equal(got, wanted * np.float32(times))


@pytest.mark.parametrize("policy", RECIPES, ids=lambda policy: Path(policy).stem)
def test_infinities_and_nan_stay_in_their_rows(libraries, policy):
    product = "program p(x: f32[4, 32], w: f32[32, 8]) -> (y: f32[4, 8]) {\n  y = dot_general(x, w) {contract: [[1], [0]]}\n}\n"
    x, w = np.ones((4, 32), np.float32), np.ones((32, 8), np.float32)
    x[0, 0], x[1, 0], x[2, :] = np.inf, np.nan, 0
    got = Library(libraries(product, policy))(x, w)
    assert np.all(np.isnan(got[:2])), "e4m3 has no infinity"
    assert np.all(got[2] == 0) and np.allclose(got[3], 32), got


def test_a_weight_in_square_blocks_has_one_rounded_copy(tmp_path):
    """Forward pass and data gradient read the same copy. x and ct are rounded along both axes."""
    (tmp_path / "layer.scl").write_text(text_of(128, 256, 384))
    printed = subprocess.run([TOOL, "inspect", tmp_path / "layer.scl", "-n", "f8_block"], check=True, capture_output=True, text=True).stdout
    assert f"f8_e4m3fn {2 * 128 * 256 + 2 * 128 * 384 + 256 * 384} bytes" in printed, printed.splitlines()[-2]


def test_weights_on_the_left_and_batches(libraries):
    """A weight may be the left operand. In a batched matmul no block has elements of two matrices."""
    left = "program p(w: f32[130, 200], x: f32[200, b]) -> (y: f32[130, b]) {\n  y = dot_general(w, x) {contract: [[1], [0]]}\n}\n"
    w, x = uneven(0, (130, 200)), uneven(1, (200, 5))
    close(Library(libraries(left, "f8_block"))(w, x), rounded(w, 128, 128, quotient) @ rounded(x, 128, 1, quotient), 200)
    batched = "program p(x: f32[2, 3, 130, 40], w: f32[2, 3, 40, 20]) -> (y: f32[2, 3, 130, 20]) {\n  y = dot_general(x, w) {contract: [[3], [2]], batch: [[0, 1], [0, 1]]}\n}\n"
    x, w = (np.random.default_rng(3).standard_normal(shape).astype(np.float32) for shape in ((2, 3, 130, 40), (2, 3, 40, 20)))
    for policy, (block, rows, scale_of) in RECIPES.items():
        got = Library(libraries(batched, policy))(x, w)
        for i in np.ndindex(2, 3):
            close(got[i], rounded(x[i], 1, block or 40, scale_of) @ rounded(w[i], block or 40, rows, scale_of), 40)


def test_symbolic_extents(libraries, tmp_path):
    """A summed extent that is a symbol has one row in f8_row; blocks need a multiple."""
    gram = "program p(x: f32[B, 8], y: f32[B, 4]) -> (z: f32[8, 4]) {\n  z = dot_general(x, y) {contract: [[0], [0]]}\n}\n"
    x, y = uneven(0, (256, 8)), uneven(1, (256, 4))
    for policy, extent, b in (("f8_row", "b", 77), ("f8_row", "b", 256), ("f8_block", "128*b", 256), ("mxfp8", "32*b", 96)):
        block, rows, scale_of = RECIPES[policy]
        got = Library(libraries(gram.replace("B", extent), policy))(x[:b], y[:b])
        square = rows if policy == "f8_block" else 1
        close(got, rounded(x[:b].T, 1, block or b, scale_of) @ rounded(y[:b], block or b, square, scale_of), b)
    (tmp_path / "gram.scl").write_text(gram.replace("B", "b"))
    failed = subprocess.run([TOOL, "build", tmp_path / "gram.scl", "-n", "f8_block", "-o", tmp_path], capture_output=True, text=True)
    assert failed.returncode and re.search(r"gram\.scl:2:3: .*must be a number or a multiple such as 128\*b, got b\. Declare the extent as a multiple", failed.stderr), failed


def test_what_is_not_in_blocks_is_explained(tmp_path):
    """Convolutions keep one scale for each tensor. f8_current is f8_master."""
    (tmp_path / "conv.scl").write_text("program p(x: f32[2, 3, 8, 8], w: f32[4, 3, 3, 3]) -> (y: f32[2, 4, 6, 6]) {\n  y = conv_general_dilated(x, w)\n}\n")
    explained = {policy: subprocess.run([TOOL, "explain", tmp_path / "conv.scl", "-n", policy], check=True, capture_output=True, text=True).stdout
                 for policy in (*RECIPES, "f8_master", "f8_current")}  # fmt: skip
    assert re.search(r"x +conv_general_dilated\.lhs +f8_e4m3fn +current .* f8_master\.yaml:6", explained["f8_master"])
    assert set(explained.values()) == {explained["f8_master"]}


@pytest.mark.parametrize("policy", ["f32", "bf16", "f16_master", "f8_master", "f8_delayed", *RECIPES])
@pytest.mark.parametrize("rows", ["0", "b"])
def test_a_sum_of_no_terms_is_zero(policy, rows, libraries):
    if rows == "b" and policy in ("f8_block", "mxfp8", FLOOR):
        pytest.skip("blocks need a summed extent that is a number or a multiple")
    text = f"program empty(x: f32[{rows}, 64], y: f32[{rows}, 32]) -> (g: f32[64, 32]) {{\n  g = dot_general(x, y) {{contract: [[0], [0]]}}\n}}\n"
    library = Library(libraries(text, policy))
    state = list(library.init().values())
    result = library(np.zeros((0, 64), np.float32), np.zeros((0, 32), np.float32), *state)
    np.testing.assert_array_equal(result[0] if state else result, np.zeros((64, 32), np.float32))
