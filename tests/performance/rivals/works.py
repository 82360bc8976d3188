"""The works that `./bench --rivals` times: sizes, dtypes and inputs. jax_functions.py, torch_works.py and onednn_works.py compute them.

A work is a function of arrays. The first `donated` arrays are state that a call replaces, such as the parameters of a training step. The first
`constant` arrays do not change between calls, so a system may arrange them once. Needs only NumPy, because each rival imports it.
"""
from __future__ import annotations

import dataclasses
import zlib
from typing import Any

import numpy as np

MATMULS = [(128, 512, 784), (128, 512, 512), (784, 512, 128), (1024, 1024, 1024), (2048, 1024, 4096), (2048, 2048, 2048)]
MLP = [784, 512, 512, 10]
LAYER = {"hidden": 512, "inner": 2048, "tokens": 256, "batch": 4}
HEADS = 8
SIZE = {"f32": 4, "bf16": 2, "i8": 1, "f8": 1, "i32": 4}
COLUMNS, SHORT, VOCABULARY = 4096, 512, 32768
RATE = 0.1  # of all training steps
# The largest difference from a rival, divided by the largest magnitude of the result. Sums in bf16 works round at different places.
TOLERANCE = {"f32": 1e-3, "bf16": 6e-2, "i8": 0.0, "f8": 1e-3}
# In the CNN, one of 1.6 million inputs of a relu rounds to the other side of 0. This changes the gradient of one bias by 5e-3 (Scalide next to
# float64, EPYC Zen 4, 2026-11-29). The other biases of that layer differ by at most 5e-7.
# In bf16, jax adds the gradients of biases in bf16: the bias of 25,000 positions is off by .54 of the largest magnitude, ours by .04 from f32.
CNN_TOLERANCE = {"f32": 2e-2, "bf16": 6e-1}


@dataclasses.dataclass(frozen=True)
class Array:
    """An input: `numbers` is normal, uniform, ones, zeros, one_hot, or the number of rows that an index selects from."""

    shape: tuple
    dtype: str
    numbers: Any = "normal"
    deviation: float = 1.0


@dataclasses.dataclass(frozen=True)
class Work:
    name: str
    function: str
    dtype: str
    arrays: tuple
    flops: int = 0  # 0: the limit of the work is the bytes that it moves
    donated: int = 0
    constant: int = 0
    allowed: float = 0.0  # the largest difference from a rival, if it is not the one in TOLERANCE
    compared: bool = True  # False: the result is random, so no two systems have the same


def inputs(work: Work) -> list[np.ndarray]:
    """Returns the inputs as f32, or as i32 for integers. Each system converts them to the dtypes of the work."""
    draw = np.random.default_rng(zlib.crc32(work.function.encode()))
    return [_numbers(array, draw) for array in work.arrays]


def _numbers(array, draw):
    if isinstance(array.numbers, int):
        return draw.integers(0, array.numbers, array.shape).astype(np.int32)
    if array.dtype == "i8":
        return draw.integers(-127, 128, array.shape).astype(np.int32)
    if array.numbers == "one_hot":
        return np.eye(array.shape[-1], dtype=np.float32)[draw.integers(0, array.shape[-1], array.shape[0])]
    if array.numbers in ("ones", "zeros"):
        return np.full(array.shape, array.numbers == "ones", np.float32)
    made = draw.random(array.shape, np.float32) if array.numbers == "uniform" else draw.standard_normal(array.shape, np.float32)
    return made * np.float32(array.deviation)


def _matmul_flops(m, n, k):
    return 2 * m * n * k


def _dense(rows, columns, dtype):
    return [Array((rows, columns), dtype, deviation=rows**-0.5), Array((columns,), dtype, "zeros")]


def _matmuls():
    for dtype in ("f32", "bf16", "i8", "f8"):
        for m, n, k in MATMULS:
            yield Work(f"matmul {m} x {n} x {k}", "matmul", dtype, (Array((m, k), dtype), Array((k, n), dtype)), _matmul_flops(m, n, k))


def _mlps(dtype):
    params = [array for pair in zip(MLP, MLP[1:]) for array in _dense(*pair, dtype)]
    for rows in (128, 8192):
        forward = sum(_matmul_flops(rows, n, k) for k, n in zip(MLP, MLP[1:]))
        x, y = Array((rows, MLP[0]), dtype, "uniform"), Array((rows, MLP[-1]), dtype, "one_hot")
        yield Work(f"MLP forward, {rows} rows", "mlp_forward", dtype, (*params, x), forward, constant=len(params))
        yield Work(f"MLP step, {rows} rows", "mlp_step", dtype, (*params, x, y), 3 * forward - _matmul_flops(rows, MLP[1], MLP[0]), donated=len(params))


def _layers(dtype):
    hidden, inner, batch, tokens = LAYER["hidden"], LAYER["inner"], LAYER["batch"], LAYER["tokens"]
    norm = [Array((hidden,), dtype, "ones"), Array((hidden,), dtype, "zeros")]
    params = [*norm, *_dense(hidden, 3 * hidden, dtype), *_dense(hidden, hidden, dtype), *norm, *_dense(hidden, inner, dtype), *_dense(inner, hidden, dtype)]
    forward = _matmul_flops(batch * tokens, 1, hidden) * (4 * hidden + 2 * inner) + 4 * batch * tokens**2 * hidden
    x = Array((batch, tokens, hidden), dtype)
    yield Work("transformer layer forward", "layer_forward", dtype, (*params, x), forward, constant=len(params))
    yield Work("transformer layer step", "layer_step", dtype, (*params, x), 3 * forward)


