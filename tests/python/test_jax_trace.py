"""Tests trace (names, nesting, constants, donation, symbols, scales, errors) and the methods of Program."""
import collections
import functools
import importlib
import os
import pathlib
import re
import subprocess
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax._src.interpreters import mlir
from jax.extend.core import Primitive
from oracle import differs, errors

import scalide
import scalide.jax
from scalide.jax import compat, trace
from scalide.jax.primitives import RULES

X = jnp.arange(6, dtype=jnp.float32).reshape(2, 3)
Pair = collections.namedtuple("Pair", "first second")


def same(got, want, allowed=None):
    """A few operators on numbers near 1 are within 16 ulp of each other, element by element; `allowed` are the errors of more."""
    assert jax.tree.structure(got) == jax.tree.structure(want)
    leaves = jax.tree.leaves(want)
    problems = list(map(differs, jax.tree.leaves(got), leaves, allowed or [0.0] * len(leaves), [16] * len(leaves)))
    assert not any(problems), problems


def test_gradients_of_jitted_functions():
    loss = jax.jit(lambda x: (x * x).sum())
    same(scalide.build(trace(jax.grad(loss), X))(X), 2 * X)


def test_names_and_nesting():
    def f(params, pair, *rest, rate=1.0):
        return {"loss": (params["dense"]["kernel-1"] * rate).sum(), "all": [pair.second, rest[0], None, (pair.first + 1,)]}

    args = ({"dense": {"kernel-1": X, "bias": X[0]}}, Pair(X, X * 2), X[0])
    program = trace(f, *args, rate=2.0)
    assert program.arguments == ("params.dense.bias", "params.dense.kernel-1", "pair.first", "pair.second", "rest.0", "rate")
    assert program.results == ("out.all.0", "out.all.1", "out.all.3.0", "out.loss")
    same(scalide.build(program)(*args, rate=3.0), f(*args, rate=3.0))
    with pytest.raises(TypeError, match=re.escape("f: args[0]['dense']: must have the keys ['bias', 'kernel-1'], got ['kernel-1']")):
        program.flatten(({"dense": {"kernel-1": X}}, Pair(X, X), X[0]), {"rate": 1.0})


def test_static_arguments():
    def f(x, power, y):
        return x**power + y

    program = trace(f, X, 3, X, static_argnums=1)
    assert program.arguments == ("x", "y")
    same(scalide.build(program)(X, X), f(X, 3, X))
    assert trace(jax.jit(f, static_argnames="power"), X, 3, X).arguments == ("x", "y")


def test_constants():
    table, mask = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32), np.ones((2, 3), np.float32) * 4

    def f(x):
        return x * table + mask + 0.5

    program = trace(f, X)
    assert list(program.constants) == ["constant.0"] and program.arguments == ("x", "constant.0")
    same(scalide.build(program)(X), f(X))


def test_results_that_are_arguments_or_numbers():
    program = trace(lambda x: (x, x, 2.0, jnp.ones((3,), jnp.int32)), X)
    same(scalide.build(program)(X), (X, X, jnp.float32(2), jnp.ones((3,), jnp.int32)))


def test_donated_arguments_are_overwritten():
    def step(state, rate):
        return {"b": state["b"] * rate, "w": state["w"] - rate}, state["w"].sum()

    state = {"b": jnp.ones(3), "w": X}
    program = trace(step, state, jnp.float32(0.5), donate_argnums=0)
    assert [spec.inout for spec in program.inputs] == [True, True, False]
    assert program.results == ("state.b", "state.w", "out.1")
    same(scalide.build(program)(state, jnp.float32(0.5)), step(state, jnp.float32(0.5)))


