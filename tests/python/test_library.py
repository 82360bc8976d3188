"""scalide.Library: arrays in and out, and everything that can be wrong with them. No JAX but where it says so."""
import ctypes
import gc
import json
import os
import re
import pathlib
import platform
import subprocess
import sys
import threading
from unittest import mock

import ml_dtypes
import numpy as np
import pytest
from conftest import compile_text, edited_library

import scalide
from scalide import Library, ScaledArray

STEP = """program step(x: f32[b, 4], w: f32[4] inout, rate: f32[]) -> (y: f32[b], w = w1) {
  y = dot_general(x, w) {contract: [[1], [0]]}
  d = mul(w, rate)
  w1 = sub(w, d)
}
"""
DTYPES = """program dtypes(a: f16[n], b: bf16[n], c: f8_e4m3fn[n], d: i32[n], e: bool[n]) ->
    (aa: f16[n], bb: bf16[n], cc: f8_e4m3fn[n], dd: i32[n], ee: bool[n]) {
  aa = neg(a)
  bb = neg(b)
  cc = neg(c)
  dd = neg(d)
  ee = not(e)
}
"""
EMPTY = """program empty(x: f32[l, m, n]) -> (y: f32[l, m, n], s: f32[]) {
  t = rev(x) {dimensions: [1]}
  y = cumsum(t) {axis: 2, reverse: false}
  s = reduce_sum(x) {axes: [0, 1, 2]}
}
"""
SCALED = """program scaled(x: f16[n] scaled, w: f16[n] scaled inout) -> (y: f16[n] scaled, w = w1) {
  y = mul(x, w)
  w1 = mul(w, 2)
}
"""
LONG = """program long(x: f32[n, n]) -> (y: f32[n, n]) {
  a = dot_general(x, x) {contract: [[1], [0]]}
  y = dot_general(a, x) {contract: [[1], [0]]}
}
"""
TINY = """program tiny(x: f32[n]) -> (y: f32[n], total: f32[], rounded: f16[n]) {
  y = mul(x, 0.7)
  total = reduce_sum(y) {axes: [0]}
  rounded = convert_element_type(y) {dtype: f16}
}
"""


def tiny_numbers(count=100000):
    """Subnormal numbers, and others whose products are."""
    return (np.arange(1, count + 1) % 997 - 500.5).astype(np.float32) * np.float32(1e-41) * np.array([1, 3000], np.float32)[np.arange(count) % 2]


def bits_of(results):
    return [np.asarray(result).tobytes() for result in results]


def step_arrays(batch=3):
    x = np.arange(batch * 4, dtype=np.float32).reshape(batch, 4)
    return x, np.array([1, 2, 3, 4], np.float32), np.float32(0.5)


@pytest.fixture
def step(libraries):
    return Library(libraries(STEP))


@pytest.mark.skipif(platform.machine() != "x86_64", reason="sets the control register of x86-64")
@pytest.mark.parametrize("control", (0x9FC0, 0x5F80, 0x3F80, 0x7F80, 0x0000), ids=("flush", "upward", "downward", "towards zero", "traps"))
@pytest.mark.parametrize("threads", (1, 2))
def test_gives_the_same_bits_in_any_float_mode(libraries, control, threads):
    tiny, x = Library(libraries(TINY), threads=threads), tiny_numbers()
    results = [scalide.empty(x.shape), np.zeros((), np.float32), scalide.empty(x.shape, "f16")]
    tiny.out(x, *results)
    expected, math = bits_of(results), ctypes.CDLL("libm.so.6")
    assert np.count_nonzero(results[0]) == x.size
    before, inside, after = (ctypes.create_string_buffer(32) for _ in range(3))
    math.fegetenv(before)
    inside.raw = before.raw[:28] + control.to_bytes(4, "little")  # MXCSR is the last word
    for result in results:
        result[...] = 0
    try:
        math.fesetenv(inside)
        tiny.out(x, *results)
    finally:
        math.fegetenv(after)
        math.fesetenv(before)
    assert bits_of(results) == expected
    assert after.raw[28:] == inside.raw[28:]


