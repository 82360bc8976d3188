#!/usr/bin/env python3
"""Times layers in torch for layers.py. Reads one JSON line for each kernel (ops, shapes as numbers, dtypes, attributes, seconds) and answers
with the least milliseconds of a call.

Usage: layers_torch.py THREADS
"""
import json
import sys
import time

import torch
from layer_operators import TorchOperators, evaluate

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "i32": torch.int32}


def make(kernel, name):
    shape, dtype = kernel["shapes"][name], TYPES[kernel["dtypes"][name]]
    if dtype == torch.int32:
        return torch.zeros(shape, dtype=dtype)
    array = (torch.rand(shape) - 0.5).to(dtype)
    if name == "w" and len(shape) == 4:
        return array.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    return array


def main():
    torch.set_num_threads(int(sys.argv[1]))
    operators = TorchOperators()
    with torch.inference_mode():
        for line in sys.stdin:
            kernel = json.loads(line)
            arrays = {name: make(kernel, name) for name in kernel["shapes"]}
            for _ in range(3):
                evaluate(kernel, arrays, operators)
            least, end = float("inf"), time.perf_counter() + kernel["seconds"]
            while time.perf_counter() < end:
                begin = time.perf_counter()
                evaluate(kernel, arrays, operators)
                least = min(least, time.perf_counter() - begin)
            print(json.dumps(least * 1e3), flush=True)


if __name__ == "__main__":
    main()
