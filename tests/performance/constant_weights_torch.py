"""The rival of constant_weights.py: reads lines `dot DTYPE SECONDS m k n` and `conv DTYPE SECONDS pixels inputs outputs window`, and answers with the
least microseconds of a call of oneDNN by torch, with packed weights. The argument is the number of threads."""
import functools
import sys
import time

import torch

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}


def dot(dtype, m, k, n):
    if dtype == "i8":
        w = torch.ops.onednn.qlinear_prepack(torch.randint(-9, 9, (n, k), dtype=torch.int8), [m, k])
        x, scale, zero = torch.randint(0, 99, (m, k), dtype=torch.uint8), torch.ones(n), torch.zeros(n, dtype=torch.int64)
        return lambda: torch.ops.onednn.qlinear_pointwise(x, 1.0, 0, w, scale, zero, None, 1.0, 0, torch.float32, "none", [], "none")
    x = torch.randn(m, k, dtype=DTYPES[dtype])
    w = torch.ops.mkldnn._reorder_linear_weight(torch.randn(n, k, dtype=DTYPES[dtype]), m)
    return lambda: torch.ops.mkldnn._linear_pointwise(x, w, None, "none", [], "")


def conv(dtype, pixels, inputs, outputs, window):
    x = torch.randn(1, inputs, pixels, pixels, dtype=DTYPES[dtype]).to(memory_format=torch.channels_last)
    pads, ones = [window // 2] * 2, [1, 1]
    w = torch.randn(outputs, inputs, window, window, dtype=DTYPES[dtype])
    w = torch.ops.mkldnn._reorder_convolution_weight(w, pads, ones, ones, 1, list(x.shape))
    return lambda: torch.ops.mkldnn._convolution_pointwise(x, w, None, pads, ones, ones, 1, "none", [], "")


@functools.cache
def call_of(kind, dtype, *numbers):
    call = {"dot": dot, "conv": conv}[kind](dtype, *map(int, numbers))
    call()
    return call


def main():
    torch.set_num_threads(int(sys.argv[1]))
    torch.set_grad_enabled(False)
    for line in sys.stdin:
        kind, dtype, seconds, *numbers = line.split()
        call, best, end = call_of(kind, dtype, *numbers), float("inf"), time.perf_counter() + float(seconds)
        while time.perf_counter() < end:
            start = time.perf_counter()
            call()
            best = min(best, time.perf_counter() - start)
        print(1e6 * best, flush=True)


if __name__ == "__main__":
    main()