def _cnns(dtype):
    def kernel(*shape):
        return [Array(shape, dtype, deviation=float(np.prod(shape[:-1]) ** -0.5)), Array(shape[-1:], dtype, "zeros")]

    batch, params = 128, [*kernel(3, 3, 1, 32), *kernel(3, 3, 32, 64), *_dense(3136, 256, dtype), *_dense(256, 10, dtype)]
    first = _matmul_flops(batch * 28 * 28, 32, 9)
    rest = _matmul_flops(batch * 14 * 14, 64, 9 * 32) + _matmul_flops(batch, 256, 3136) + _matmul_flops(batch, 10, 256)
    data = Array((batch, 28, 28, 1), dtype, "uniform"), Array((batch, 10), dtype, "one_hot")
    yield Work("CNN step", "cnn_step", dtype, (*params, *data), 3 * (first + rest) - first, donated=len(params),
               allowed=CNN_TOLERANCE[dtype])  # fmt: skip


def _rows(dtype):
    """Works over rows of arrays with 64 MiB, which no cache holds."""

    def tensor(columns=COLUMNS, numbers="normal"):
        return Array(((64 << 20) // SIZE[dtype] // columns, columns), dtype, numbers)

    x, vector, scalar = tensor(), Array((COLUMNS,), dtype, "ones"), Array((), "f32", "ones")
    labels = Array(((64 << 20) // SIZE[dtype] // VOCABULARY,), "i32", VOCABULARY)
    for name, function, *arrays in (
        ("gelu (tanh)", "gelu_tanh", x), ("gelu (erf)", "gelu_erf", x), ("bias and gelu", "bias_gelu", x, vector),
        ("softmax of 4096", "softmax", x), ("softmax of 512", "softmax", tensor(SHORT)), ("layer_norm", "layer_norm", x, vector, vector),
        ("layer_norm gradient", "layer_norm_gradient", x, vector, vector, x), ("rms_norm", "rms_norm", x, vector),
        ("cross entropy and gradient", "cross_entropy_gradient", tensor(VOCABULARY), labels),
        ("amax and cast to e4m3", "amax_cast", x, scalar), ("amax, then cast to e4m3", "amax_then_cast", x),
        ("cast to e4m3 and transpose", "cast_transpose", x, scalar), ("transpose", "transpose", x),
    ):  # fmt: skip
        yield Work(name, function, dtype, tuple(arrays))
    yield Work("AdamW", "adamw", dtype, (x, tensor(numbers="zeros"), tensor(numbers="zeros"), x), donated=3)
    yield Work("dropout", "dropout", dtype, (x, Array((), "i32", 1 << 30)), compared=False)


def _others():
    f32 = "f32"
    images = Array((32, 28, 28, 256), f32)
    yield Work("maximum over the middle axis", "maximum_middle", f32, (Array((64, 512, 512), f32),))
    yield Work("a.T @ b, 100000 x 32", "transposed_matmul", f32, (Array((100000, 32), f32),) * 2, _matmul_flops(32, 32, 100000))
    yield Work("mean over the middle axes", "mean_middle", f32, (images,))
    yield Work("transposed convolution", "convolution_transposed", f32, (Array((16, 28, 28, 64), f32), Array((4, 4, 64, 32), f32, deviation=0.03)),
               _matmul_flops(16 * 28 * 28, 32, 16 * 64))  # fmt: skip
    yield Work("concatenation of 300, 500, 200", "concatenation", f32, tuple(Array((10000, columns), f32) for columns in (300, 500, 200)))
    yield Work("roll", "roll", f32, (Array((4096, 4096), f32),))
    yield Work("gradient of an embedding", "embedding_gradient", f32, (Array((30522, 256), f32), Array((32, 256), "i32", 30522), Array((32, 256, 256), f32)))


def _convolutions(dtype):
    """Convolutions of ResNet-50 with 16 images."""
    for size, inputs_, outputs, window in ((56, 64, 64, 3), (28, 128, 128, 3), (14, 256, 256, 3), (14, 1024, 256, 1), (14, 256, 1024, 1)):
        arrays = Array((16, size, size, inputs_), dtype), Array((window, window, inputs_, outputs), dtype, deviation=(window * window * inputs_) ** -0.5)
        yield Work(f"convolution {size} x {size}, {inputs_} to {outputs}, window {window}", "convolution", dtype, arrays,
                   _matmul_flops(16 * size * size, outputs, window * window * inputs_))  # fmt: skip


def _all():
    yield from _matmuls()
    for group in (_mlps, _layers, _cnns, _rows, _convolutions):
        for dtype in ("f32", "bf16"):
            yield from group(dtype)
    yield from _others()
    # For the test of this program: a work of microseconds, left out unless it is named.
    yield Work("tiny matmul", "matmul", "f32", (Array((16, 8), "f32"), Array((8, 4), "f32")), _matmul_flops(16, 4, 8))


WORKS = {f"{work.name} {work.dtype}": work for work in _all()}
TESTED_ONLY = {"tiny matmul f32"}
