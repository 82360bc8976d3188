"""Tests the reports of a library: explain, check, first_non_finite, summary. They name lines of this file."""
import os
import pathlib
import pickle
import re
import subprocess

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from test_library import error_of

import scalide
from scalide import ScaledArray
from scalide.run_tool import run_tool
from scalide.jax import trace

TEXT = """program counts(x: f32[n], m: f32[n] inout) -> (y: f8_e4m3fn[n], m = m_new) {
  y = convert_element_type(x) {dtype: f8_e4m3fn}
  m_new = sub(m, x)
}
"""
SOURCE = pathlib.Path(__file__).read_text().splitlines()


def loss(w, x, y):
    h = jnp.tanh(x @ w["a"])
    return jnp.mean((h @ w["b"] - y) ** 2)


def step(w, x, y):
    value, gradient = jax.value_and_grad(loss)(w, x, y)
    return jax.tree.map(lambda p, g: p - RATE * g, w, gradient), value


def product(x, w):
    return x @ w


RATE = 1e-4
DRAW = np.random.default_rng(0)
W = {"a": DRAW.normal(size=(16, 32)).astype(np.float32), "b": DRAW.normal(size=(32, 8)).astype(np.float32)}
X, Y = DRAW.normal(size=(32, 16)).astype(np.float32), DRAW.normal(size=(32, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def program():
    return trace(step, W, X, Y, donate_argnums=0)


@pytest.fixture(scope="module")
def scaled(program):
    return scalide.build(program, numerics="f16_scaled")


def given():
    return {name: ScaledArray((w * 64).astype(np.float16), np.float32(2.0**-6)) for name, w in W.items()}


def line_of(source):
    """The text of the line of this file that a source names."""
    return SOURCE[int(re.fullmatch(rf"{re.escape(pathlib.Path(__file__).name)}:(\d+)(:\d+)? \(.*\)", re.sub(r"^.*/", "", source))[1]) - 1]


def test_explain(scaled):
    decisions = scaled.explain()
    lines = repr(decisions).splitlines()
    assert len(lines) == len(decisions) + 1 and lines[0].split() == ["tensor", "use", "format", "scale", "policy", "direction", "source"]
    operands = [decision for decision in decisions if decision.use == "dot_general.lhs"]
    assert operands and all("@" in line_of(decision.source) and decision.format == "f16" for decision in operands)
    argument, product, state = scaled.explain("w.a")
    assert argument[:4] == ("w.a", "inout argument", "f16", "given by the caller") and (argument.direction, argument.source) == ("-", "-") and product.use == "dot_general.rhs"
    assert [product.direction, state.direction] == ["forward", "update"]
    assert (state.use, state.scale, state.safe) == ("result", "current (from a bound of its data, rescale_state)", True) and "RATE * g" in line_of(state.source)
    assert re.fullmatch(r"f16_scaled\.yaml:\d+", state.policy)
    assert {decision.tensor for decision in scaled.explain("w.**")} == {"w.a", "w.b"}
    assert error_of(scaled.explain, "w.c") == "ValueError: step: no row of the table has a tensor that matches 'w.c'. Did you mean 'w.a'?"
    assert error_of(scaled.explain_matmuls, scope="h/**") == "ValueError: step: no row of the table has a scope that matches 'h/**'. Run without the option to see all rows"
    alone = scalide.Library(scaled.path)
    assert error_of(alone.explain).startswith("ValueError: step: explain needs the program of the library")


def inspected_lines(path):
    """The source lines of Python that `scalide inspect` names for a saved program."""
    printed = subprocess.run([scalide.tool_path(), "inspect", path, "-n", "f8_master"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(rf"{re.escape(pathlib.Path(__file__).name)}:\d+", printed))


def test_a_saved_program_keeps_the_lines_of_python(program, tmp_path):
    program.save(tmp_path / "step.scl")
    assert f"#@ {pathlib.Path(__file__).name}:" in (tmp_path / "step.scl").read_text()
    read = scalide.Program.load(tmp_path / "step.scl")
    assert read.text == program.text
    library = scalide.build(read, numerics="f8_master")
    assert [row.source for row in library.explain()] == [re.sub(r"^.*/", "", row.source) for row in scalide.build(program, numerics="f8_master").explain()]
    table = run_tool(scalide.Program((tmp_path / "step.scl").read_text()), "explain", "--matmuls").splitlines()
    assert len(table) == 6 and all("@" in SOURCE[int(re.search(rf"  {re.escape(pathlib.Path(__file__).name)}:(\d+)$", line)[1]) - 1] for line in table[1:]), table
    lines = inspected_lines(tmp_path / "step.scl")
    assert any("@" in line_of(source + " ()") for source in lines) and len(lines) == 3, lines
    trace(loss, W, X, Y).save(tmp_path / "loss.scl")
    gradient = scalide.Program.load(tmp_path / "loss.scl").value_and_grad()
    rows = scalide.build(gradient, numerics="f8_master").explain_matmuls()
    assert {row.direction for row in rows} == {"forward", "backward"} and all("@" in line_of(row.source) for row in rows), rows
    gradient.save(tmp_path / "gradient.scl")
    assert scalide.Program.load(tmp_path / "gradient.scl").text == gradient.text
    odd = scalide.Program('program p(x: f32[n]) -> ("a  #@ b:1": f32[n] = y) {\n  y = neg(x)\n}\n', places=(None, "m.py:7 (f)", None))
    odd.save(tmp_path / "odd.scl")
    assert scalide.Program.load(tmp_path / "odd.scl").text == odd.text


def test_programs_and_libraries_can_be_pickled(program, scaled):
    copy = pickle.loads(pickle.dumps(program))
    assert (copy.text, copy.arguments, copy.in_tree, copy.policy) == (program.text, program.arguments, program.in_tree, program.policy)
    library = pickle.loads(pickle.dumps(scaled))
    results = [jax.tree.leaves(each(given(), X, Y, each.init())) for each in (scaled, library)]
    assert all(np.array_equal(a, b) for a, b in zip(*results)) and library.summary == scaled.summary and library.explain() == scaled.explain()
    closed = pickle.loads(pickle.dumps(library))
    closed.close()
    assert error_of(pickle.dumps, closed) == "ValueError: library 'step' is closed. Load it again."


def test_explain_matmuls(program, scaled, tmp_path):
    matmuls = scaled.explain_matmuls()
    assert re.split("  +", repr(matmuls).splitlines()[0]) == ["tensor", "operands", "formats", "scale", "policy", "because of", "direction", "source"]
    assert [matmul.direction for matmul in matmuls] == ["forward", "forward", "backward", "backward", "backward"]
    assert all("@" in line_of(matmul.source) and matmul.formats == "f16 @ f16" and matmul.because_of == "operand: any" for matmul in matmuls)
    policy = tmp_path / "ends.yaml"
    policy.write_text("policy: ends\nextends: f8_master\nrules:\n  - {op: dot_general, operand: any, layer: last}\n")
    library = scalide.build(program, numerics=str(policy))
    kept = [matmul for matmul in library.explain_matmuls() if matmul.policy == "ends.yaml:4"]
    assert {(matmul.formats, matmul.scale, matmul.because_of) for matmul in kept} == {("f32 @ f32", "none", "operand: any, layer: last")}
    assert len(kept) == 3, "the product and both gradients"
    assert f", 3 kept by ends.yaml:4; " in library.summary


def test_check_counts():
    library = scalide.build(scalide.Program(TEXT))
    x = np.float32([0, 1, 1e-9, 500, np.inf, 0.002, -1e-9])
    found = library.check(x, np.ones(7, np.float32))
    assert found.roundings == (("x", "f8_e4m3fn", 7, 2, 1, 1, "forward", "-", "counts.scl:2"),)
    assert found.states == (("m", "f32", 7, 2, 1, "update", "-", "counts.scl:3"),) and found.misfits == ()
    assert repr(found).splitlines()[0].split() == ["tensor", "format", "elements", "zeros", "saturated", "subnormals", "source"]
    assert library.check([1.0], np.float64([1.0])).states[0].unmoved == 0  # lists and 64 bits, as a call takes them
    for wrong in ((x.astype(np.float16), x), (x, x[1:]), (x,), (x, "x")):
        assert error_of(library.check, *wrong) == error_of(library, *wrong)
    plain = scalide.build(scalide.Program("program twice(x: f32[n]) -> (y: f32[n]) {\n  y = mul(x, 2)\n}\n"))
    assert repr(plain.check(x)) == "nothing is rounded to 8 or 16 bits"


def test_check_counts_what_a_scale_of_a_policy_limits(tmp_path):
    """Policies with delayed or fixed scales limit the data before the conversion. Scales of rows and blocks fit, up to a rounding error."""
    large, w = np.full((16, 32), 1000, np.float32), np.full((32, 16), 0.5, np.float32)
    large[0, :2] = np.inf, np.nan
    program = trace(product, large, w)

    def saturated(policy, x, w):
        library = scalide.build(program, numerics=policy)
        given = (x, w, library.init()) if library.init() else (x, w)
        return {row.tensor: row.saturated for row in library.check(*given).roundings}

    assert saturated("f8_delayed", large, w) == {"x": large.size - 2, "w": 0}, "an infinity and a NaN stay"
    (tmp_path / "seen.yaml").write_text("program: product\namax: {x: 1, w: 0.5}\n")
    (tmp_path / "fixed.yaml").write_text("policy: fixed\nextends: f8_static\ncalibration: seen.yaml\n")
    assert saturated(str(tmp_path / "fixed.yaml"), large, w) == {"x": large.size - 2, "w": 0}
    normal = DRAW.normal(size=large.shape).astype(np.float32), DRAW.normal(size=w.shape).astype(np.float32)
    for policy in ("f8_row", "f8_block", "mxfp8", "f8_master"):
        assert set(saturated(policy, *normal).values()) == {0}, policy


def test_reports_name_the_operator_that_computes():
    """An infinite matmul is not reported under the name of its finite argument."""
    def scores(x, wq, wk):
        with jax.named_scope("scores"):
            q, k = jnp.einsum("bsd,dhe->bhse", x, wq), jnp.einsum("bsd,dhe->bhse", x, wk)
            return jax.nn.softmax(jnp.einsum("bhse,bhte->bhst", q, k) / 2).sum()

    x, wq, wk = (DRAW.normal(size=shape).astype(np.float32) for shape in ((2, 8, 16), (16, 4, 8), (16, 4, 8)))
    wq[:, 2] *= 1e22
    wk[:, 2] *= 1e22
    program = trace(jax.grad(scores, argnums=(1, 2)), x, wq, wk)
    for policy in ("f16_master", "f8_master", "f32"):
        library = scalide.build(program, numerics=policy)
        found = library.first_non_finite(x, wq, wk)
        assert re.fullmatch(r"scores/.*dot_general", found.of) and found.arguments == () and "bhse,bhte" in line_of(found.source), found
        for row in library.check(x, wq, wk).roundings:
            assert row.tensor not in ("x", "wq", "wk") or row.elements == {"x": x.size}.get(row.tensor, wq.size)
            assert row.tensor not in ("wq", "wk") or row.format != "bf16", row


def test_check_counts_updates_of_zero(tmp_path):
    """Without scales, the gradients are rounded to 0, so no parameter moves. The exact new values do not differ, either."""
    (tmp_path / "unscaled.yaml").write_text("policy: unscaled\nrules:\n  - {op: dot_general, operand: cotangent, store: f8_e5m2}\n")

    def small(w, x, y):
        gradient = jax.grad(lambda w: loss(w, x, y) * 1e-6)(w)
        return jax.tree.map(lambda p, g: p - 1e6 * g, w, gradient)

    found = scalide.build(trace(small, W, X, Y, donate_argnums=0), numerics=str(tmp_path / "unscaled.yaml")).check(W, X, Y)
    assert {(row.tensor, row.unmoved, row.zero_updates) for row in found.states} == {(f"w.{name}", 0, w.size) for name, w in W.items()}
    (tmp_path / "scaled.yaml").write_text("policy: scaled\nrules:\n  - {op: dot_general, operand: cotangent, scale: {by: max}, store: f8_e5m2}\n")
    found = scalide.build(trace(small, W, X, Y, donate_argnums=0), numerics=str(tmp_path / "scaled.yaml")).check(W, X, Y)
    assert all(row.zero_updates < row.elements / 10 for row in found.states), found.states


def test_check_names_scales_that_do_not_fit(scaled):
    """Scales of a checkpoint, and delayed scales after an outlier or an infinity."""
    def misfits(**changes):
        weights = {name: ScaledArray(w.data, np.float32(w.scale * changes.get(name, 1))) for name, w in many.items()}
        return {row.tensor: row.problem for row in library.check(weights, X, library.init()).misfits}

    many = {name: ScaledArray(DRAW.normal(size=(16, 16)).astype(np.float16), np.float32(0.25)) for name in "abcd"}
    wide = jax.tree.map(lambda w: np.zeros(w.data.shape, np.float32), many, is_leaf=lambda leaf: isinstance(leaf, ScaledArray))
    library = scalide.build(trace(lambda w, x: (jax.tree.map(lambda p: 0.5 * p, w), sum(x @ w[name] for name in w)), wide, X, donate_argnums=0), numerics="f16_scaled")
    assert misfits() == {}
    assert misfits(b=0) == {"w.b": "is 0, but the data is not"}
    assert list(misfits(c=1024)) == ["w.c"] and re.fullmatch(r"amax is [\d.e+]+ times the median of 'w\.\*'", misfits(c=1024)["w.c"])
    divided = trace(lambda x, w: ((x @ w) / 1000) @ w.T / 8, X, W["a"])
    for policy in ("f8_master", "f16_scaled", "f8_row", "bf16"):
        made = scalide.build(divided, numerics=policy)
        assert made.check(X, W["a"], *([made.init()] if made.init() else [])).misfits == (), "a number of the program is no scale"
    delayed = scalide.build(trace(product, X, W["a"]), numerics="f8_delayed")

    def after(*inputs):
        state = delayed.init()
        for x in inputs[:-1]:
            _, state = delayed(x, W["a"], state)
        return {row.tensor: row.problem for row in delayed.check(inputs[-1], W["a"], state).misfits}

    assert after(X) == after(X, X) == {}, "the scale of the first run is 1"
    assert list(after(X, 1000 * X)) == ["x"] and after(X, 1000 * X)["x"] == "is 1e+03 times too small"
    assert after(X, 1000 * X, X) == {"x": "is 1e+03 times too large"}
    assert after(X, X * np.float32(np.inf), X) == {}, "the history has no infinity"
    assert "so its amax is not finite" in after(X, X * np.float32(np.inf))["x"]
    loaded = delayed.init(X, W["a"])
    loaded["x.amax_history"][7] = np.inf  # of another system
    assert "the history holds an infinity" in {row.tensor: row.problem for row in delayed.check(X, W["a"], loaded).misfits}["x.amax_history"]


def test_check_says_what_the_library_does(scaled):
    """Elements of the state that the compiled library leaves where they are; their updates are not zero."""
    for arguments in ((given(), X, Y), (jax.tree.map(jnp.asarray, given()), jnp.asarray(X), Y)):
        found = scaled.check(*arguments, scaled.init())
        (new, _), _ = scaled(*arguments, scaled.init())
        for state in found.states:
            old, made = (np.asarray(w[state.tensor[-1]].data, np.float64) * float(w[state.tensor[-1]].scale) for w in (given(), new))
            assert (state.format, state.elements, state.unmoved) == ("f16", old.size, np.count_nonzero(old == made))
            assert 0 < state.unmoved and "RATE * g" in line_of(state.source)
    tensors = {rounding.tensor: rounding for rounding in found.roundings}
    assert tensors["x"].elements == X.size and "x @ w" in line_of(tensors["x"].source)


def test_first_non_finite_names_arguments_and_lines(program, scaled):
    bad = X.copy()
    bad[0, 0] = np.inf
    found = scaled.first_non_finite(given(), bad, Y, scaled.init())
    assert (found.of, found.arguments) == ("x", ("x",))
    assert str(found) == f"first non-finite: {found.tensor} of x, step {found.step} ({found.kernel}); it reads x, which is not finite"
    assert scaled.first_non_finite(jax.tree.map(jnp.asarray, given()), jnp.asarray(bad), Y, scaled.init()) == found
    library = scalide.build(program, numerics="f8_master")
    found = library.first_non_finite({"a": W["a"], "b": W["b"] * np.float32(1e25)}, X, Y)
    assert found.arguments == () and "jnp.mean" in line_of(found.source) and f"({found.source})" in str(found)
    assert library.first_non_finite(W, X, Y) is None


def test_summary_says_how_state_is_stored(program, scaled):
    assert re.search(r"; state: 2 arrays in f16, scaled by a bound, rounded by \w+ and 1 of the policy; ", scaled.summary), scaled.summary
    assert "; state: 2 arrays in f32; " in scalide.build(program, numerics="f8_master").summary


def test_scaled_arguments_of_any_dtype():
    text = "program half(w: f8_e4m3fn[n] scaled, k: bf16[n]) -> (y: f16[n]) {\n  a = mul(w, 0.5)\n  b = convert_element_type(a) {dtype: f16}\n  c = stop_scaling(b)\n  d = convert_element_type(k) {dtype: f16}\n  y = add(c, d)\n}\n"
    library = scalide.build(scalide.Program(text))
    w = ScaledArray(np.array([1, 2], ml_dtypes.float8_e4m3fn), np.float32(2))
    found = library.check(w, np.array([1, 2], ml_dtypes.bfloat16))
    assert all(rounding.zeros == rounding.saturated == 0 for rounding in found.roundings) and found.states == ()


def test_a_call_with_jax_arrays_can_fail_at_an_infinity(program, scaled):
    """The results are JAX arrays, in the exception and without one. Inside of jit, there are no elements to check."""
    library = scalide.build(program, numerics="f8_master")
    weights, x = jax.tree.map(jnp.asarray, W), jnp.asarray(X)
    new, value = library(weights, x, Y, check_finite=True)
    assert isinstance(value, jax.Array) and np.array_equal(value, library(weights, x, Y)[1]) and isinstance(new["a"], jax.Array)
    wide = {"a": weights["a"], "b": weights["b"] * 1e25}
    for run in (library, library.donate):
        with pytest.raises(scalide.NonFiniteError) as raised:
            run(wide, x, Y, check_finite=True)
        assert "jnp.mean" in line_of(raised.value.found.source) and isinstance(raised.value.results[1], jax.Array) and not np.isfinite(raised.value.results[1])
    with pytest.raises(scalide.NonFiniteError) as raised:  # a policy with state
        scaled(given(), np.full_like(X, np.inf), Y, scaled.init(), check_finite=True)
    (_, value), state = raised.value.results
    assert not np.isfinite(value) and list(state) == ["rounding_step"]
    for what, call in (("check_finite", lambda w: library(w, X, Y, check_finite=True)), ("run_traced", lambda w: library.run_traced(w, X, Y))):
        assert error_of(jax.jit(call), W) == (
            f"TypeError: step: {what} cannot be used inside of jax.jit, because the arrays have no elements there. Call the library outside.")
    (_, value), arrays = library.run_traced(weights, x, Y)
    assert np.array_equal(value, library(W, X, Y)[1])
    assert {array.direction for array in arrays} >= {"forward", "backward", "update"}
    assert any(array.direction == "backward" and "@" in line_of(array.source) for array in arrays)


def test_the_interpreter_names_the_operator_and_the_element():
    """A log of 0 inside of a fused kernel, and scores of one head that overflow in f32, but not in f64."""
    def entropy(x):
        with jax.named_scope("loss"):
            return jnp.sum(jax.nn.softmax(x) * jnp.log(jax.nn.softmax(x)))

    x = np.zeros((4, 3), np.float32)
    x[3, 1] = -200
    library = scalide.build(trace(jax.value_and_grad(entropy), x), numerics="f16_master")
    for mode in ("stored", "real"):
        found = library.first_non_finite(x, interpret=mode)
        if mode == "real":  # exp(-200) is a number of f64
            assert found is None
            continue
        assert found[1:6] == ("", "log", "", "forward", "loss") and found.index == (3, 1) and found.value == -np.inf and "jnp.log" in line_of(found.source)
        assert str(found) == f"first non-finite: {found.tensor}, operator log in loss ({found.source}), element [3, 1] is -inf"
    assert library.first_non_finite(np.zeros_like(x), interpret="stored") is None
    assert error_of(library.first_non_finite, x, interpret="f64") == "ValueError: entropy: interpret must be 'stored', 'real' or None, got 'f64'."

    def scores(x, wq, wk):
        q, k = jnp.einsum("bsd,dhe->bhse", x, wq), jnp.einsum("bsd,dhe->bhse", x, wk)
        return jax.nn.softmax(jnp.einsum("bhse,bhte->bhst", q, k)).sum()

    x, wq, wk = (DRAW.normal(size=shape).astype(np.float32) for shape in ((2, 8, 16), (16, 4, 8), (16, 4, 8)))
    wq[:, 2] *= 1e19
    wk[:, 2] *= 1e19
    for policy in ("f32", "f8_master"):
        found = scalide.build(trace(scores, x, wq, wk), numerics=policy).first_non_finite(x, wq, wk, interpret="stored")
        assert dict(zip(found.axes, found.index)) == {"b": 0, "h": 2, "s": 0, "t": 0} and "bhse,bhte" in line_of(found.source), found


def test_report(tmp_path, monkeypatch):
    """Program.report and Library.report write a page with the lines of this file, and return what is unusual."""
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "run"
    run.mkdir()
    (run / "metrics.jsonl").write_text('{"step": 0, "loss": 1.0}\n{"step": 1, "loss": "nan"}\n')
    x, w = np.ones((4, 8), np.float32), np.ones((8, 4), np.float32)
    program = trace(product, x, w)
    text = program.report(run, numerics=["f8_master", "f32"])
    assert text.startswith("bad: loss is NaN from step 1 on."), text
    page = (tmp_path / "product.html").read_text()
    assert "test_jax_reports.py:" in page and "f8_master" in page and str(tmp_path) not in page
    text = scalide.build(program, numerics="f8_master").report(output=tmp_path / "own.html")
    assert text.startswith("note: No run was given") and (tmp_path / "own.html").exists()
    with pytest.raises(scalide.BuildError, match="cannot read the run file nothing.jsonl"):
        program.report("nothing.jsonl")
    library = scalide.build(program)
    library.program = None
    with pytest.raises(ValueError, match="report needs the program"):
        library.report()


def test_view(tmp_path, monkeypatch):
    """Program.view writes a page of the passes, whose lines lead to the lines of this file."""
    monkeypatch.chdir(tmp_path)
    x, w = np.ones((4, 8), np.float32), np.ones((8, 4), np.float32)
    text = trace(product, x, w).view(numerics="f8_master", sources=__file__)
    assert re.fullmatch(r"product.view.html: \d+ passes, \d+ of them change the program", text), text
    page = (tmp_path / "product.view.html").read_text()
    assert "dynamic_rescale" in page and "def test_view" in page and str(tmp_path) not in page and os.path.dirname(__file__) not in page
    with pytest.raises(scalide.BuildError, match="unknown policy 'f9'"):
        trace(product, x, w).view(numerics="f9")
