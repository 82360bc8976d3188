"""Arrays of 64-bit integers: programs store, move, compare and convert them, and index by them. The values are those of NumPy."""
import numpy as np
import pytest
import scalide

LIMITS = np.iinfo(np.int64)
EDGES = [0, 1, -1, 5, -5, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**32, 2**32 + 3, 2**40 + 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**62 + 1, LIMITS.max, LIMITS.min]

MOVED = """program moved(i: i64[n, 2], j: i64[n, 2]) -> (same: i64[n, 2], turned: i64[2, n], both: i64[n, 4], filled: i64[n, 4], chosen: i64[n, 2],
    less: bool[n, 2], equal: bool[n, 2], bounded: i64[n, 2], low: i32[n, 2], byte: u8[n, 2], is_there: bool[n, 2]) {
  same = stop_gradient(i)
  turned = transpose(i) {permutation: [1, 0]}
  both = concatenate(i, j) {dimension: 1}
  zero = constant() {value: 0, dtype: i64}
  filled = pad(i, zero) {low: [0, 1], high: [0, 1], interior: [0, 0]}
  less = lt(i, j)
  equal = eq(i, j)
  chosen = select_n(less, i, j)
  bounded = clamp(-4294967296, i, 1099511627776)
  low = convert_element_type(i) {dtype: i32}
  byte = convert_element_type(i) {dtype: u8}
  is_there = ne(i, zero)
}
"""

TO_FLOATS = """program floats(i: i64[n]) -> (f: f32[n], h: f16[n], b: bf16[n], e: f8_e5m2[n]) {
  f = convert_element_type(i) {dtype: f32}
  h = convert_element_type(i) {dtype: f16}
  b = convert_element_type(i) {dtype: bf16}
  e = convert_element_type(i) {dtype: f8_e5m2}
}
"""

TO_WIDE = """program wide(f: f32[n], h: f16[n], i: i32[n], u: u32[n], t: bool[n]) -> (ff: i64[n], hh: i64[n], ii: i64[n], uu: i64[n], tt: i64[n]) {
  ff = convert_element_type(f) {dtype: i64}
  hh = convert_element_type(h) {dtype: i64}
  ii = convert_element_type(i) {dtype: i64}
  uu = convert_element_type(u) {dtype: i64}
  tt = convert_element_type(t) {dtype: i64}
}
"""

INDEXED = """program indexed(x: f32[8, 3], i: i64[n], j: i64[n, 1], s: i64[], r: i64[n]) -> (taken: f32[n, 3], clipped: f32[n, 3], gathered: f32[n, 3], added: f32[8, 3],
    placed: f32[8, 3], part: f32[2, 3], put: f32[8, 3], place: i64[3], wide: i64[n]) {
  taken = take(x, i) {axis: 0}
  clipped = take(x, i) {axis: 0, mode: clip}
  gathered = gather(x, j) {offset_dims: [1], collapsed_slice_dims: [0], start_index_map: [0], slice_sizes: [1, 3], fill_value: -1.0}
  ones = full() {shape: [n, 3], fill_value: 1.0}
  added = scatter_add(x, j, ones) {update_window_dims: [1], inserted_window_dims: [0], scatter_dims_to_operand_dims: [0]}
  placed = scatter(x, j, ones) {update_window_dims: [1], inserted_window_dims: [0], scatter_dims_to_operand_dims: [0], mode: clip}
  part = dynamic_slice_in_dim(x, s) {size: 2, axis: 0}
  two = full() {shape: [1, 3], fill_value: 2.0}
  put = dynamic_update_slice_in_dim(x, two, s) {axis: 0}
  largest = argmax(x) {axis: 0}
  place = convert_element_type(largest) {dtype: i64}
  wide = take(r, i) {axis: 0, mode: clip}
}
"""


def test_values_are_stored_moved_compared_and_converted(libraries):
    i = np.array(EDGES, np.int64).reshape(-1, 2)
    j = np.random.default_rng(0).permutation(i.reshape(-1)).reshape(-1, 2)
    got = scalide.Library(libraries(MOVED))(i, j)
    expected = [i, i.T, np.concatenate([i, j], 1), np.pad(i, ((0, 0), (1, 1))), np.where(i < j, j, i), i < j, i == j, np.clip(i, -(2**32), 2**40),
                i.astype(np.int32), i.astype(np.uint8), i != 0]  # fmt: skip
    for name, result, wanted in zip(got._fields, got, expected, strict=True):
        assert result.dtype == wanted.dtype, name
        np.testing.assert_array_equal(result, wanted, name)


