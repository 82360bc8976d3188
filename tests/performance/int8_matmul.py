#!/usr/bin/env python3
"""Matmuls with i8 operands compared with torch, whose CPU kernels are those of oneDNN. Both run in turns on the same threads.

Usage: int8_matmul.py [--threads N] [--rounds N] [--seconds S] [--json FILE] [NAME ...]
Needs the packages torch and scalide. NAME: only the cases whose name contains it. ratio: time of torch divided by time of Scalide.

product    i8 by i8 to i32, and torch._int_mm
layer      u8 by i8 with a scale for each column, bias, relu and rounding to i8, and torch.ops.onednn.qlinear_pointwise (packed weights)
weights    f32 or bf16 by i8 weights with a scale for each column, and torch.mm with weights in the dtype of the activations
"""
import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

import scalide

PRODUCTS = [(128, 512, 784), (1024, 1024, 1024), (2048, 1024, 4096), (8, 3072, 768), (1, 3072, 768)]
LAYERS = [(1024, 3072, 768), (128, 3072, 768), (8, 3072, 768)]
WEIGHTS = [(128, 1024, 1024), (1, 1024, 1024), (1, 4096, 4096)]

PRODUCT = """program product (x: i8[{m}, {k}], w: i8[{k}, {n}]) -> (y: i32[{m}, {n}]) {{
  y = dot_general(x, w) {{contract: [[1], [0]], preferred: i32}}
}}
"""
LAYER = """program layer (x: u8[{m}, {k}], w: i8[{k}, {n}], scale: f32[{n}], bias: f32[{n}]) -> (y: i8[{m}, {n}]) {{
  z = dot_general(x, w) {{contract: [[1], [0]], preferred: i32}}
  f = convert_element_type(z) {{dtype: f32}}
  s = broadcast_in_dim(scale) {{dims: [1], shape: [{m}, {n}]}}
  b = broadcast_in_dim(bias) {{dims: [1], shape: [{m}, {n}]}}
  p = mul(f, s)
  a = add(p, b)
  r = relu(a)
  i = round(r)
  y = convert_element_type(i) {{dtype: i8}}
}}
"""
WEIGHT_ONLY = """program weights (x: {dtype}[{m}, {k}], w: i8[{k}, {n}], scale: f32[{n}]) -> (y: {dtype}[{m}, {n}]) {{
  xf = convert_element_type(x) {{dtype: f32}}
  wf = convert_element_type(w) {{dtype: f32}}
  z = dot_general(xf, wf) {{contract: [[1], [0]], preferred: f32}}
  s = broadcast_in_dim(scale) {{dims: [1], shape: [{m}, {n}]}}
  p = mul(z, s)
  y = convert_element_type(p) {{dtype: {dtype}}}
}}
"""


def aligned(array):
    result = scalide.empty(array.shape, array.dtype)
    result[...] = array
    return result


def compiled(text, scratch, threads, *arguments, result):
    """A call of the program on arrays of its own."""
    path = Path(scratch, "program.scl")
    path.write_text(text)
    built = scalide.build(str(path), output=scratch)
    library = scalide.Library(built.path, threads=threads)
    arrays = [aligned(array) for array in arguments] + [result]
    return lambda: library.out(*arrays)


def integers(shape, dtype, seed):
    ends = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(ends.min, ends.max, shape, endpoint=True).astype(dtype)


def product(m, n, k, build):
    x, w = integers((m, k), np.int8, 0), integers((k, n), np.int8, 1)
    y = scalide.empty((m, n), "i32")
    left, right = torch.from_numpy(x), torch.from_numpy(w)
    ours = build(PRODUCT.format(m=m, n=n, k=k), x, w, result=y)
    ours()
    assert np.array_equal(y, torch._int_mm(left, right).numpy())
    return ours, lambda: torch._int_mm(left, right)


def layer(m, n, k, build):
    x, w = integers((m, k), np.uint8, 0), integers((k, n), np.int8, 1)
    scale, bias = np.full(n, 2.0**-15, np.float32), np.linspace(-9, 9, n, dtype=np.float32)
    y = scalide.empty((m, n), "i8")
    packed = torch.ops.onednn.qlinear_prepack(torch.from_numpy(w.T.copy()), [m, k])
    operands = (torch.from_numpy(x), 1.0, 0, packed, torch.from_numpy(scale), torch.zeros(n, dtype=torch.int64), torch.from_numpy(bias))

    def theirs():
        return torch.ops.onednn.qlinear_pointwise(*operands, 1.0, 0, torch.int8, "relu", [], "none")

    ours = build(LAYER.format(m=m, n=n, k=k), x, w, scale, bias, result=y)
    ours()
    assert np.abs(y.astype(np.int32) - theirs().numpy()).max() <= 1
    return ours, theirs


def weight_only(dtype):
    def case(m, n, k, build):
        numbers = np.random.default_rng(0).standard_normal((m, k), np.float32)
        w, scale = integers((k, n), np.int8, 1), np.full(n, 2.0**-9, np.float32)
        x = torch.from_numpy(numbers).to(torch.bfloat16 if dtype == "bf16" else torch.float32)
        weights = (torch.from_numpy(w).float() * 2.0**-9).to(x.dtype)
        y = scalide.empty((m, n), dtype)
        ours = build(WEIGHT_ONLY.format(m=m, n=n, k=k, dtype=dtype), numbers.astype(y.dtype), w, scale, result=y)
        ours()
        assert np.allclose(y.astype(np.float32), torch.mm(x, weights).float().numpy(), rtol=0.02, atol=0.5)
        return ours, lambda: torch.mm(x, weights)

    return case


def cases():
    for m, n, k in PRODUCTS:
        yield f"product {m} x {n} x {k}", product, (m, n, k)
    for m, n, k in LAYERS:
        yield f"layer {m} x {n} x {k}", layer, (m, n, k)
    for dtype in ("f32", "bf16"):
        for m, n, k in WEIGHTS:
            yield f"weights {dtype} {m} x {n} x {k}", weight_only(dtype), (m, n, k)


def least(function, seconds):
    """Milliseconds of the fastest call."""
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        function()
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_grad_enabled(False)
    rows = []
    print(f"{'case':<28} {'scalide ms':>11} {'torch ms':>9} {'ratio':>6} {'GOP/s':>7}")
    for name, case, (m, n, k) in cases():
        if arguments.names and not any(word in name for word in arguments.names):
            continue
        with tempfile.TemporaryDirectory(prefix="scalide-performance-") as scratch:
            ours, theirs = case(m, n, k, lambda text, *given, result: compiled(text, scratch, arguments.threads, *given, result=result))
            times = [(least(ours, arguments.seconds), least(theirs, arguments.seconds)) for _ in range(arguments.rounds)]
        mine, other = (min(column) for column in zip(*times))
        rows.append({"case": name, "scalide_ms": mine, "torch_ms": other, "ratio": other / mine, "gops": 2e-6 * m * n * k / mine})
        print(f"{name:<28} {mine:>11.4f} {other:>9.4f} {other / mine:>6.2f} {rows[-1]['gops']:>7.0f}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