def test_symbolic_extents():
    def f(x, w):
        h = jnp.tanh(x @ w)
        return h.mean(0), h.reshape(-1), jnp.concatenate([h, h])[1:]

    w = jnp.asarray(np.random.default_rng(0).normal(size=(3, 4)), jnp.float32)
    program = trace(f, X, w, symbolic=("b, ...", None))
    assert program.inputs[0].shape == ("b", 3) and "4*b" in program.text
    library = scalide.build(program)
    for rows in (2, 5, 17):
        x = jnp.asarray(np.random.default_rng(rows).normal(size=(rows, 3)), jnp.float32)
        same(library(x, w), f(x, w))
    (b,) = export.symbolic_shape("b", constraints=["b >= 4", "b <= 64", "mod(b, 4) == 0"])
    assert "[b in 4..64 step 4]" in trace(f, jax.ShapeDtypeStruct((b, 3), jnp.float32), w).text


def test_collectives_over_an_axis_of_vmap():
    """JAX gives the axis its number and keeps the collective: a reduction, of each array of a tree."""

    def loss(w, x):
        h = jax.nn.sigmoid(x * w / 8)
        return jax.lax.pmean(jnp.sum(h / (1 + jax.lax.psum(jnp.abs(h), "rows"))), "rows")

    def each(w, x):
        total, (least, count) = jax.lax.psum({"x": x, "i": jax.lax.axis_index("rows")}, "rows"), jax.lax.pmin((x, x > 0), "rows")
        gathered = jax.lax.all_gather(x, "rows"), jax.lax.ppermute(x, "rows", [(0, 1), (1, 0)])
        return total, least, count, jax.lax.pmax(x.astype(jnp.float16), "rows"), gathered, jax.grad(loss)(w, x)

    for fn in (jax.vmap(each, (None, 0), axis_name="rows"), jax.vmap(jax.jit(each), (None, 0), (None, 0, 0, 0, 0, 0), axis_name="rows")):
        same(scalide.build(trace(fn, X[0], X + 1))(X[0], X + 1), fn(X[0], X + 1))


def test_scopes_and_roles():
    def loss(w, x):
        with jax.named_scope("mlp"), jax.named_scope("dense"):
            return jnp.tanh(x @ w).sum()

    text = trace(jax.grad(loss), X.T, X).text
    assert 'scope "mlp/dense" {' in text
    (forward,) = [line for line in text.splitlines() if "tanh(" in line]
    assert not forward.endswith("cotangent") and any("dot_general" in line and line.endswith("cotangent") for line in text.splitlines())


def test_loops_of_few_static_steps():
    def f(x):
        x = jax.lax.fori_loop(0, 3, lambda i, c: c * 2 + i, x)
        x, sums = jax.lax.scan(lambda c, row: (c + row, c.sum()), x[0], x, reverse=True)
        _, x = jax.lax.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, s[1] + 1), (0, x))
        return x, sums, jax.lax.cond(True, lambda a: a, lambda a: -a, x), jax.lax.switch(2, [jnp.sin, jnp.cos, jnp.tanh], x)

    same(scalide.build(trace(f, X))(X), f(X))


def test_branches_that_arrays_choose():
    """All are computed, as under jax.vmap."""

    def f(x, place):
        chosen = jax.lax.cond(x[0, 0] > 0, lambda a: (jnp.sin(a), a.sum() > 0), lambda a: (a * 2, False), x)
        return chosen, jax.lax.switch(place, [jnp.sin, jnp.cos, jnp.tanh], x)

    def both(x, place):
        return f(x, place), jax.grad(lambda x: jnp.sum(f(x, place)[0][0] * f(x, place)[1]))(x)

    library = scalide.build(trace(both, X, np.int32(0)))
    for x in (X, -X):
        for place in (-1, 0, 1, 2, 7):
            same(library(x, np.int32(place)), both(x, np.int32(place)))


def linear_algebra():
    square = lambda x: x[:, :3] @ x[:, :3].T + 4 * jnp.eye(len(x))  # noqa: E731
    return {"inv": lambda x: jnp.linalg.inv(square(x)), "solve": lambda x: jnp.linalg.solve(square(x), x), 
            "cholesky": lambda x: jnp.linalg.cholesky(square(x)), "qr": lambda x: jnp.linalg.qr(x), "svd": lambda x: jnp.linalg.svd(x),
            "eigh": lambda x: jnp.linalg.eigh(square(x)), "pinv": lambda x: jnp.linalg.pinv(x), "matrix_rank": lambda x: jnp.linalg.matrix_rank(x),
            "triangular_solve": lambda x: jax.scipy.linalg.solve_triangular(square(x), x), "lstsq": lambda x: jnp.linalg.lstsq(x, x[:, 0]),
            "callback": lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)}  # fmt: skip


