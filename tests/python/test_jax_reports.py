"""Tests the reports of a library: explain, check, first_non_finite, summary. They name lines of this file."""
import pathlib
import re

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from test_library import error_of

import scalide
from scalide import ScaledArray
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
    assert len(lines) == len(decisions) + 1 and lines[0].split() == ["tensor", "use", "format", "scale", "policy", "source", "safe"]
    operands = [decision for decision in decisions if decision.use == "dot_general.lhs"]
    assert operands and all("@" in line_of(decision.source) and decision.format == "f16" for decision in operands)
    argument, product, state = scaled.explain("w.a")
    assert argument[:4] == ("w.a", "inout argument", "f16", "argument") and argument.source == "-" and product.use == "dot_general.rhs"
    assert (state.use, state.scale, state.safe) == ("result", "bound (rescale_state)", True) and "RATE * g" in line_of(state.source)
    assert re.fullmatch(r"f16_scaled\.yaml:\d+", state.policy)
    assert {decision.tensor for decision in scaled.explain("w.*")} == {"w.a", "w.b"}
    assert error_of(scaled.explain, "w.c") == "ValueError: step: unknown tensor 'w.c'. Did you mean 'w.b'?"
    alone = scalide.Library(scaled.path)
    assert error_of(alone.explain).startswith("ValueError: step: explain needs the program of the library")


def test_explain_matmuls(program, scaled, tmp_path):
    matmuls = scaled.explain_matmuls()
    assert repr(matmuls).split()[:7] == ["tensor", "operands", "formats", "scale", "policy", "because_of", "source"]
    assert all("@" in line_of(matmul.source) and matmul.formats == "f16 x f16" and matmul.because_of == "operand: any" for matmul in matmuls)
    policy = tmp_path / "ends.yaml"
    policy.write_text("policy: ends\nextends: f8_master\nrules:\n  - {op: dot_general, operand: any, layer: last}\n")
    library = scalide.build(program, numerics=str(policy))
    kept = [matmul for matmul in library.explain_matmuls() if matmul.policy == "ends.yaml:4"]
    assert {(matmul.formats, matmul.scale, matmul.because_of) for matmul in kept} == {("f32 x f32", "none", "operand: any, layer: last")}
    assert len(kept) == 3, "the product and both gradients"
    assert f", 3 kept by ends.yaml:4; " in library.summary


def test_check_counts():
    library = scalide.build(scalide.Program(TEXT))
    x = np.float32([0, 1, 1e-9, 500, np.inf, 0.002, -1e-9])
    found = library.check(x, np.ones(7, np.float32))
    assert found.roundings == (("x", "f8_e4m3fn", 7, 2, 1, 1, "counts.scl:2"),)
    assert found.states == (("m", "f32", 7, 2, "counts.scl:3"),)
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

    assert saturated("f8_delayed", large, w) == {"x": large.size - 1, "w": 0}, "an infinity becomes a finite number, and a NaN stays"
    (tmp_path / "seen.yaml").write_text("program: product\namax: {x: 1, w: 0.5}\n")
    (tmp_path / "fixed.yaml").write_text("policy: fixed\nextends: f8_static\ncalibration: seen.yaml\n")
    assert saturated(str(tmp_path / "fixed.yaml"), large, w) == {"x": large.size - 1, "w": 0}
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