RATIO = """program ratio(x: f16[n] scaled) -> (y: f32[n]) {
  wide = convert_element_type(x) {dtype: f32}
  total = reduce_sum(wide) {axes: [0]}
  inverse = div(1.0, total)
  y = mul(wide, inverse)
}
"""


def test_tells_the_first_result_that_is_not_finite(libraries):
    ratio, zero_sum = Library(libraries(RATIO)), ScaledArray(np.array([1, -1, 2, -2], np.float16), 4)
    assert ratio.first_non_finite(ScaledArray(np.ones(4, np.float16), 4)) is None
    found = ratio.first_non_finite(x=zero_sum)
    assert not np.isfinite(ratio(zero_sum)).any()
    assert str(found) == f"first non-finite: {found.tensor} ({found.source}), step {found.step} ({found.kernel})"
    assert (found.of, found.arguments) == (found.tensor, ()) and f"  {found.tensor} = " in RATIO.splitlines()[int(found.source.split(":")[1]) - 1]
    assert ratio.first_non_finite(zero_sum) == found == scalide.NonFinite(*found)
    assert error_of(ratio.first_non_finite, np.ones(4, np.float16)) == (
        "TypeError: ratio.x: must be a ScaledArray, got ndarray. Use scalide.ScaledArray(data, scale).")


def test_calls_by_position_and_name(step):
    x, w, rate = step_arrays()
    for result in (step(x, w, rate), step(x, rate=rate, w=w), step(w=w, x=x, rate=rate)):
        assert result._fields == ("w", "y") or result._fields == ("y", "w")
        np.testing.assert_array_equal(result.y, x @ w)
        np.testing.assert_array_equal(result.w, w / 2)
    np.testing.assert_array_equal(w, [1, 2, 3, 4])  # an inout of the caller stays


def test_every_shape_has_its_binding(step):
    for batch in [*range(1, 40), 3, 0, 3]:
        x, w, rate = step_arrays(batch)
        np.testing.assert_array_equal(step(x, w, rate).y, x @ w)


def test_writes_into_given_arrays(step):
    x, w, rate = step_arrays()
    w_in_place, y = scalide.empty(4), np.zeros(3, np.float32)
    w_in_place[:] = w
    assert step.out(x, w_in_place, rate, y=y) is None
    np.testing.assert_array_equal(y, x @ w)
    np.testing.assert_array_equal(w_in_place, w / 2)
    step.out(x, w_in_place, rate, y)
    np.testing.assert_array_equal(w_in_place, w / 4)


def test_takes_strided_unaligned_and_python_numbers(step):
    x, w, rate = step_arrays()
    unaligned = np.frombuffer(b"0" + x.tobytes(), np.uint8)[1:].view(np.float32).reshape(3, 4)
    for given in (np.asfortranarray(x), np.repeat(x, 2, 0)[::2], unaligned, x.astype(">f4")):
        np.testing.assert_array_equal(step(given, w[::-1][::-1], 0.5).y, x @ w)
    np.testing.assert_array_equal(step(x, w, 1).w, 0 * w)


def test_returns_every_dtype(libraries):
    arrays = [np.array([1, -2, 0], d) for d in (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.int32, np.bool_)]
    results = Library(libraries(DTYPES))(*arrays)
    for array, result in zip(arrays, results):
        assert result.dtype == array.dtype
        expected = ~array if array.dtype == bool else -array
        np.testing.assert_array_equal(result.astype(np.float32), expected.astype(np.float32))


def test_empty_arrays_of_large_extents(libraries):
    library, most = Library(libraries(EMPTY)), 2**31 - 1
    for shape in ((most, 0, 1), (0, most, 1), (0, 2**20, 2**20), (2**20, 2**20, 0)):
        y, s = library(np.empty(shape, np.float32))
        assert y.shape == shape and s == 0


