"""Arguments of role constant: the same bits as with inputs, prepared or not, and what the plan and the tool say about them. No JAX."""
import json
import subprocess

import ml_dtypes
import numpy as np
import pytest
from conftest import TOOL

from scalide import Library, Program, ScaledArray, build, empty

MLP = """program mlp(x: f32[b, 40], w1: f32[40, 24]ROLE, bias: f32[24]ROLE, w2: f32[24, 10]ROLE) -> (y: f32[b, 10]) {
  h0 = dot(x, w1)
  biases = broadcast_in_dim(bias) {shape: [b, 24], dims: [1]}
  h1 = add(h0, biases)
  h = relu(h1)
  y = dot(h, w2)
}
"""
RESULTS = """program results(x: f32[n], w: f32[m, 4]ROLE) -> (y: f32[n], v: f32[m, 4] = w, t: f32[4, m], s: f32[]) {
  t = transpose(w) {permutation: [1, 0]}
  s = reduce_sum(w) {axes: [0, 1]}
  spread = broadcast_in_dim(s) {shape: [n], dims: []}
  y = mul(x, spread)
}
"""
POLICIES = ["f32", "bf16", "f8_weights", "f8_master", "f16_master", "f8_scaled", "f16_scaled", "mxfp8"]


def given(argument, array):
    dtype = {"f8_e4m3fn": ml_dtypes.float8_e4m3fn, "f16": np.float16, "bf16": ml_dtypes.bfloat16}.get(argument.dtype, np.float32)
    data = array.astype(dtype)
    return ScaledArray(data, np.float32(0.5)) if argument.scaled else data


def run(library, arrays, prepare=False):
    inputs = [given(argument, array) for argument, array in zip(library.arguments, arrays)]
    if prepare:
        library, inputs = library.prepare(*inputs[1:]), inputs[:1]
    results = library(*inputs, *([library.init()] if library.init() else []))
    return [np.asarray(part) for result in (results if isinstance(results, tuple) else [results]) if not isinstance(result, dict)
            for part in ([result.data, result.scale] if isinstance(result, ScaledArray) else [result])]


@pytest.mark.parametrize("numerics", POLICIES)
def test_a_constant_changes_no_bit(libraries, numerics):
    random = np.random.default_rng(1)
    depth = 32 if numerics == "mxfp8" else 40
    text = MLP.replace("40", str(depth)).replace("24", "32") if numerics == "mxfp8" else MLP
    plain, constant = (Library(libraries(text.replace("ROLE", role), numerics)) for role in ("", " constant"))
    width = 32 if numerics == "mxfp8" else 24
    for b in (1, 16, 128):
        arrays = [random.standard_normal(shape).astype(np.float32) for shape in ((b, depth), (depth, width), (width,), (width, 10))]
        for expected, got, shared in zip(run(plain, arrays), run(constant, arrays), run(constant, arrays, prepare=True), strict=True):
            np.testing.assert_array_equal(expected.view(np.uint8), got.view(np.uint8))
            np.testing.assert_array_equal(expected.view(np.uint8), shared.view(np.uint8))


def test_prepared_arrays_are_results_and_have_symbolic_shapes(libraries):
    plain, constant = (Library(libraries(RESULTS.replace("ROLE", role))) for role in ("", " constant"))
    for m in (3, 0, 17):
        arrays = np.arange(5, dtype=np.float32), np.arange(4 * m, dtype=np.float32).reshape(m, 4)
        for expected, got in zip(plain(*arrays), constant(*arrays), strict=True):
            np.testing.assert_array_equal(expected, got)


def test_each_call_may_pass_other_constants(libraries):
    library = Library(libraries(RESULTS.replace("ROLE", " constant")))
    x = np.ones(2, np.float32)
    for number in (1, 2, 3):
        np.testing.assert_array_equal(library(x, np.full((1, 4), number, np.float32)).y, 4 * number * x)


def weights(seed):
    random = np.random.default_rng(seed)
    return [random.standard_normal(shape).astype(np.float32) for shape in ((40, 24), (24,), (24, 10))]


def test_prepared_libraries_keep_their_constants(libraries):
    library = Library(libraries(MLP.replace("ROLE", " constant"), "bf16"))
    x = np.ones((3, 40), np.float32)
    first, second = library.prepare(*weights(1)), library.prepare(w2=weights(2)[2], w1=weights(2)[0], bias=weights(2)[1])
    assert repr(first) == "<scalide.Library mlp(x: f32[*, *]) -> (y)>" and first.prepared_bytes == second.prepared_bytes > 0 == library.prepared_bytes
    for _ in range(2):  # they share the bindings of the library
        np.testing.assert_array_equal(first(x), library(x, *weights(1)))
        np.testing.assert_array_equal(second(x), library(x, *weights(2)))
    np.testing.assert_array_equal(first.prepare(*weights(2))(x), second(x))
    y = empty((3, 10))
    first.out(x, y)
    np.testing.assert_array_equal(y, first(x))
    x[0, 0] = np.inf
    assert first.first_non_finite(x).arguments == ("x",) and second.first_non_finite(np.ones_like(x)) is None


def test_prepared_shapes_belong_to_the_constants(libraries):
    library = Library(libraries(RESULTS.replace("ROLE", " constant")))
    x, small, large = np.ones(2, np.float32), np.full((1, 4), 3, np.float32), np.full((5, 4), 2, np.float32)
    prepared = [library.prepare(small), library.prepare(large)]
    for of_weights, w in zip(prepared * 2, [small, large] * 2, strict=True):
        for expected, got in zip(library(x, w), of_weights(x), strict=True):
            np.testing.assert_array_equal(expected, got)


