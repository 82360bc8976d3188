"""Arrays of more than 2^31 bytes, as many elements as there may be, and one more. Slow for their memory (9 GB), not for their time."""
import ml_dtypes
import numpy as np
import pytest
from conftest import compile_text

from scalide import Library

MOST = 2**31 - 2**20
# The dtype of Scalide and of NumPy, the integer with the same order of its codes, rows and columns: more than 2^31 bytes, at most MOST elements.
ARRAYS = {
    "i8": (np.int8, np.int8, 46320, 46330),
    "f8_e4m3fn": (ml_dtypes.float8_e4m3fn, np.int8, 46320, 46330),
    "f32": (np.float32, np.float32, 14000, 40000),
}
# name: results, nodes
PROGRAMS = {
    "map": ("y: {d}[{m}, {n}]", "y = max(x, x)"),
    "row": ("y: {d}[{m}]", "y = reduce_max(x) {{axes: [1]}}"),
    "column": ("y: {d}[{n}]", "y = reduce_max(x) {{axes: [0]}}"),
    "sum": ("y: f32[]", "w = convert_element_type(x) {{dtype: f32}}\n  y = reduce_max(w) {{axes: [0, 1]}}"),
    "transpose": ("y: {d}[{n}, {m}]", "y = transpose(x) {{permutation: [1, 0]}}"),
    "product": (
        "y: f32[{m}, 2]",
        "w = convert_element_type(x) {{dtype: f32}}\n  o = iota() {{dtype: f32, shape: [{n}, 2], dimension: 1}}\n"
        "  y = dot_general(w, o) {{contract: [[1], [0]]}}",
    ),
    "gather": (
        "y: {d}[3, {n}]",
        "y = gather(x, i) {{offset_dims: [1], collapsed_slice_dims: [0], start_index_map: [0], slice_sizes: [1, {n}]}}",
    ),
}


@pytest.fixture(scope="module", params=ARRAYS)
def large(request):
    """The name of a dtype, an array as codes, and the rows (of a transposed result, columns) that are compared."""
    _, codes, rows, columns = ARRAYS[request.param]
    x = np.empty((rows, columns), codes)
    x[:] = (np.arange(columns) % 83).astype(codes)
    x += (np.arange(rows) % 31).astype(codes)[:, None]
    x[-1, -1] = 125
    return request.param, x, np.array([0, rows // 2 + 1, rows - 1])


def expected(name, x, at, wide):
    """A function of a program's result: what of it is compared, and what that must be."""
    rows, columns = x[at], x[:, at % x.shape[1]]
    return {
        "map": lambda y: (y[at], rows),
        "row": lambda y: (y[at], rows.max(1)),
        "column": lambda y: (y[at % y.size], columns.max(0)),
        "sum": lambda y: (y, wide(x[-1:, -1:])[0, 0]),
        "transpose": lambda y: (y[:, at], rows.T),
        "product": lambda y: (y[at, 1], wide(rows).astype(np.float64).sum(1)),
        "gather": lambda y: (y, rows),
    }[name]


@pytest.mark.parametrize("extents", ["known", "symbols"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_more_than_2_to_31_bytes(tmp_path, large, name, extents):
    dtype, codes, at = large
    number, _, rows, columns = ARRAYS[dtype]
    result, body = (text.format(d=dtype, m=rows if extents == "known" else "m", n=columns if extents == "known" else "n") for text in PROGRAMS[name])
    shape = f"{rows}, {columns}" if extents == "known" else "m, n"
    index = ", i: i32[3, 1]" if name == "gather" else ""
    library = Library(compile_text(tmp_path, f"program large(x: {dtype}[{shape}]{index}) -> ({result}) {{\n  {body}\n}}\n"))
    y = library(codes.view(number), *([at.astype(np.int32)[:, None]] if index else []))
    got, want = expected(name, codes, at, lambda a: a.view(number).astype(np.float32))(np.asarray(y).view(codes.dtype) if y.dtype.itemsize == 1 else y)
    np.testing.assert_allclose(got, want, rtol=columns * 2**-24 if name == "product" else 0)  # f32 terms added one after the other


@pytest.mark.parametrize("operator", ["neg(x)", "rev(x) {dimensions: [0]}", "convert_element_type(x) {dtype: i8}"])
def test_the_most_elements(tmp_path, operator):
    library = Library(compile_text(tmp_path, f"program most(x: i8[n]) -> (y: i8[n], z: i8[]) {{\n  y = {operator}\n  z = reduce_max(y) {{axes: [0]}}\n}}\n"))
    x = np.ones(MOST, np.int8)
    x[0], x[-1] = -5, 100
    y, z = library(x)
    want = {"neg": -x, "rev": x[::-1], "con": x}[operator[:3]]
    assert np.array_equal(y[-5000:], want[-5000:]) and np.array_equal(y[:5000], want[:5000]) and y[MOST // 2] == want[MOST // 2]
    assert z == want.max()
    with pytest.raises(ValueError, match=f"most.x: the number of elements must be at most {MOST}. Split the array."):
        library(np.ones(MOST + 1, np.int8))