def test_scaled_arguments(libraries):
    library = Library(libraries(SCALED))
    x, w = ScaledArray(np.array([1, 2], np.float16), 4), ScaledArray(np.array([3, 5], np.float16), np.float16(0.5))
    result = library(x, w)
    assert isinstance(result.y, ScaledArray) and result.y.scale.dtype == np.float32
    np.testing.assert_array_equal(np.asarray(result.y), [6, 20])
    np.testing.assert_array_equal(np.asarray(result.w), [3, 5])
    np.testing.assert_array_equal(w.to_array(), [1.5, 2.5])
    data = scalide.empty(2, "f16")
    data[:] = w.data
    in_place, y = ScaledArray(data, np.array(0.5, np.float32)), ScaledArray(np.empty(2, np.float16), np.ones((), np.float32))
    library.out(x, in_place, y=y)
    np.testing.assert_array_equal(np.asarray(y), [6, 20])
    np.testing.assert_array_equal(np.asarray(in_place), [3, 5])


def error_of(call, *args, **kwargs):
    with pytest.raises(Exception) as caught:
        call(*args, **kwargs)
    return f"{type(caught.value).__name__}: {caught.value}"


def test_says_what_is_wrong_with_arrays(step, libraries):
    x, w, rate = step_arrays()
    cases = [
        ((x.astype(np.float16), w, rate), "ValueError: step.x: dtype must be f32, got f16. Convert the array, or build the program with another policy."),
        ((x.astype(np.uint64), w, rate), "TypeError: step.x: dtype must be f32, got uint64. Convert the array."),
        ((x[0], w, rate), "ValueError: step.x: rank must be 2, got 1. Pass an array of shape [b, 4]."),
        ((x[:, :3], w, rate), "ValueError: step.x: extent 1 must be 4, got 3. Pass an array of shape [b, 4] with b = 3."),
        ((x, w[:3], rate), "ValueError: step.w: extent 0 must be 4, got 3. Pass an array of shape [4]."),
        ((x, w), "TypeError: step: the number of arrays must be 3, got 2. Pass x: f32[*, *], w: f32[*] inout, rate: f32[]."),
        ((x, w, [0.5]), "ValueError: step.rate: rank must be 0, got 1. Pass an array of shape []."),
        ((x, w, ["fast"]), "TypeError: step.rate: must be an array of f32, got list."),
        ((x, ScaledArray(w, 1), rate), "TypeError: step.w: must be a plain array, got a ScaledArray. Use its to_array()."),
        ((np.zeros((1,) * 12, np.float32), w, rate), "ValueError: step.x: rank must be 2, got 12. Pass an array of shape [b, 4]."),
    ]
    for args, message in cases:
        assert error_of(step, *args) == message
    np.testing.assert_array_equal(step(x, w, rate).y, x @ w)  # none of these has broken it
    assert error_of(step, x, w, speed=1) == "TypeError: step: unknown argument 'speed'. There are: x, w, rate."
    assert error_of(step, x, w, w=w) == "TypeError: step: argument 'w' is given twice. The arguments are x, w, rate."
    assert error_of(step, x, w=w) == "TypeError: step: missing argument 'rate'. The arguments are x, w, rate."
    scaled = Library(libraries(SCALED))
    half = ScaledArray(np.ones(2, np.float16), 1)
    assert error_of(scaled, half.data, half) == "TypeError: scaled.x: must be a ScaledArray, got ndarray. Use scalide.ScaledArray(data, scale)."


def test_takes_arrays_of_64_bits_and_lists_as_jax_does(step, libraries):
    """Those of 64 bits for the dtype of 32 that JAX takes them for, where they are only read."""
    x, w, rate = step_arrays()
    expected = step(x, w, rate)
    wide = np.asfortranarray(x.astype(np.float64)) + 1e-12  # rounds to x
    for args in ((wide, w.astype(np.float64), np.float64(rate)), (x.tolist(), w.tolist(), float(rate)), (list(x), tuple(w), np.array(rate, np.float64))):
        result = step(*args)
        assert result.y.dtype == result.w.dtype == np.float32
        np.testing.assert_array_equal(result.y, expected.y)
        np.testing.assert_array_equal(result.w, expected.w)
    y, inout = np.zeros(3, np.float32), scalide.empty(4)
    inout[:] = w
    step.out(wide, inout, rate, y)
    np.testing.assert_array_equal(y, expected.y)
    assert error_of(step.out, x, inout, rate, y.astype(np.float64)) == "TypeError: step.y: dtype must be f32, got float64. Convert the array."
    assert error_of(step.out, x, inout.astype(np.float64), rate, y) == "TypeError: step.w: dtype must be f32, got float64. Convert the array."
    half = scalide.Library(libraries(SCALED))
    data = np.array([1, 2], np.float64)
    assert error_of(half, ScaledArray(data, 4), ScaledArray(data, 1)) == "TypeError: scaled.x: dtype must be f16, got float64. Convert the array."