@pytest.mark.parametrize("name", linear_algebra())
def test_primitives_without_a_rule_say_so(name, partitionable):
    """The user's line, the primitive with its operands and parameters, and what to do."""
    with pytest.raises(scalide.jax.TraceError) as error:
        trace(linear_algebra()[name], X)
    place, primitive, rest = re.fullmatch(r"(.*?:\d+):?\d* \(.*?\): JAX primitive '(\w+)' is not supported: (.*)", str(error.value), re.S).groups()
    assert "test_jax_trace.py:" in place
    assert re.match(rf"{primitive}\((\w+(<fry>)?\[[\d,]*\](, )?)*\)( {{.*}})?\. Rewrite the function without it, or add a rule: "
                    rf"@scalide.jax.add_rule\('{primitive}'\)", rest), rest  # fmt: skip


@pytest.mark.parametrize("fn, words", [
    (lambda x: jnp.linalg.cholesky(x @ x.T), ["JAX primitive 'cholesky' is not supported: cholesky(", "add_rule('cholesky')"]),
    (lambda x: jax.lax.fori_loop(0, 1000, lambda i, c: jnp.linalg.cholesky(c @ c.T) @ c, x), ["JAX primitive 'cholesky' is not supported"]),
    (lambda x: jax.lax.while_loop(lambda c: c[0, 0] < 5, lambda c: c.astype(jnp.int4).astype(jnp.float32) + x, x), ["dtypes must be among float32, ", "got int4"]),
    (lambda x: x.astype(jnp.int4), ["dtypes must be among float32, ", "got int4. Convert the array first"]),
    (lambda x: x.view(jnp.uint8), ["bitcast_convert_type: both dtypes must have the same number of bits, got f32 and u8"]),
])  # fmt: skip
def test_errors_name_the_line(fn, words):
    with pytest.raises(scalide.jax.TraceError) as error:
        trace(fn, X)
    message = str(error.value)
    assert all(word in message for word in words) and "test_jax_trace.py" in message, message


SQUARE = np.eye(3, dtype=np.float32)


