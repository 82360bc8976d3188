"""The name of a leaf has no meaning and may be any text: `data` and `scale` are ordinary names."""
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scalide
import scalide.jax as sj

X = np.arange(-3, 5, dtype=np.float32)


def check(function, *args):
    """The library gives what JAX gives, in the same tree, from NumPy arrays and from JAX's."""
    library, expected = scalide.build(sj.trace(function, *args)), function(*args)
    for given in (args, jax.tree.map(jnp.asarray, args)):
        got = library(*given)
        assert jax.tree.structure(got) == jax.tree.structure(expected)
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected)):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)


def test_a_plain_argument_called_scale_may_be_negative():
    def function(params, x):
        scale = params["scale"]
        return x * jnp.abs(scale), jnp.maximum(scale, 0.0), jnp.maximum(scale, -1.0) * x, jnp.where(scale < 0, 0.0, 1.0)

    for scale in (-2.0, -0.5, 0.5):
        check(function, {"scale": np.float32(scale)}, X)


def test_data_and_scale_are_two_arguments():
    check(lambda params: params["w"]["data"] * params["w"]["scale"], {"w": {"data": X, "scale": np.float32(-3)}})


def test_data_and_scale_are_two_results():
    def quantise(x):
        scale = jnp.max(jnp.abs(x)) / 127
        return {"data": jnp.round(x / scale).astype(jnp.int8), "scale": scale}

    check(quantise, X)
    check(lambda x: {"data": x * 0.5, "scale": jnp.sum(x)}, X)


ODD = {"layer 0": {'kernel"x': X, "w/o\\": X * 2, "gr\xf6\xdfe": X * 3}, "../../etc": X, "$(touch pwned)": X, "a\n\x1b[2Jb": X, "": X, "inf": X, "*/ ??/": X,
       "int": X, "\u65e5\u672c": X, "a": {"b": X}, "a.b": X, "a_b": X, "x: f32[2] scaled": X, "scaled": X}  # fmt: skip


def test_keys_of_any_text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def function(params):
        leaves, structure = jax.tree.flatten(params)
        return jax.tree.unflatten(structure, [leaf * (place + 1) for place, leaf in enumerate(leaves)])

    program = sj.trace(function, ODD)
    assert len(set(program.arguments)) == len(program.arguments) == len(jax.tree.leaves(ODD))
    assert {"params.layer 0.kernel\"x", "params.layer 0.w/o\\", "params.../../etc", "params.a\n\x1b[2Jb", "params.", "params.a.b", "params.a.b_1",
            "params.\u65e5\u672c"} <= set(program.arguments)  # fmt: skip
    check(function, ODD)
    program.save("odd.scl")
    again = scalide.Program.load("odd.scl")
    assert again.arguments == program.arguments and again.results == program.results
    scalide.build(again, output="out")
    library = scalide.Library("out/libfunction.so")
    by_name = {name: np.full(8, place, np.float32) for place, name in enumerate(program.arguments)}
    made = dict(zip(library.results, library(**by_name)))
    for place, (name, result) in enumerate(zip(program.arguments, program.results)):
        np.testing.assert_array_equal(made[result], by_name[name] * (place + 1))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["odd.scl", "out"]


def test_programs_of_any_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("../odd model", "int", "\u65e5\u672c", "a.b", "--help", "7", '"', "program", "x" * 200):
        program = sj.trace(lambda x: jnp.sum(x * x), X, name=name)
        assert program.name == name
        np.testing.assert_allclose(scalide.build(program)(X), np.sum(X * X))
        library = scalide.build(scalide.Program(program.text).grad(), output="out")
        assert library.name == name + "_grad"
        np.testing.assert_allclose(library(X), 2 * X)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_parts_of_a_program_with_odd_names():
    program = scalide.Program('program "p {" {note: "}"} [b in 1..9] # (x: f32[])\n  ("a, b": f32[b] scaled, "c)": bf16[b], n: i32[], "d\\x0a": f32[] inout)'
                              ' -> ("-> {": f32[b] = "y 1", "d\\x0a" = "z") {\n  "y 1" = mul("a, b", "c)")\n  program = neg(n)\n}\n')  # fmt: skip
    assert program.name == "p {"
    assert program.arguments == ("a, b", "c)", "n", "d\n") and program.results == ("-> {", "d\n")
    assert [str(spec) for spec in program.inputs] == ['"a, b": f32[b] scaled', '"c)": bf16[b]', "n: i32[]", '"d\\x0a": f32[] inout']
    scaled = program.scalify()
    assert [spec.scaled for spec in scaled.inputs] == [True, True, False, True] and [spec.scaled for spec in scaled.outputs] == [True, True]


def test_gradients_of_arguments_called_like_symbols():
    program = scalide.Program("program f(b: f32[b], \"wrt me\": f32[b]) -> (y: f32[]) {\n  p = mul(b, \"wrt me\")\n  y = reduce_sum(p) {axes: [0]}\n}\n")
    for place in (0, 1):
        np.testing.assert_array_equal(scalide.build(program.grad(place))(X, X + 1), (X + 1, X)[place])


def test_names_that_no_program_can_have():
    for key in ("a\0b", "\ud800", "k" * 994):
        with pytest.raises(sj.TraceError, match="a name must have 1 to 1000 bytes of UTF-8 without zero bytes"):
            sj.trace(lambda params: params[key], {key: X})


def test_scopes_say_nothing_of_gradients():
    def loss(x):
        with jax.named_scope("transpose(jvp(x))"), jax.named_scope('a "b"'):
            return jnp.sum(jnp.tanh(x))

    forward = sj.trace(loss, X)
    assert 'scope "transpose(jvp(x))/a \\"b\\"" {' in forward.text and "cotangent" not in forward.text
    for function in (jax.grad(loss), jax.jit(jax.grad(jax.jit(loss)))):
        text = sj.trace(function, X).text
        assert re.search(r"mul\(.*cotangent", text) and not re.search(r"tanh\(.*cotangent", text), text


def test_a_closed_over_array_beside_an_argument_of_its_name():
    table = np.arange(8, dtype=np.float32)
    check(lambda constant: constant[0] * table, [X])
