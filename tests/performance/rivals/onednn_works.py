"""Matmuls and convolutions in oneDNN, by the shared library that onednn_works.cpp becomes."""
import ctypes
import subprocess
import sys
import weakref
from pathlib import Path

import ml_dtypes
import numpy as np
from works import inputs

HERE = Path(__file__).resolve().parent
TYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "f8": ml_dtypes.float8_e4m3fn, "i32": np.int32}
CODES = {"bf16": 2, "f32": 3, "i32": 4, "i8": 5, "f8": 11}  # dnnl_data_type_t
ONLY = "oneDNN is compared on matmuls and convolutions"
SUMS = {"i8": "i32", "f8": "f32"}
library = None


def version(threads):
    global library
    home, made = Path(sys.prefix), Path(sys.prefix, "onednn_works.so")
    subprocess.run(["g++", "-std=c++20", "-O2", "-fPIC", "-shared", f"-I{home}/include", HERE / "onednn_works.cpp", "-o", made, f"-L{home}/lib",
                    "-ldnnl", f"-Wl,-rpath,{home}/lib"], check=True, stdout=sys.stderr)  # fmt: skip
    library = ctypes.CDLL(str(made))
    for name in ("onednn_reason", "onednn_implementation", "onednn_version"):
        getattr(library, name).restype = ctypes.c_char_p
    for name in ("onednn_matmul", "onednn_convolution"):
        getattr(library, name).restype = ctypes.c_void_p
    for name in ("onednn_run", "onednn_free", "onednn_implementation"):
        getattr(library, name).argtypes = [ctypes.c_void_p]
    return f"oneDNN {library.onednn_version().decode()}"


def variants(work):
    if work.function == "matmul":
        yield "matmul", matmul
    elif work.function == "convolution":
        yield "convolution, weights arranged before", convolution


def operands(work):
    return [numbers.astype(TYPES[array.dtype]) for array, numbers in zip(work.arrays, inputs(work))]


def matmul(work):
    (m, k), (_, n) = (array.shape for array in work.arrays)
    result = np.empty((m, n), TYPES[SUMS.get(work.dtype, work.dtype)])
    return calls(library.onednn_matmul, (m, n, k), (CODES[work.dtype], CODES[SUMS.get(work.dtype, work.dtype)], 0), [*operands(work), result])


def convolution(work):
    (batch, size, _, features), (window, _, _, outputs) = (array.shape for array in work.arrays)
    result = np.empty((batch, size, size, outputs), TYPES[work.dtype])
    return calls(library.onednn_convolution, (batch, size, features, outputs, window), (CODES[work.dtype],), [*operands(work), result])


def calls(make, extents, codes, arrays):
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    primitive = make(*map(ctypes.c_long, extents), *codes, *pointers)
    if not primitive:
        raise RuntimeError(library.onednn_reason().decode())
    implementation = library.onednn_implementation(primitive).decode()
    if "ref" in implementation:
        library.onednn_free(primitive)
        raise RuntimeError(f"oneDNN has only its reference implementation ({implementation})")

    def call(kept=arrays):  # oneDNN does not own the arrays
        library.onednn_run(primitive)

    weakref.finalize(call, library.onednn_free, primitive)
    return call, lambda: [arrays[-1].astype(np.float32)]