def test_errors_name_the_line_of_the_user_and_not_of_a_package(tmp_path):
    """A line of an installed package counts only without a line of the user. Without any, the line that calls trace counts."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "layers.py").write_text("import jax\ndef layer(x):\n    return jax.lax.fori_loop(0, 1000, lambda i, c: c.astype(jax.numpy.int4).astype(c.dtype), x)\n")
    package = {}
    exec(compile((folder / "layers.py").read_text(), folder / "layers.py", "exec"), package)

    def model(x):
        return package["layer"](x)  # this line

    for fn, line in ((model, 'package["layer"](x)  # this line'), (package["layer"], "trace(fn, SQUARE)  # the caller"), (jnp.linalg.cholesky, "trace(fn, SQUARE)  # the caller")):
        with pytest.raises(scalide.jax.TraceError) as error:
            trace(fn, SQUARE)  # the caller
        file, number = re.match(r"(.*?):(\d+)", str(error.value)).groups()
        assert file == __file__ and line in pathlib.Path(__file__).read_text().splitlines()[int(number) - 1], str(error.value)


def test_keys_of_other_generators_are_named():
    with pytest.raises(scalide.jax.TraceError, match="argument key: keys must use threefry2x32, got rbg. Use jax.random.key"):
        trace(lambda key, x: x, jax.random.key(0, impl="rbg"), X)


def test_arguments_that_are_no_arrays_are_named():
    class Net:
        pass

    class Module:
        __module__ = "equinox._module"

    jax.tree_util.register_pytree_node(Module, lambda module: ((jnp.tanh, 1.0), None), lambda _, children: Module())
    for argument, words in ((Net(), "argument m: must be an array, a number or a pytree of them, got Net. Register its class"),
                            ({"f": jnp.tanh}, "argument m.f: must be an array, a number or a pytree of them, got PjitFunction. "),
                            (Module(), "Split the Equinox module: arrays, rest = equinox.partition(module, equinox.is_array)")):  # fmt: skip
        with pytest.raises(TypeError, match=re.escape(words)):
            trace(lambda m, x: x, argument, X)


def test_callable_objects_without_a_hash():
    class Layer:
        __hash__ = None

        def __init__(self, w):
            self.w = w

        def __call__(self, x):
            return x @ self.w

    program = trace(Layer(jnp.asarray(X.T)), X)
    assert (program.name, program.arguments) == ("Layer", ("x", "constant.0"))
    assert trace(functools.partial(lambda a, x: a * x, 2.0), X).arguments == ("x",)


def test_updates_that_would_be_lost_are_named():
    def changes(params, x):
        params["w"] = params["w"] * 2
        return params["w"] @ x + 1

    def returns(params, x):
        params["w"] = params["w"] * 2
        return params, x

    def passes(params, x):
        params["w"] = jax.jit(lambda w: w)(params["w"])
        return params["w"] @ x + 1

    with pytest.warns(UserWarning, match="^changes changes its argument params, but a library does not change its arguments, so this update is lost. Return"):
        assert trace(changes, {"w": X.T}, X).results == ("out",)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace(returns, {"w": X.T}, X)
        trace(passes, {"w": X.T}, X)


def test_errors_of_dtypes():
    jax.config.update("jax_enable_x64", True)
    try:
        with pytest.raises(scalide.jax.TraceError, match="argument x: dtypes must have at most 32 bits, got float64"):
            trace(lambda x: x, np.ones(3))
        with pytest.raises(scalide.jax.TraceError, match="integers must be from -2147483648 to 2147483647, got 4294967296. Use integers of 32 bits"):
            trace(lambda x: jnp.argmax(x) + 2**32, X)
        for fn in (lambda x: jnp.argmax(x, -1), lambda x: x * jnp.arange(x.shape[1], dtype=jnp.float32), lambda x: jnp.argsort(x, -1), lambda x: x[:, jnp.argmax(x[0])],
                   lambda x: jnp.take_along_axis(x, jnp.argmin(x, -1)[:, None], -1), lambda x: jnp.sum(x > 0) + jnp.arange(3),
                   lambda x: jax.lax.fori_loop(0, 3, lambda i, c: c * i.astype(jnp.float32), x)):  # fmt: skip
            assert np.array_equal(scalide.build(trace(fn, X))(X), fn(jnp.asarray(X)))
    finally:
        jax.config.update("jax_enable_x64", False)


def test_a_library_is_no_part_of_a_program():
    x = np.ones(3, np.float32)
    library = scalide.build(trace(jnp.sin, x))
    with pytest.raises(NotImplementedError, match="native code, such as a library of Scalide, cannot be part of a program, got .*. Trace the function"):
        trace(lambda x: library(x) + 1, x)


def test_integers_have_no_gradient():
    def gradients(x, n):
        return jax.grad(lambda x, n: jnp.sum(x * n), (0, 1), allow_int=True)(x, n)

    with pytest.raises(NotImplementedError, match="must be of a float argument, got float0, .* Differentiate with respect to float arguments only"):
        trace(gradients, np.ones(3, np.float32), np.ones(3, np.int32))


def test_errors_of_the_tool_name_the_line():
    wrong = Primitive("test_wrong_rule")
    wrong.def_abstract_eval(lambda x: x)

    @scalide.jax.add_rule("test_wrong_rule")
    def rule(walk, equation, operands):
        return walk.emit("reduce_precision", operands, {"exponent_bits": 8, "mantissa_bits": 30}, walk.types(equation))

    with pytest.raises(scalide.BuildError, match=r"mantissa_bits 0 to 23[\s\S]*from .*test_jax_trace.py"):
        scalide.build(trace(lambda x: wrong.bind(x), X))


def test_every_operator_of_lax_has_a_rule():
    """JAX primitives with an operator of the same name. Complex numbers are not supported."""
    table = subprocess.run([os.environ["SCALIDE_TOOL"], "rules"], capture_output=True, text=True, check=True).stdout
    operators = set(re.findall(r"^\| `?(?:\[`?)?(\w+)", table, re.M))
    modules = [importlib.import_module(f"jax._src.lax.{name}") for name in "lax slicing windowed_reductions convolution special ann".split()]
    primitives = {value.name for module in modules for value in vars(module).values() if isinstance(value, Primitive)}
    both = {name for name in primitives if name.replace("-", "_") in operators}
    assert len(both) > 90
    by_others = {"ragged_dot"}  # a primitive up to JAX 0.4; JAX computes it by others
    assert both - set(RULES) - by_others == {"complex", "real", "imag", "conj"}  # see complex_values.py


def test_own_rule():
    softsign = Primitive("test_softsign")
    softsign.def_abstract_eval(lambda x: x)

    @scalide.jax.add_rule("test_softsign")
    def rule(walk, equation, operands):
        return walk.emit("soft_sign", operands, {}, walk.types(equation))

    same(scalide.build(trace(lambda x: softsign.bind(x) * 2, X))(X), X / (1 + abs(X)) * 2)


def test_primitives_that_jax_computes_by_others():
    """A primitive without a rule becomes what JAX lowers it to. A function may call it in a gradient, under vmap and with symbolic shapes."""
    halved = Primitive("test_halved")
    halved.def_abstract_eval(lambda x, *, power: x)
    mlir.register_lowering(halved, mlir.lower_fun(lambda x, power: x * 0.5**power + jnp.sum(jnp.sin(x)), multiple_results=False))

    def fn(x):
        return halved.bind(x, power=2) * 3

    jitted = jax.jit(fn)
    same(scalide.build(trace(fn, X))(X), jitted(X))
    same(scalide.build(trace(fn, X, symbolic="b, 3"))(X), jitted(X))

    @jax.custom_batching.custom_vmap
    def doubled(x):
        return x * 2

    doubled.def_vmap(lambda size, batched, x: (x * 2, True))
    same(scalide.build(trace(lambda x: doubled(x) + 1, X))(X), X * 2 + 1)
    square = np.random.default_rng(0).normal(size=(5, 5)).astype(np.float32)
    np.testing.assert_allclose(scalide.build(trace(jnp.linalg.det, square))(square), np.linalg.det(square.astype(np.float64)), rtol=1e-6)


def test_counters_of_random_bits():
    try:
        counters = importlib.import_module("jax._src.random.prng").iota_2x32_shape
    except ImportError:  # JAX 0.4.33
        counters = importlib.import_module("jax._src.prng").iota_2x32_shape
    got = scalide.build(trace(lambda x: (*counters((2, 3)), x), X))(X)
    same(got, (*jax.jit(lambda: counters((2, 3)))(), X))


def test_one_minus_square_and_log2():
    """JAX 0.12 has both as primitives. The logarithm of a power of two is exact; JAX multiplies by 1 / log(2)."""
    for name in ("one_minus_square", "log2"):
        primitive = Primitive(f"test_{name}")
        primitive.def_abstract_eval(lambda x: x)
        scalide.jax.add_operator(f"test_{name}", name)
        of = scalide.build(trace(primitive.bind, jax.ShapeDtypeStruct((300,), np.float32)))
        if name == "log2":
            exponents = np.arange(-149, 151).clip(-149, 127)
            np.testing.assert_array_equal(of(np.ldexp(np.float32(1), exponents)), exponents.astype(np.float32))
        x = np.linspace(0.9, 1.1, 300, dtype=np.float32)
        wide = x.astype(np.float64)
        np.testing.assert_allclose(of(x), 1 - wide**2 if name == "one_minus_square" else np.log2(wide), rtol=4e-7, atol=0)


@pytest.mark.parametrize("version, warns", [("0.4.33", False), ("0.12.0.1", False), ("0.12.9", False), ("0.13.0", True), ("0.13.0.dev20270101", True), ("1.0.0rc1", True)])
def test_a_newer_jax_is_named(version, warns):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compat.warn_if_newer(version)
    assert [str(each.message) for each in caught] == [f"JAX {version} is newer than 0.12.0.1, the newest version that Scalide was tested with. If a function "
                                                      "does not trace, run: pip install 'jax==0.12.0.1'"] * warns  # fmt: skip


def test_the_tested_versions_are_those_that_the_tests_install():
    groups = (pathlib.Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert set(re.findall(r'"jax==([\d.]+)[";]', groups)) >= set(compat.TESTED)
    assert jax.__version__ in (*compat.TESTED, "0.4.36")  # the oldest for Python 3.13


def test_save_and_load(tmp_path):
    table = np.arange(6, dtype=np.float32).reshape(2, 3)

    def f(pair):
        return {"sum": pair.first + table, "list": [pair.second]}

    trace(f, Pair(X, X)).numerics("bf16").save(tmp_path / "f.scl")
    loaded = scalide.Program.load(tmp_path / "f.scl")
    assert loaded.policy == "bf16" and loaded.arguments == ("pair.first", "pair.second", "constant.0")
    same(scalide.build(loaded)(Pair(X, X)), f(Pair(X, X)))
    with pytest.raises(ValueError, match="must have one result"):
        loaded.grad()
    (tmp_path / "plain.scl").write_text("program twice(x: f32[n]) -> (y: f32[n]) {\n  y = add(x, x)\n}\n")
    assert np.array_equal(scalide.build(tmp_path / "plain.scl")(X[0]), X[0] * 2)


def test_gradient_of_a_program():
    def loss(w, x):
        return jnp.sum(jnp.tanh(x @ w) ** 2)

    w, x = X.T / 10, X / 10
    program = trace(loss, w, x)
    same(scalide.build(program.grad(1))(w, x), jax.grad(loss, 1)(w, x))
    same(scalide.build(program.value_and_grad((0, 1)))(w, x), jax.value_and_grad(loss, (0, 1))(w, x))


def test_gradient_of_a_loaded_program(tmp_path):
    """By the tool, for any extent; scaled and in other numbers too."""

    def loss(params, x, y):
        return jnp.mean((jnp.tanh(x @ params["w"] + params["b"]) - y) ** 2)

    draw = np.random.default_rng(0)
    params = {"w": draw.normal(size=(3, 2)).astype(np.float32), "b": np.ones(2, np.float32)}
    x, y = draw.normal(size=(5, 3)).astype(np.float32), np.zeros((5, 2), np.float32)
    trace(loss, params, x, y, symbolic=(None, "b, _", "b, _")).save(tmp_path / "loss.scl")
    program = scalide.Program.load(tmp_path / "loss.scl")
    for argnums in (0, 1, (0, 2), -1):
        gradient = jax.jit(jax.grad(loss, argnums))
        want = gradient(params, x, y)
        same(scalide.build(program.grad(argnums))(params, x, y), want, errors(gradient, (params, x, y), want))
    both = jax.jit(jax.value_and_grad(loss, (0, 1)))
    want = both(params, x, y)
    same(scalide.build(program.value_and_grad((0, 1)))(params, x, y), want, errors(both, (params, x, y), want))
    scaled = scalide.build(program.scalify().grad())(*scalide.jax.as_scaled_array((params, x, y), 2.0))
    np.testing.assert_allclose(scaled["w"].to_array(), jax.grad(loss)(params, x, y)["w"], rtol=1e-4, atol=1e-6)
    text = scalide.Program("program f(x: f32[n], n: i32[n]) -> (y: f32[]) {\n  a = mul(x, x)\n  y = reduce_sum(a) {axes: [0]}\n}\n")
    np.testing.assert_array_equal(scalide.build(text.grad())(np.float32([1, 2]), np.zeros(2, np.int32)), [2, 4])
    for ask, words in ((lambda: program.grad(has_aux=True), "cannot take the grad of 'loss': a loaded or scalified program must have one result"),
                       (lambda: program.grad(3), "loss: argnums must be indices of the 3 positional arguments, from 0, got 3")):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            ask()
    with pytest.raises(scalide.BuildError, match="grad.wrt: must list float arguments of f, got n"):
        scalide.build(text.grad(1))


def test_scaled_programs():
    def f(w, x):
        return {"y": x @ w, "place": (x @ w).argmax(-1)}

    program = trace(f, X.T, X, scaled=["w"])
    assert [spec.scaled for spec in program.inputs] == [True, False] and [spec.scaled for spec in program.outputs] == [False, True]
    scaled = scalide.ScaledArray(np.asarray(X.T), np.float32(4))
    out = scalide.build(program)(scaled, X)
    assert np.allclose(np.asarray(out["y"].data) * np.asarray(out["y"].scale), X @ X.T * 4)
    assert trace(f, scaled, X).text == program.text
    both = trace(f, X.T, X).scalify()
    assert [spec.scaled for spec in both.inputs] == [True, True] and [spec.scaled for spec in both.outputs] == [False, True]


SYMBOLS = {
    ("b >= 8", "64 >= b", "mod(b, 4) == 0", "mod(b, 6) == 0"): "b in 8..64 step 12, c in 1..2147483647",
    ("8 <= b", "b <= 64", "c >= -3"): "b in 8..64, c in 1..2147483647",
    ("b == 2*c", "c <= 9"): "c in 1..9",
    ("z >= 8",): "b in 1..2147483647, c in 1..2147483647",
}


@pytest.mark.parametrize("constraints", SYMBOLS, ids=" ".join)
def test_symbolic_constraints_are_bounds(constraints):
    b, c = export.symbolic_shape("b, c", constraints=constraints)
    program = trace(lambda x, y: x.sum() + y.sum(), jax.ShapeDtypeStruct((b,), jnp.float32), jax.ShapeDtypeStruct((c,), jnp.float32))
    assert program.text.splitlines()[0].startswith(f"program lambda [{SYMBOLS[constraints]}](")


@pytest.mark.parametrize("constraints", ["b >= c", "2*b <= 64", "b*c <= 4096", "mod(b, 4) == 1", "mod(b, c) == 0", "floordiv(b, 2) == c", ("b == 2*c", "b >= 8")])
def test_other_symbolic_constraints_are_refused(constraints):
    constraints = [constraints] if isinstance(constraints, str) else list(constraints)
    b, c = export.symbolic_shape("b, c", constraints=constraints)
    words = f"symbolic shape: a constraint must bound, divide or replace one symbol, got '{constraints[-1]}'. Write it as "
    with pytest.raises(scalide.jax.TraceError, match=re.escape(words)):
        trace(lambda x, y: x.sum() + y.sum(), jax.ShapeDtypeStruct((b,), jnp.float32), jax.ShapeDtypeStruct((c,), jnp.float32))


def test_numerics():
    program = trace(lambda x, w: x @ w, X, X.T)
    with pytest.raises(scalide.BuildError, match="unknown policy 'f12'. Did you mean 'f32'"):
        scalide.build(program.numerics("f12"))
    exact, rounded = (np.asarray(scalide.build(program.numerics(policy))(X / 3, X.T)) for policy in ("f32", "bf16"))
    assert 0 < np.abs(exact - rounded).max() < 0.1


def test_errors_name_the_line_of_this_caller():
    """JAX keeps the jaxpr of its own jitted functions, with the lines of their first caller."""

    def first(x):
        return jnp.linalg.inv(x)

    def second(x):
        return 2 * jnp.linalg.inv(x)

    for fn in (first, second):
        with pytest.raises(scalide.jax.TraceError) as caught:
            trace(fn, np.eye(4, dtype=np.float32))
        assert f"{fn.__code__.co_firstlineno + 1}:" in str(caught.value) and fn.__name__ in str(caught.value)


def test_debug_print_is_left_out():
    def f(x):
        jax.debug.print("x is {}", x)
        return 2 * x

    with pytest.warns(UserWarning, match=r"test_jax_trace.py:\d+.*is ignored, because a program has no side effects"):
        program = trace(f, X)
    same(scalide.build(program)(X), 2 * X)