def test_takes_integers_of_64_bits(libraries):
    library = Library(libraries(DTYPES))
    arrays = [np.array([1, -2, 0], d) for d in (np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.int64, np.bool_)]
    arrays[3][0] = 2**32 + 5  # what JAX makes of it too
    np.testing.assert_array_equal(library(*arrays)[3], [-5, 2, 0])
    np.testing.assert_array_equal(library([1.0, -2, 0], [1, -2, 0], arrays[2], [1, -2, 0], [True, False, True])[3], [-1, 2, 0])
    assert "dtypes.d: must be an array of i32, got list." in error_of(library, *arrays[:3], [0.5, 1, 2], arrays[4])
    assert "dtypes.d: must be an array of i32, got a list, which cannot be converted: " in error_of(library, *arrays[:3], [2**31, 1, 2], arrays[4])


def test_builds_with_operators_of_the_user(tmp_path):
    rule = tmp_path / "own" / "mish_beta.yaml"
    rule.parent.mkdir()
    rule.write_text("op: mish_beta\nfamily: elementwise\ndoc: x * tanh(softplus(beta * x)).\noperands: {x: float}\nattrs: {beta: number}\n"
                    "value: x * tanh(log1p(exp(beta * x)))\ncheck: {cases: [{x: [m], beta: 2}]}\n")  # fmt: skip
    program = scalide.Program("program own(x: f32[n]) -> (y: f32[n]) {\n  y = mish_beta(x) {beta: 2.0}\n}\n")
    x = np.linspace(-2, 2, 5, dtype=np.float32)
    for rules in ([rule], str(rule.parent)):
        np.testing.assert_allclose(scalide.build(program, rules=rules)(x), x * np.tanh(np.log1p(np.exp(2 * x))), rtol=1e-5, atol=1e-7)
    assert "unknown operator 'mish_beta'" in error_of(scalide.build, program)
    assert "cannot read rules from" in error_of(scalide.build, program, rules=[tmp_path / "none.yaml"])


def test_says_what_the_numerics_reach(tmp_path, caplog):
    program = scalide.Program("program product(x: f32[4, 8], w: f32[8, 2]) -> (y: f32[4, 2]) {\n  y = dot_general(x, w) {contract: [[1], [0]]}\n}\n")
    with caplog.at_level("INFO", "scalide"):
        library = scalide.build(program, numerics="f8_master")
        assert library.summary.startswith("f8_master: 1 of 1 matmuls in f8, all scaled; ")
        policy = tmp_path / "unscaled.yaml"
        policy.write_text("policy: unscaled\nrules:\n  - {op: dot_general, operand: lhs, insert: [{convert: f8_e4m3fn}]}\n")
        assert scalide.build(program, numerics=policy).summary.endswith("warning: the policy converts 1 array to 8 bits without a scale ('scalide explain' lists them)")
    records = [record for record in caplog.records if " is no faster than f32 on " not in record.message]  # on CPUs without products of bf16
    assert [(record.levelname, "product: f8_master: " in record.message) for record in records] == [("INFO", True), ("WARNING", False)]
    assert scalide.Library(library.path).summary is None


