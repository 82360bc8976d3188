"""Kernels of a YAML list, element by element against float64 in NumPy. Each mistake in a list gives one message with its line."""
import math
import os
import pathlib
import subprocess

import numpy as np
import pytest
import scalide

LIST = pathlib.Path(__file__).parent / "kernel_library.yaml"


def build(folder, *options):
    return subprocess.run([os.environ["SCALIDE_TOOL"], "build", "-o", folder, *options], capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernels")
    result = build(folder, "--operators", LIST, "--name", "kernels", "--shared")
    assert result.returncode == 0, result.stderr
    return lambda name: scalide.Library(folder / "libkernels.so", name=f"kernels_{name}")


def draw(*shape, seed=0):
    return np.random.default_rng([seed, *shape]).uniform(-1, 1, shape).astype(np.float32)


def near(got, expected, tolerance=2e-5):
    np.testing.assert_allclose(np.asarray(got, np.float64), expected, rtol=tolerance, atol=tolerance)


def convolve(x, w, strides=(1, 1), pad=0, dilation=(1, 1), groups=1):
    """NCHW by OIHW."""
    x = np.pad(np.asarray(x, np.float64), ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    rows, columns = ((x.shape[2 + i] - (w.shape[2 + i] - 1) * dilation[i] - 1) // strides[i] + 1 for i in (0, 1))
    out, inner, each = np.zeros((x.shape[0], w.shape[0], rows, columns)), w.shape[1], w.shape[0] // groups
    for g in range(groups):
        for i in range(w.shape[2]):
            for j in range(w.shape[3]):
                part = x[:, g * inner : (g + 1) * inner, i * dilation[0] :: strides[0], j * dilation[1] :: strides[1]][:, :, :rows, :columns]
                out[:, g * each : (g + 1) * each] += np.einsum("bchw,oc->bohw", part, np.asarray(w[g * each : (g + 1) * each, :, i, j], np.float64))
    return out


def softmax(x, axis):
    e = np.exp(np.asarray(x, np.float64))
    return e / e.sum(axis, keepdims=True)


def gelu(x):
    return 0.5 * x * np.vectorize(math.erfc)(-x / math.sqrt(2))


def test_convolutions(kernels):
    x, w = draw(2, 8, 9, 7), draw(16, 8, 3, 3)
    near(kernels("conv3x3")(x, w), convolve(x, w, (2, 2), 1))
    x, w = draw(2, 8, 12, 11), draw(16, 2, 3, 3)
    near(kernels("conv_grouped")(x, w), convolve(x, w, dilation=(2, 1), groups=4))
    x, w, bias = draw(2, 14, 14, 3), draw(7, 7, 3, 8), draw(8)
    expected = convolve(x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1), (2, 2), 3).transpose(0, 2, 3, 1) + bias
    near(kernels("stem")(x, w, bias), np.maximum(expected, 0))


def test_matmuls(kernels):
    x, w = draw(2, 3, 5, 32), draw(2, 3, 32, 17)
    near(kernels("batch_matmul")(x, w), np.asarray(x, np.float64) @ w)
    x, w, bias = draw(7, 32), draw(32, 48), draw(48)
    near(kernels("ffn_up")(x, w, bias), gelu(np.asarray(x, np.float64) @ w + bias))
    near(np.asarray(kernels("bf16_scores")(x, w), np.float64), softmax(np.asarray(x, np.float64) @ w, 1), 2e-2)
    a, b = np.arange(7 * 32).astype(np.uint8).reshape(7, 32), np.arange(-256, 256).astype(np.int8).reshape(32, 16)
    np.testing.assert_array_equal(kernels("dot_i8")(a, b), a.astype(np.int32) @ b.astype(np.int32))


def test_causal_attention_with_fewer_key_heads(kernels):
    query, key, value = draw(2, 6, 4, 64), draw(2, 6, 2, 64, seed=1), draw(2, 6, 2, 64, seed=2)
    scores = np.einsum("bmhd,bnhd->bhmn", np.asarray(query, np.float64), key.repeat(2, 2)) / 8
    weights = softmax(np.where(np.tri(6, dtype=bool), scores, -np.inf), 3)
    near(kernels("attention_causal")(query, key, value), np.einsum("bhmn,bnhd->bmhd", weights, value.repeat(2, 2)))


def test_operands_broadcast(kernels):
    for name, shapes, combine in (("add1", ((5,), ()), np.add), ("add3", ((2, 5, 7), (5, 1)), np.add), ("mul5", ((2, 2, 5, 3, 7), (2, 1, 3, 1)), np.multiply)):
        x, y = (draw(*shape) for shape in shapes)
        np.testing.assert_array_equal(kernels(name)(x, y), combine(x, y))
    which, cases = np.array([[True], [False]]), (draw(2, 5), draw(5))
    np.testing.assert_array_equal(kernels("where")(which, *cases), np.where(which, cases[1], cases[0]))


def test_rows_and_columns(kernels):
    x = draw(3, 5, 7)
    near(kernels("softmax_middle")(x), softmax(x, 1))
    near(kernels("column_sums")(draw(64, 7)), np.asarray(draw(64, 7), np.float64).sum(0))
    np.testing.assert_array_equal(kernels("concatenate")(draw(2, 3), draw(2, 5)), np.concatenate([draw(2, 3), draw(2, 5)], 1))
    x, gain, bias = draw(2, 3, 32), draw(32), draw(32, seed=1)
    normal = (x - x.mean(2, keepdims=True, dtype=np.float64)) / np.sqrt(x.var(2, keepdims=True, dtype=np.float64) + 1e-5)
    near(kernels("layer_norm")(x, gain, bias), normal * gain + bias)
    ct = draw(2, 3, 32, seed=2)
    near(kernels("layer_norm_grad")(x, gain, bias, ct).d_gain, (ct * normal).sum((0, 1)))


def spread(x, w, strides):
    """The transpose of a convolution: each element of x adds the weights [rows, columns, output features, input features] at its place."""
    rows, columns = ((x.shape[1 + i] - 1) * strides[i] + w.shape[i] for i in (0, 1))
    out = np.zeros((x.shape[0], rows, columns, w.shape[2]))
    for i in range(x.shape[1]):
        for j in range(x.shape[2]):
            places = out[:, i * strides[0] : i * strides[0] + w.shape[0], j * strides[1] : j * strides[1] + w.shape[1]]
            places += np.einsum("bc,rsoc->brso", x[:, i, j].astype(np.float64), w.astype(np.float64))
    return out


def test_transposed_convolutions(kernels):
    x, w, v = draw(2, 5, 4, 3), draw(3, 2, 3, 6), draw(3, 2, 6, 3)
    plain, turned = np.asarray(kernels("transposed")(x, w)), np.asarray(kernels("transposed_kernel")(x, v))
    near(plain, spread(x, w[::-1, ::-1].swapaxes(2, 3), (2, 1)))  # the weights are not reversed, as in JAX
    near(turned, spread(x, v, (2, 1)))  # the gradient of a convolution, as in PyTorch and ONNX
    lax = pytest.importorskip("jax").lax
    names = ("NHWC", "HWIO", "NHWC")
    near(plain, lax.conv_transpose(x, w, (2, 1), "VALID", dimension_numbers=names, precision="highest"))
    near(turned, lax.conv_transpose(x, v, (2, 1), "VALID", dimension_numbers=names, transpose_kernel=True, precision="highest"))


def padded(x, *pairs):
    return np.pad(x, [(0, 0)] * (x.ndim - len(pairs)) + list(pairs))


def test_padding_of_pairs(kernels):
    x, w = draw(2, 8, 9, 7), draw(16, 8, 3, 3)
    got = np.asarray(kernels("conv_padded")(x, w))
    near(got, convolve(padded(x, (1, 2), (0, 3)), w, (2, 1)))
    ct, direction = draw(*got.shape, seed=1), draw(*x.shape, seed=2)
    d_lhs = np.asarray(kernels("conv_padded_grad")(x, w, ct), np.float64)
    near(np.vdot(d_lhs, direction), np.vdot(ct, convolve(padded(direction, (1, 2), (0, 3)), w, (2, 1))), 1e-4)
    rows = draw(2, 6, 5)
    wide = np.pad(rows, ((0, 0), (2, 1), (0, 1)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(wide, (3, 2), (1, 2))[:, ::2]
    np.testing.assert_array_equal(kernels("max_pool_padded")(rows), windows.max((-2, -1)))
    x, w = draw(2, 5, 4, 3), draw(3, 2, 3, 6)
    full = spread(x, w[::-1, ::-1].swapaxes(2, 3), (2, 1))  # the padding of the full result is window - 1
    near(kernels("transposed_padded")(x, w), full[:, 1:-0 or None, 1:][:, : full.shape[1] - 1, : full.shape[2] - 1])


def test_indices_of_64_bits(kernels):
    table, ids = draw(7, 12), np.array([[0, 6, -1], [3, 3, 2**32]])
    expected = np.where((ids < 7)[..., None], table[np.minimum(ids, 6)], np.nan)
    np.testing.assert_array_equal(kernels("embedding_wide")(table, ids), expected)
    ct, summed = draw(2, 3, 12), np.zeros((7, 12))
    np.add.at(summed, ids[ids < 7], ct[ids < 7])
    near(kernels("embedding_wide_grad")(table, ids, ct), summed)
    whole = np.arange(12).reshape(2, 6) + 2**60
    np.testing.assert_array_equal(kernels("reshape_wide")(whole), whole.reshape(2, 2, 3))


def test_axes_left_out_mean_the_last(kernels):
    x = draw(2, 3, 7)
    near(kernels("softmax_last")(x), softmax(x, 2))
    near(np.exp(np.asarray(kernels("log_softmax_last")(x), np.float64)), softmax(x, 2))


def test_a_bound_makes_room_for_the_largest(kernels):
    x = draw(2, 9)
    np.testing.assert_array_equal(kernels("four_largest")(x).values, -np.sort(-x)[:, :4])
    with pytest.raises(Exception, match="n4"):
        kernels("four_largest")(draw(2, 3))


def test_gradients_of_a_convolution(kernels):
    x, w = draw(1, 8, 9, 7), draw(16, 8, 3, 3)
    ct = draw(*kernels("conv3x3")(x, w).shape, seed=1)
    gradients = kernels("conv3x3_grad")(x, w, ct)
    for operand, got in ((x, gradients.d_lhs), (w, gradients.d_rhs)):  # the convolution is linear in each operand
        direction = draw(*operand.shape, seed=3)
        moved = convolve(*((direction, w) if operand is x else (x, direction)), (2, 2), 1)
        near(np.vdot(np.asarray(got, np.float64), direction), np.vdot(ct, moved), 1e-4)


DOT = "{op: dot, name: d, shapes: {x: [n, 2], w: [2, n]}"


@pytest.mark.parametrize(
    "text, message",
    [
        ("- {op: sofmax, name: s, shapes: {x: [n]}}", "k.yaml:1: unknown operator 'sofmax'. Did you mean 'softmax'?"),
        ("- {op: softmax, name: s, shapes: {x: [n]},\n   attributes: {axs: [0]}}", "k.yaml:2: unknown attribute 's.attributes.axs'. Did you mean 'axes'?"),
        ("- {op: softmax, name: s, shape: {x: [n]}}", "k.yaml:1: unknown key 's.shape'. Did you mean 'shapes'?"),
        ("- {op: softmax, name: s, shapes: {x: [n]}, attributes: {axes: [3]}}", "k.yaml:1: s.softmax.axes: axes must be less than the rank 1, got 3"),
        ("- {op: add, name: s, shapes: {x: [n, 2], y: [3]}}", "k.yaml:1: s.add: the shapes of the operands must broadcast, got [n, 2] and [3]. Extents must be equal or 1, counted from the last axis"),
        ("- {op: dot, name: s, shapes: {rhs: [2, n], lhs: [n, 2]}}", "k.yaml:1: s.shapes.rhs: the shapes must be in the order lhs, rhs, got 'rhs' for the operand 'lhs'"),
        ("- {op: dot, name: s, shapes: {x: [n, 2]}}", "k.yaml:1: s.shapes: the number of shapes must be 2, one for each of lhs, rhs, got 1"),
        ("- {op: dot, name: s, shapes: {x: [n, 2], w: [3, n]}}", "k.yaml:1: s.dot: contracting extents must match, got [2] and [3] (x: f32[n, 2], w: f32[3, n]). The last axis of lhs is contracted with the first axis of rhs. Transpose an operand if its axes have another order"),
        ("- {ops: [top_k, exp], name: s, shapes: {x: [n, 9]}, attributes: {k: 2}}", "k.yaml:1: s: 'top_k' has 2 results, so no operator can follow it"),
        (f"- {DOT}, dtypes: {{v: f16}}}}", "k.yaml:1: unknown operand 'd.v'. One of: x, w"),
        (f"- {DOT}, numerics: bf17}}", "k.yaml:1: unknown policy 'bf17'. Did you mean 'bf16'?"),
        (f"- {DOT}}}\n- {DOT}}}", "k.yaml:2: two kernels have the name 'd'. Rename one of them"),
        (f"symbols: {{q: {{min: 3}}}}\nkernels: [{DOT}}}]", "k.yaml:1: symbols.q: must be in a shape of a kernel. Remove it"),
    ],
)
def test_mistakes(tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.yaml").write_text(text + "\n")
    result = build("out", "--operators", "k.yaml")
    assert (result.returncode, result.stderr.strip()) == (1, "error: " + message)


def test_short_form(tmp_path):
    result = build(tmp_path, "--operators", "softmax(axes=[-1]):f32[b,h,m,n];dot:f32[m,64],f32[64,n],add,half=exp:f16[n]", "--name", "k", "--shared")
    assert result.returncode == 0, result.stderr
    library, x, y = tmp_path / "libk.so", draw(2, 1, 3, 5), draw(9)
    near(scalide.Library(library, name="k_softmax_f32")(x), softmax(x, 3))
    near(scalide.Library(library, name="k_add_f32")(y, y), 2 * y)
    near(scalide.Library(library, name="k_half")(y.astype(np.float16)), np.exp(y.astype(np.float16).astype(np.float64)), 1e-3)
    assert "must be [NAME=]OPERATOR" in build(tmp_path, "--operators", "softmax(axes=[1]").stderr
    assert build(tmp_path, "--operators", "dot:f32[m,3]").stderr == "error: --operators: 'dot' must have a type for each of lhs, rhs, got 'dot:f32[m,3]'\n"
