"""Runs two kernels of a shared library from Python, with ctypes alone. Usage: main.py LIBRARY"""
import math
import sys
from ctypes import c_float

from scalide_runtime import Error, Runtime

ROWS, INPUTS, OUTPUTS = 2, 3, 2


def main(path):
    runtime = Runtime()
    library = runtime.load(path)
    layer, softmax = (runtime.program(library, name) for name in ("kernels_layer", "kernels_probabilities"))

    x = (c_float * (ROWS * INPUTS))(1, 2, 3, 4, 5, 6)
    w = (c_float * (INPUTS * OUTPUTS))(1, 0, 0, 1, 1, -1)
    bias = (c_float * OUTPUTS)(0, 1)
    h, p = ((c_float * (ROWS * OUTPUTS))() for _ in range(2))
    arrays = {
        "x": runtime.array(x, ROWS, INPUTS),
        "w": runtime.array(w, INPUTS, OUTPUTS),
        "bias": runtime.array(bias, OUTPUTS),
        "out": runtime.array(h, ROWS, OUTPUTS),
    }
    runtime.call(layer, **arrays)
    print("layer:", *h)
    assert list(h) == [4, 0, 10, 0], "relu(x @ w + bias)"

    runtime.call(softmax, x=runtime.array(h, ROWS, OUTPUTS), out=runtime.array(p, ROWS, OUTPUTS))
    print("probabilities:", *(f"{value:.4f}" for value in p))
    assert all(abs(p[2 * row] - 1 / (1 + math.exp(-h[2 * row]))) < 1e-6 for row in range(ROWS))

    try:
        runtime.call(layer, **{**arrays, "w": runtime.array(w, OUTPUTS, INPUTS)})
    except Error as error:
        print("a wrong shape:", error)
    runtime.library.scalide_library_close(library)
    runtime.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