def nearest(number, mantissa_bits):
    """The nearest number with these bits after the leading one, ties to even: integers of Python are exact."""
    magnitude = abs(int(number))
    drop = max(0, magnitude.bit_length() - mantissa_bits - 1)
    whole, rest = divmod(magnitude, 1 << drop)
    half = (1 << drop) // 2
    up = rest > half or (drop > 0 and rest == half and whole % 2 == 1)
    return np.sign(int(number)) * float((whole + up) << drop)


def test_floats_are_rounded_once(libraries):
    ties = [2**k + 2 ** (k - m) + d for k in (30, 40, 60, 62) for m in (3, 8, 9, 24, 25) for d in (-1, 0, 1)]
    numbers = np.array(EDGES + ties + [-t for t in ties], np.int64)
    f, h, b, e = scalide.Library(libraries(TO_FLOATS))(numbers)
    np.testing.assert_array_equal(f, np.array([nearest(n, 23) for n in numbers], np.float32))
    np.testing.assert_array_equal(b.astype(np.float64), [nearest(n, 7) for n in numbers])
    for got, bits, largest in ((h, 10, 65504), (e, 2, 57344)):
        wide = np.array([nearest(n, bits) for n in numbers])
        np.testing.assert_array_equal(got.astype(np.float64), np.where(abs(wide) > largest, np.copysign(np.inf, wide), wide))


def test_other_dtypes_become_wide(libraries):
    f = np.float32([1.9, -1.9, 2**31, -(2**40), 2**62, 2**63, 1e30, -1e30, np.inf, -np.inf, np.nan, 0])
    h = np.float16([1.5, -1.5, 65504, np.inf, -np.inf, np.nan, 0, 1, 2, 3, 4, 5])
    i, u = np.arange(-6, 6, dtype=np.int32) * 2**28, np.arange(12, dtype=np.uint32) * 2**28 + 2**30
    t = np.arange(12) % 3 == 0
    ff, hh, ii, uu, tt = scalide.Library(libraries(TO_WIDE))(f, h, i, u, t)
    np.testing.assert_array_equal(ff, [1, -1, 2**31, -(2**40), 2**62, *[LIMITS.max] * 2, LIMITS.min, LIMITS.max, LIMITS.min, 0, 0])
    np.testing.assert_array_equal(hh, [1, -1, 65504, LIMITS.max, LIMITS.min, 0, 0, 1, 2, 3, 4, 5])
    for got, wanted in ((ii, i), (uu, u), (tt, t)):
        assert got.dtype == np.int64
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("start", [0, 5, 7, -1, -3, 2**32 + 1, LIMITS.max, LIMITS.min])
def test_operators_take_wide_indices(libraries, start):
    x = np.random.default_rng(1).standard_normal((8, 3)).astype(np.float32)
    i = np.array([3, 0, 7, -1, -8, -9, 8, 2**32, 2**32 + 1, -(2**32) + 2, 2**31, LIMITS.max, LIMITS.min], np.int64)
    r = i[::-1].copy()
    got = scalide.Library(libraries(INDEXED))(x, i, i[:, None], np.int64(start), r)
    inside, within = (-8 <= i) & (i < 8), (0 <= i) & (i < 8)
    np.testing.assert_array_equal(got.taken, np.where(inside[:, None], x[np.clip(i, -8, 7)], np.nan))
    np.testing.assert_array_equal(got.clipped, x[np.clip(i, 0, 7)])
    np.testing.assert_array_equal(got.gathered, np.where(within[:, None], x[np.clip(i, 0, 7)], np.float32(-1)))
    added, placed, put = x.copy(), x.copy(), x.copy()
    np.add.at(added, i[within], 1)
    placed[np.clip(i, 0, 7)] = 1
    at = max(-(2**31), min(start, 2**31 - 1))
    at = at + 8 if at < 0 else at
    put[min(max(at, 0), 7)] = 2
    np.testing.assert_array_equal(got.added, added)
    np.testing.assert_array_equal(got.placed, placed)
    np.testing.assert_array_equal(got.put, put)
    np.testing.assert_array_equal(got.part, x[min(max(at, 0), 6) :][:2])
    np.testing.assert_array_equal(got.place, x.argmax(0))
    np.testing.assert_array_equal(got.wide, r[np.clip(i, 0, len(r) - 1)])


def test_arrays_of_other_dtypes_are_refused(libraries):
    library = scalide.Library(libraries(MOVED))
    i = np.zeros((2, 2), np.int64)
    for wrong in (i.astype(np.int32), i.astype(np.float64), i.astype(np.uint64)):
        with pytest.raises((TypeError, ValueError), match="moved.j: dtype must be i64, got "):
            library(i, wrong)
