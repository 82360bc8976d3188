"""scalide.save, scalide.load and flax.serialization: every dtype bit for bit, the runtime's files, structures, hostile files."""
import collections
import json
import os
import struct
import subprocess
import sys

import flax.serialization
import flax.struct
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from test_library import error_of

import scalide
import scalide.jax
from scalide import ScaledArray, arrays

Pair = collections.namedtuple("Pair", "first second")
FLOATS = [name for name in arrays.known() if name[0] in "fb" and name != "bool"]


@flax.struct.dataclass
class State:
    w: ScaledArray
    step: jax.Array


def every_code(dtype):
    """All words of 8 bits; of longer dtypes some, NaN and subnormals among them."""
    dtype = arrays.numpy_dtype(dtype)
    if dtype == np.bool_:
        return np.array([True, False])
    return np.random.default_rng(0).integers(0, 256, 256 * dtype.itemsize, np.uint8).view(dtype) if dtype.itemsize > 1 else np.arange(256, dtype=np.uint8).view(dtype)


def assert_same(got, want):
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want)):
        a, b = np.asarray(a), np.asarray(b)
        assert (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def test_every_dtype_bit_for_bit(tmp_path):
    tree = {name: every_code(name) for name in arrays.known()}
    tree |= {f"scaled {name}": ScaledArray(every_code(name).reshape(2, -1), np.float32(3)) for name in FLOATS}
    tree["empty"], tree["rank 0"] = np.zeros((0, 3), np.float16), ScaledArray(np.array(2, ml_dtypes.bfloat16), np.float32(2.0**-140))
    scalide.save(tmp_path / "a", tree)
    assert_same(scalide.load(tmp_path / "a"), tree)
    assert_same(scalide.load(tmp_path / "a", like=tree), tree)
    # Flax finds a dtype by the name that NumPy has for it, and NumPy has none for some.
    tree = {name: value for name, value in tree.items() if "f8_e8m0fnu" not in name}
    assert_same(flax.serialization.from_bytes(tree, flax.serialization.to_bytes(tree)), tree)


def test_structures(tmp_path):
    scaled = ScaledArray(jnp.ones(2, jnp.float16), jnp.float32(2))
    tree = {"layers": [(scaled, None), Pair(np.uint32([1]), {"deep": scaled})], "step": 7, "rate": 0.5, "on": True, "none": [], "other": {}}
    scalide.save(tmp_path / "a", tree)
    got = scalide.load(tmp_path / "a")
    assert_same(got, jax.tree.map(lambda leaf: np.asarray(leaf, {bool: bool, int: np.int32, float: np.float32}.get(type(leaf))), tree))
    assert isinstance(got["layers"][1], Pair) and isinstance(got["layers"][0][0].data, np.ndarray)
    for alone in (scaled, np.float32([1, 2])):
        scalide.save(tmp_path / "a", alone)
        assert_same(scalide.load(tmp_path / "a"), alone)
    state = State(scaled, jnp.int32(3))
    scalide.save(tmp_path / "a", state)
    assert_same(scalide.load(tmp_path / "a", like=state), state)
    assert_same(scalide.load(tmp_path / "a", like=jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), state)), state)
    assert "loading needs 'like'" in error_of(scalide.load, tmp_path / "a")
    assert_same(flax.serialization.from_bytes(state, flax.serialization.to_bytes(state)), state)


def test_names_are_those_of_traced_arguments_and_of_the_runtime(tmp_path, libraries):
    """The tool runs on the file with the runtime's reader and writes one with its writer."""
    params = {"w": ScaledArray(np.float16([1, 2]), np.float32(4)), "b": np.float32([1, 1])}
    program = scalide.jax.trace(lambda params, rate: {"w": params["w"] * 2, "b": params["b"] * rate}, params, np.float32(2))
    program.save(tmp_path / "p.scl")
    scalide.save(tmp_path / "in", {"params": params, "rate": 2.0})
    subprocess.run([os.environ["SCALIDE_TOOL"], "run", tmp_path / "p.scl", "-i", tmp_path / "in", "-o", tmp_path / "out"], check=True, stdout=subprocess.DEVNULL)
    flat = scalide.load(tmp_path / "out")
    assert sorted(flat) == ["out.b", "out.w"] and isinstance(flat["out.w"], ScaledArray)
    got = scalide.load(tmp_path / "out", like={"out": params})["out"]
    np.testing.assert_array_equal(got["w"].to_array(np.float32), [8, 16])
    # Whole arrays of the names that the parts of a scaled one would have.
    beside = {"x": ScaledArray(np.float16([1]), np.float32(2)), "x.data": np.float32([3]), "y": {"data": np.float16([4]), "scale": np.float32(5)}}
    scalide.save(tmp_path / "a", beside)
    assert sorted(arrays.read_safetensors(tmp_path / "a")) == ["x!data", "x!scale", "x.data", "y.data", "y.scale"]
    assert_same(scalide.load(tmp_path / "a"), beside)


