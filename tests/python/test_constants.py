"""Arguments of role constant: the same bits as with inputs, and what the plan and the tool say about them. No JAX."""
import json
import subprocess

import ml_dtypes
import numpy as np
import pytest
from conftest import TOOL

from scalide import Library, ScaledArray

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


def run(library, arrays):
    state = [library.init()] if library.init() else []
    results = library(*(given(argument, array) for argument, array in zip(library.arguments, arrays)), *state)
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
        for expected, got in zip(run(plain, arrays), run(constant, arrays), strict=True):
            np.testing.assert_array_equal(expected.view(np.uint8), got.view(np.uint8))


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


def test_a_run_converts_no_weight(tmp_path, libraries):
    path = libraries(MLP.replace("ROLE", " constant"), "bf16")
    program = json.loads(path.with_name("mlp.json").read_text())["programs"][0]
    assert [argument["role"] for argument in program["arguments"]] == ["input", "constant", "constant", "constant", "output"]
    stored = {buffer["name"]: buffer["dtype"] for buffer in program["buffers"] if buffer["storage"] == "prepared"}
    assert sorted(stored.values()) == ["bf16", "bf16", "f32"]
    read = {buffer for step in program["steps"] for buffer in step["buffers"]}
    assert not read & {"w1", "w2", "bias"} and set(stored) <= read
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