def test_wrong_prepared_arrays_are_refused(libraries):
    library = Library(libraries(MLP.replace("ROLE", " constant")))
    w1, bias, w2 = weights(1)
    prepared = library.prepare(w1, bias, w2)
    x = np.ones((3, 40), np.float32)
    for call, message in (
        (lambda: library.prepare(w1, bias), "mlp: missing argument 'w2'. The arguments are w1, bias, w2."),
        (lambda: library.prepare(w1, biases=bias), "mlp: unknown argument 'biases'. Did you mean 'bias'?"),
        (lambda: library.prepare(w1.astype(np.float16), bias, w2), "mlp.w1: dtype must be f32, got f16. Convert the array, or build the program with another policy."),
        (lambda: library.prepare(w1[:, :8], bias, w2), "mlp.w1: extent 1 must be 24, got 8. Pass an array of shape [40, 24]."),
        (lambda: library.prepare(w1[0], bias, w2), "mlp.w1: rank must be 2, got 1. Pass an array of shape [40, 24]."),
        (lambda: prepared(x, w1), "mlp: the number of arrays must be 1, got 2. Pass x: f32[*, *]."),
        (lambda: prepared.check(x), "mlp: check needs the arrays of the constants, and a prepared library has none. Call check on the library before prepare."),
        (lambda: Library(libraries(MLP.replace("ROLE", ""))).prepare(w1, bias, w2), "mlp: prepare needs constant arguments, and the program has none. Declare them with "
         "trace(..., constant_argnums=0), or with 'constant' after the type in a .scl file."),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError)) as raised:
            call()
        assert str(raised.value) == message
    np.testing.assert_array_equal(prepared(x), library(x, w1, bias, w2))


def test_a_program_has_constants(tmp_path):
    program = Program(MLP.replace("ROLE", " constant"))
    library, x = build(program, cache=tmp_path), np.ones((3, 40), np.float32)
    np.testing.assert_array_equal(library.prepare(*weights(1))(x), library(x, *weights(1)))
    scores = Program(MLP.replace("ROLE", " constant").replace("y: f32[b, 10]", "s: f32[]").replace("\n}", "\n  s = reduce_sum(y) {axes: [0, 1]}\n}"))
    gradient = build(scores.grad(0), cache=tmp_path)
    np.testing.assert_array_equal(gradient.prepare(*weights(1))(x), gradient(x, *weights(1)))


@pytest.mark.parametrize("numerics", ["f32", "bf16", "f8_master"])
def test_prepared_arrays_lie_on_a_device(libraries, numerics):
    paths = [libraries(MLP.replace("ROLE", role), numerics, "--target", "opencl") for role in ("", " constant")]
    try:
        plain, library = map(Library, paths)
    except RuntimeError as error:
        pytest.skip(str(error))
    x = np.ones((3, 40), np.float32)
    prepared = [library.prepare(*weights(seed)) for seed in (1, 2)]
    for _ in range(2):
        for seed, of_weights in enumerate(prepared, 1):
            np.testing.assert_array_equal(of_weights(x), plain(x, *weights(seed)))
            np.testing.assert_array_equal(library(x, *weights(seed)), plain(x, *weights(seed)))


def test_a_run_converts_no_weight(tmp_path, libraries):
    path = libraries(MLP.replace("ROLE", " constant"), "bf16")
    program = json.loads(path.with_name("mlp.json").read_text())["programs"][0]
    assert [argument["role"] for argument in program["arguments"]] == ["input", "constant", "constant", "constant", "output"]
    read = {buffer for step in program["steps"] for buffer in step["buffers"]}
    stored = {buffer["name"]: buffer["dtype"] for buffer in program["buffers"] if buffer["storage"] == "prepared" and buffer["name"] in read}
    # Panels hold bf16 for a CPU that multiplies bf16 faster than f32, and f32 for others.
    assert sorted(stored.values()) in (["bf16", "bf16", "f32"], ["f32", "f32", "f32"])
    assert not read & {"w1", "w2", "bias"}
    assert program["prepare"]["steps"] and "constant, read once by scalide_bind" in path.with_name("mlp.h").read_text()


@pytest.mark.parametrize("text, message", [
    ("program p(w: f32[4] inout constant) -> (w = v) {\n  v = neg(w)\n}\n", "p.w cannot be both inout and constant. Remove one of the words"),
    ("program f(w: f32[4] constant) -> (v: f32[4]) {\n  v = neg(w)\n}\nprogram p(w: f32[4]) -> (v: f32[4]) {\n  v = call(w) {program: f}\n}\n",
     "f.w is constant in a sub-program. Declare the argument of the main program as constant instead"),
    ("program f(w: f32[4]) -> (s: f32[]) {\n  s = reduce_sum(w) {axes: [0]}\n}\n"
     "program p(w: f32[4] constant) -> (g: f32[4]) {\n  g = grad(w) {program: f, wrt: [w]}\n}\n",
     "cannot compute the gradient with respect to p.w: it is constant. Declare it without 'constant' (in the DSL as Input or State)"),
])
def test_wrong_constants_are_refused(tmp_path, text, message):
    (tmp_path / "p.scl").write_text(text)
    done = subprocess.run([TOOL, "build", tmp_path / "p.scl", "-o", tmp_path], capture_output=True, text=True)
    assert done.returncode != 0 and message in done.stderr, done.stderr


def test_the_text_reads_back(tmp_path):
    (tmp_path / "p.scl").write_text(MLP.replace("ROLE", " constant"))
    shown = subprocess.run([TOOL, "build", tmp_path / "p.scl", "-o", tmp_path, "--dump-after", "infer_types"], capture_output=True, text=True, check=True).stdout
    assert "w1: f32[40, 24] constant" in shown