def test_what_cannot_be_saved(tmp_path):
    path = tmp_path / "a"
    scalide.save(path, np.float32([1]))
    before = path.read_bytes()
    for tree, words in (({"x": np.zeros(2)}, "x: dtype must be one of"), ({"x": 2**31}, "x: a number must fit into i32"), ({"x": "word"}, "x: must be an array"),
                        ({"a": {"b": np.float32(1)}, "a.b": np.float32(1)}, "two arrays have the name a.b"), ({"": np.float32(1)}, "value"),
                        ({"x": ScaledArray(np.float16([1]), np.float16(1))}, "x: scale must be f32, got float16"),
                        ({"x": ScaledArray._of(np.float16([1]), np.float32(np.nan))}, "x: ScaledArray.scale: must be finite in f32, got nan"),
                        ({"x": ScaledArray._of(np.float16([1]), np.float32(-1))}, "x: ScaledArray.scale: must not be negative, got -1"),
                        ({"x": jax.random.key(0)}, "jax.random.key_data")):  # fmt: skip
        if words == "value":
            scalide.save(tmp_path / "empty name", tree)
            continue
        assert words in error_of(scalide.save, path, tree), tree
    assert path.read_bytes() == before and sorted(os.listdir(tmp_path)) == ["a", "empty name"]
    assert "it is a folder or a device" in error_of(scalide.save, tmp_path, np.float32([1]))


def test_files_that_are_not_like_it(tmp_path):
    path = tmp_path / "a"
    scalide.save(path, {"w": np.float16([1, 2])})
    for like, words in (({"w": np.float32([1, 2])}, "w: must be float32[2] as in 'like', got float16[2]"), ({"v": np.float16([1])}, "the file has no array v. Other arrays: w"),
                        ({"w": ScaledArray(np.float16([1, 2]), np.float32(1))}, "must be scaled float16[2]"), ({}, "but it lacks w")):  # fmt: skip
        assert words in error_of(scalide.load, path, like), like


def test_scales_of_files_are_checked(tmp_path):
    path, header = tmp_path / "a", {"x.data": {"dtype": "F16", "shape": [1], "data_offsets": [0, 2]}, "x.scale": {"dtype": "F32", "shape": [], "data_offsets": [2, 6]}}
    tree = {"scalide.tree": '{"dict": {"x": "*"}}'}
    for scale, words in ((np.nan, "must be finite in f32, got nan"), (np.inf, "must be finite in f32, got inf"), (-2, "must not be negative, got -2.0")):
        for metadata, like in ((None, None), (tree, None), (tree, {"x": ScaledArray(np.float16([1]), np.float32(1))})):
            write(path, header, np.float16([1]).tobytes() + np.float32(scale).tobytes(), metadata)
            assert f"{path}: x: ScaledArray.scale: {words}" in error_of(scalide.load, path, like), (scale, metadata)


def write(path, header, data=b"", metadata=None):
    text = json.dumps(header | ({"__metadata__": metadata} if metadata else {})).encode() if isinstance(header, dict) else header
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def test_hostile_files(tmp_path):
    path = tmp_path / "a"
    good = {"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
    for header, data, metadata in ((b"no json", b"", None), ({"x": {**good["x"], "dtype": "F99"}}, b"1234", None), ({"x": {**good["x"], "shape": [-1]}}, b"1234", None),
                                   ({"x": {**good["x"], "data_offsets": [0, 8]}}, b"1234", None), (good, b"", None), ({"x": 3}, b"", None), (b"[]", b"", None),
                                   ({"x": {**good["x"], "shape": [2**62], "data_offsets": [0, 2**64]}}, b"1234", None), (good, b"1234", {"scalide.version": "2"}),
                                   *((good, b"1234", {"scalide.tree": tree}) for tree in ('{"dict": {"y": "*"}}', "[", '{"dict": 3}', '"x"', "[" * 5000, '{"dict": {}}'))):  # fmt: skip
        write(path, header, data, metadata)
        assert error_of(scalide.load, path).startswith("ValueError: "), (header, metadata)
    path.write_bytes(b"123")
    assert error_of(scalide.load, path).startswith("ValueError: ")
    # Nothing is imported or called for a file.
    for name in ("subprocess:run", "antigravity:Pair", "collections:OrderedDict"):
        write(path, good, b"1234", {"scalide.tree": json.dumps({"namedtuple": name, "names": ["x"], "fields": ["*"]})})
        assert "there is no named tuple" in error_of(scalide.load, path)
    assert "antigravity" not in sys.modules


@pytest.mark.parametrize("first", ["flax.serialization", "scalide"])
def test_flax_knows_scaled_arrays_in_either_order(first):
    other = {"scalide": "flax.serialization"}.get(first, "scalide")
    code = (f"import {first}\nassert not ({first!r} == 'scalide' and 'flax' in __import__('sys').modules)\nimport {other}, numpy as np\n"
            "x = scalide.ScaledArray(np.float16([1, 2]), 4.0)\n"
            "y = flax.serialization.from_bytes({'x': x}, flax.serialization.to_bytes({'x': x}))['x']\n"
            "assert type(y) is scalide.ScaledArray and y.scale == 4 and (y.data == x.data).all()\n")  # fmt: skip
    subprocess.run([sys.executable, "-c", code], check=True)