def test_says_which_formats_are_no_faster_than_f32(caplog):
    program = scalide.Program("program product(x: f32[64, 64], w: f32[64, 64]) -> (y: f32[64, 64]) {\n  y = dot_general(x, w) {contract: [[1], [0]]}\n}\n")
    with caplog.at_level("INFO", "scalide"):
        scalide.build(program, numerics="f8_master", target="x86-64-v2")
        scalide.build(program, numerics="f32", target="x86-64-v2")
    note = "product: f8_master is no faster than f32 on x86-64-v2 in 1 of 1 matmul (100 % of FLOPs): f8 (decoded to f32, mul and add; "
    assert [record.message.startswith(note) for record in caplog.records] == [True, False, False]


def test_says_what_cannot_be_written(step):
    x, w, rate = step_arrays()
    y = np.zeros(3, np.float32)
    frozen = y.copy()
    frozen.flags.writeable = False
    aligned = scalide.empty(4)
    assert "step.y: must be contiguous, aligned and writable" in error_of(step.out, x, aligned, rate, frozen)
    assert "step.y: must be contiguous, aligned and writable" in error_of(step.out, x, aligned, rate, np.zeros(6, np.float32)[::2])
    assert "step.y: a run writes this memory, but it overlaps with" in error_of(step.out, x, aligned, rate, x[0, :3])
    assert "step.w: data must be aligned to 64 bytes" in error_of(step.out, x, np.frombuffer(bytearray(100), np.uint8)[4:20].view(np.float32), rate, y)
    assert "step.y: extent 0 must be 3, got 2" in error_of(step.out, x, aligned, rate, y[:2])


def test_library_that_is_none(libraries, tmp_path):
    path = libraries(STEP)
    assert error_of(Library, tmp_path / "libnone.so").startswith("FileNotFoundError: ")
    (tmp_path / "libtext.so").write_text("no library")
    assert "libtext.so: cannot load this file" in error_of(Library, tmp_path / "libtext.so")
    assert "the library has no program 'other'" in error_of(Library, path, name="other")
    assert "Library.threads: must be in [0, 1024], got -1" in error_of(Library, path, threads=-1)


def test_deleted_closed_and_replaced_libraries(tmp_path):
    x, w, rate = step_arrays()
    path = compile_text(tmp_path, STEP)
    library = Library(path)
    path.unlink()
    np.testing.assert_array_equal(library(x, w, rate).w, w / 2)  # the memory stays mapped
    assert error_of(Library, path).startswith("FileNotFoundError: ")
    compile_text(tmp_path, STEP.replace("sub(w, d)", "add(w, d)"))
    np.testing.assert_array_equal(Library(path)(x, w, rate).w, w * 1.5)  # not the one of before
    np.testing.assert_array_equal(library(x, w, rate).w, w / 2)
    library.close()
    assert error_of(library, x, w, rate) == "ValueError: library 'step' is closed. Load it again."


def test_library_for_another_machine_or_cut(libraries, tmp_path):
    content = libraries(STEP).read_bytes()
    (tmp_path / "libarm.so").write_bytes(content[:18] + bytes([183]) + content[19:])  # e_machine of the ELF header
    (tmp_path / "libpart.so").write_bytes(content[: len(content) // 3])
    assert "libarm.so: cannot load this file: it is built for arm-64, but this process runs on x86-64." in error_of(Library, tmp_path / "libarm.so")
    assert "libpart.so: cannot load this file: the file is truncated." in error_of(Library, tmp_path / "libpart.so")
    foreign = error_of(scalide.build, scalide.Program(STEP), target="arm-64-linux")
    assert foreign.startswith("BuildError: error: cannot build a shared library for 'arm-64-linux' on ") and ". Build a static library" in foreign
    card = error_of(scalide.build, scalide.Program(STEP), target="cuda", cuda_arch=[90, 86])
    assert card.startswith("BuildError: error: --cuda-arch: unsupported value '86'. Use 80, 89, 90, 100 or 120 ")


def test_library_for_another_runtime_or_cpu(tmp_path):
    old = edited_library(tmp_path / "old", STEP, {"SCALIDE_PLAN_VERSION": "77"})
    words = r"RuntimeError: step: plan version must be \d+, got 77. Generate the library again with the tool of this runtime."
    assert re.fullmatch(words, error_of(Library, old))
    target = Library(compile_text(tmp_path, STEP)).target
    other = edited_library(tmp_path / "other", STEP, {f'"{target}"': '"arm-64-linux"'})
    assert error_of(Library, other).startswith("RuntimeError: step: the CPU must have all features of the target arm-64-linux, but it has no ")
    newer = edited_library(tmp_path / "newer", STEP, {f'"{target}"': '"x86-64-linux-avx10_1"'})  # a feature that the runtime does not know
    assert "the target x86-64-linux-avx10_1, but it has no avx10_1. " in error_of(Library, newer)


def test_threads_share_a_library(libraries):
    library = Library(libraries(LONG))
    problems = []

    def work(seed):
        x = np.random.default_rng(seed).standard_normal((40 + seed, 40 + seed)).astype(np.float32)
        for _ in range(50):
            if not np.allclose(library(x), x @ x @ x, rtol=1e-3, atol=1e-2):
                problems.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_releases_the_gil(libraries):
    library = Library(libraries(LONG))
    x, ticks, done = np.ones((1500, 1500), np.float32), [], threading.Event()

    def tick():
        while not done.wait(0.001):
            ticks.append(1)

    thread = threading.Thread(target=tick)
    thread.start()
    library(x)
    done.set()
    thread.join()
    assert len(ticks) > 3


def test_memory_is_given_back(libraries):
    library = Library(libraries(LONG))
    x = np.ones((256, 256), np.float32)

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    for _ in range(20):
        library(x)
    gc.collect()
    before = resident()
    for _ in range(400):
        library(x)
    assert resident() - before < 400 * x.nbytes / 10


def test_a_forked_process_is_told(step):
    x, w, rate = step_arrays()
    step(x, w, rate)
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(writer, error_of(step, x, w, rate).encode())
        os._exit(0)
    os.wait()
    assert os.read(reader, 1000).decode().startswith("ValueError: step: a forked process cannot run this library.")


def test_needs_no_jax(libraries):
    code = f"""
import sys
import numpy as np, scalide
library = scalide.Library({str(libraries(STEP))!r})
library(np.ones((2, 4), 'f'), np.ones(4, 'f'), 1.0)
assert 'jax' not in sys.modules, 'jax was imported'
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_jax_arrays_come_back_as_such(step):
    jax = pytest.importorskip("jax")
    x, w, rate = (jax.numpy.asarray(a) for a in step_arrays())
    result = step(x, w, rate)
    assert all(isinstance(r, jax.Array) for r in result)
    np.testing.assert_array_equal(result.y, x @ w)
    np.testing.assert_array_equal(jax.jit(lambda x: step(x, w, rate).y)(x), x @ w)
    mixed = step(np.asarray(x), w, 0.5)
    assert isinstance(mixed.y, jax.Array)
    for args in ((x, np.asarray(w, np.float64), 0.5), (x, np.asarray(w).tolist(), np.float64(0.5)), (x, w, 0.5)):
        np.testing.assert_array_equal(step(*args).w, mixed.w)
    assert error_of(step, x.astype(np.float16), w, rate).startswith("TypeError: step.x: dtype must be f32, got float16.")


def test_says_that_an_array_is_on_another_device(step):
    """An emulated device, because this machine may have no other device."""
    jax = pytest.importorskip("jax")
    x, w, rate = step_arrays()
    gpu = mock.Mock(platform="gpu", __repr__=lambda _: "CudaDevice(id=0)")
    on_gpu = mock.Mock(__class__=jax.Array, devices=lambda: {gpu}, is_deleted=lambda: False)
    expected = "ValueError: step: arrays must be on the CPU, got an array on {CudaDevice(id=0)}. Move it with jax.device_put(x, jax.devices('cpu')[0])."
    assert error_of(step, on_gpu, w, rate) == expected
    assert error_of(step, x, jax.numpy.asarray(w), on_gpu) == expected


DEVICES = """
import jax, numpy as np, scalide
from jax.sharding import Mesh, NamedSharding, PartitionSpec
step = scalide.Library(PATH)
first, second = jax.devices()
x, w = np.arange(16, dtype=np.float32).reshape(4, 4), np.ones(4, np.float32)
moved = [jax.device_put(a, second) for a in (x, w)]
y = step(*moved, 0.5).y
assert y.devices() == {second} and (y == x @ w).all()
try:
    step(moved[0], jax.device_put(w, first), 0.5)
    raise AssertionError("two devices in one call")
except ValueError as error:
    assert "incompatible devices" in str(error)
sharded = jax.device_put(x, NamedSharding(Mesh(np.array([first, second]), ("b",)), PartitionSpec("b")))
assert (step(sharded, w, 0.5).y == x @ w).all()
"""


def test_runs_on_any_of_the_cpu_devices(libraries):
    """A sharded array is gathered."""
    pytest.importorskip("jax")
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    subprocess.run([sys.executable, "-c", DEVICES.replace("PATH", repr(str(libraries(STEP))))], check=True, env=environment)


PRODUCT = """program product(x: f32[n, 64], w: f32[64, 48]) -> (y: f32[n, 48]) {
  y = dot_general(x, w) {contract: [[1], [0]]}
}
"""


def test_a_traceable_library_stores_rounded_operands_and_gives_the_same_bits(tmp_path):
    random = np.random.default_rng(0)
    x, w = random.normal(size=(33, 64)).astype(np.float32), random.normal(size=(64, 48)).astype(np.float32)
    stored, results = [], []
    for traceable in (False, True):
        folder = tmp_path / str(traceable)
        library = scalide.build(scalide.Program(PRODUCT), numerics="f8_master", output=folder, traceable=traceable)
        results.append(library(x, w))
        buffers = json.loads((folder / "product.json").read_text())["programs"][0]["buffers"]
        stored.append(sum(buffer["dtype"] == "f8_e4m3fn" for buffer in buffers))
    assert stored == [0, 2]
    np.testing.assert_array_equal(*results)


ON_DEVICES = """program on_devices(x: f32[n, 5] scaled, y: i32[n, 5], w: f32[n, 5] inout) -> (z: f32[n, 5] scaled, k: i32[n, 5], w = w1) {
  z = mul(x, x)
  k = mul(y, y)
  w1 = sub(w, 1.0)
}
"""


def test_a_library_for_opencl_takes_host_arrays(tmp_path):
    program = scalide.Program(ON_DEVICES)
    try:
        on_device = scalide.build(program, target="opencl")
    except RuntimeError as error:
        pytest.skip(str(error))
    on_host = scalide.build(program)
    for n in (3, 7, 3, 0):
        x = ScaledArray(np.arange(n * 5, dtype=np.float32).reshape(n, 5), np.float32(2))
        y, w = np.arange(n * 5, dtype=np.int32).reshape(n, 5), scalide.empty((n, 5))
        w[...] = 3
        for got, expected in zip(on_device(x, y, w), on_host(x, y, w), strict=True):
            np.testing.assert_array_equal(np.asarray(got.to_array() if isinstance(got, ScaledArray) else got),
                                          np.asarray(expected.to_array() if isinstance(expected, ScaledArray) else expected))
        assert (w == 3).all()
    words = error_of(on_device, x, y.astype(np.float32), w)
    assert words.startswith("ValueError: on_devices.y: dtype must be i32, got f32. "), words
    assert len(on_device(x, y, w)) == 3  # the library works after an error


def test_a_library_for_cuda_says_what_is_missing(tmp_path):
    try:
        scalide.build(scalide.Program(ON_DEVICES), target="cuda")
    except RuntimeError as error:
        assert re.match(r"cannot load the CUDA driver: .*|the CUDA driver has no function .*|no CUDA GPU found .*", str(error)), error
    else:
        pytest.skip("there is a card")


def test_a_call_can_fail_at_an_infinity(libraries):
    """The exception names the step and has the results. The run is the only one: the library updates a donated array once."""
    ratio, zero_sum = Library(libraries(RATIO)), ScaledArray(np.array([1, -1, 2, -2], np.float16), 4)
    fine = ScaledArray(np.ones(4, np.float16), 4)
    np.testing.assert_array_equal(ratio(fine, check_finite=True), ratio(fine))
    with pytest.raises(scalide.NonFiniteError) as raised:
        ratio(zero_sum, check_finite=True)
    assert raised.value.found == ratio.first_non_finite(zero_sum) and str(raised.value) == str(raised.value.found)
    np.testing.assert_array_equal(raised.value.results, ratio(zero_sum))
    halves = Library(libraries("program halves(w: f32[n] inout, x: f32[n]) -> (w = v) {\n  h = mul(w, 0.5)\n  v = add(h, x)\n}\n"))
    w, x = scalide.empty(3), np.array([0, np.inf, 0], np.float32)
    for run, result in ((lambda: halves.donate(w, x, check_finite=True), w), (lambda: halves.out(w, x, check_finite=True), None)):
        w[:] = 4
        with pytest.raises(scalide.NonFiniteError) as raised:
            run()
        np.testing.assert_array_equal(w, [2, np.inf, 2])
        assert raised.value.results is result and raised.value.found.arguments == ("x",) and (raised.value.found.tensor, raised.value.found.direction) == ("w", "update")
    w[:] = 4
    assert halves.donate(w, np.zeros(3, np.float32), check_finite=True) is w and w[0] == 2 and halves.out(w, np.zeros(3, np.float32), check_finite=True) is None


LAYERS = """program layers(x: f32[n, 8], w: f32[8, 8]) -> (s: f32[n]) {
  scope "first" {
    h = dot_general(x, w) {contract: [[1], [0]]}
  }
  scope "second" {
    a = tanh(h)
    g = dot_general(a, w) {contract: [[1], [0]]}
  }
  s = reduce_sum(g) {axes: [1]}
}
"""


def test_a_run_returns_the_arrays_between_its_kernels(libraries):
    layers = Library(libraries(LAYERS))
    x, w = np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 8), np.eye(8, dtype=np.float32)
    result, arrays = layers.run_traced(x, w)
    np.testing.assert_array_equal(result, layers(x, w))
    found = {array.tensor: array for array in arrays}
    assert found["s"].array is not result and np.array_equal(found["s"].array, result)
    np.testing.assert_allclose(found["a"].array, np.tanh(x), rtol=1e-6)
    assert found["a"][1:9] == ("a", "f32", "whole", "", "tanh", "forward", "second", "source.scl:6"), found["a"]
    assert {array.tensor for array in layers.run_traced(x, w, scope="second/**")[1]} == {name for name, array in found.items() if array.scope == "second"}
    assert [array.tensor for array in layers.run_traced(x, w, tensor="s")[1]] == ["s"]
    assert layers.run_traced(x, w, tensor="missing")[1] == ()
    loop = Library(libraries("program loop(h: f32[4, 4], xs: f32[70, 4, 4]) -> (h1: f32[4, 4]) {\n  h1 = scan(h, xs) {length: 70} with\n"
                             "    body(h: f32[4, 4] inout, x: f32[4, 4] each) -> (h = after) {\n      p = dot_general(h, x) {contract: [[1], [0]]}\n"
                             "      q = cumsum(p) {axis: 0}\n      after = add(q, x)\n    }\n}\n"))
    steps = loop.run_traced(np.zeros((4, 4), np.float32), np.ones((70, 4, 4), np.float32), tensor="p")[1]
    assert [array.loops for array in steps] == [f"step {step} of scan h1" for step in range(70)] and steps[0].array[0, 0] == 0 and steps[1].array[0, 0] == 4


def test_globs_are_those_of_policies():
    """As in the table of docs/reference/policies.md."""
    from scalide.words import glob_pattern

    for glob, matching, other in (("**/head/**", ("head", "a/head", "head/0"), ("heads",)), ("*.bias", ("dense.bias",), ("bias", "a.dense.bias")),
                                  ("**.bias", ("bias", "dense.bias", "a.dense.bias"), ("dense.bias.m",)), ("v1*", ("v1", "v12"), ("v2", "v1.x"))):  # fmt: skip
        assert all(re.fullmatch(glob_pattern(glob), name) for name in matching) and not any(re.fullmatch(glob_pattern(glob), name) for name in other), glob
