"""Loops and branches of JAX: nodes that own programs. Results are compared with jax.jit, in the interpreter, and compiled where a build has them."""
import re
import warnings

import flax.linen as nn
import jax
import jax.numpy as jnp
import loop_programs
import numpy as np
import pytest
from jax import lax
from loop_programs import KEY, XS, H, N, W, rnn
from oracle import check, interpreted, with_gradient

import scalide
import scalide.jax
from scalide.jax import compat, trace

GROUPS = {"scans": loop_programs.SCANS, "whiles": loop_programs.WHILES, "branches": loop_programs.BRANCHES, "functions": loop_programs.FUNCTIONS,
          "others": loop_programs.OTHERS}  # fmt: skip
CASES = {f"{group}.{name}": case for group, cases in GROUPS.items() for name, case in cases.items()}

#: JAX computes these gradients by a recursion that loses all digits in f32.
INEXACT_GRADIENTS = {"functions.bessel_jn"}


def same(got, want):
    for (path, theirs), mine in zip(jax.tree_util.tree_leaves_with_path(want), jax.tree.leaves(got), strict=True):
        mine, theirs = np.asarray(mine), np.asarray(theirs)
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape), path
        mine, theirs = mine.astype(np.float64), theirs.astype(np.float64)
        largest = np.abs(theirs[np.isfinite(theirs)]).max(initial=1)
        np.testing.assert_allclose(mine, theirs, rtol=3e-4, atol=3e-5 * largest, err_msg=str(path))


def jitted(fn, args):
    """What JAX computes. Skips a function that this version of JAX does not have."""
    try:
        return jax.jit(fn)(*args)
    except (AttributeError, TypeError) as error:
        pytest.skip(f"JAX {jax.__version__}: {error}")


@pytest.mark.parametrize("name", CASES)
def test_interpreted(name, partitionable):
    fn, *args = CASES[name]
    want = jitted(fn, args)
    same(interpreted(trace(fn, *args), *args), want)


def has_gradient(fn, args) -> bool:
    """A while loop has no gradient, and functions of integers have none."""
    try:
        both, given = with_gradient(fn, args, np.random.default_rng(0))
        jax.eval_shape(both, *given)
    except Exception:  # JAX has many words for it
        return False
    return both is not fn


@pytest.mark.parametrize("name", [name for name, (fn, *args) in CASES.items() if name not in INEXACT_GRADIENTS and has_gradient(fn, args)])
def test_gradients_interpreted(name, partitionable):
    fn, *args = CASES[name]
    fn, args = with_gradient(fn, args, np.random.default_rng(0))
    same(interpreted(trace(fn, *args), *args), jitted(fn, args))


def is_traced(fn, *args) -> bool:
    """Whether this version of JAX has the functions of a program."""
    try:
        trace(fn, *args)
    except (AttributeError, TypeError):
        return False
    return True


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("share", range(4))
def test_compiled(group, share, partitionable):
    """With gradients where there are some, many functions as one program."""
    cases = {name: (fn, args) for name in list(GROUPS[group])[share::4] for fn, *args in [GROUPS[group][name]] if is_traced(fn, *args)}
    smooth = {name: case for name, case in cases.items() if f"{group}.{name}" not in INEXACT_GRADIENTS and has_gradient(*case)}
    # The errors of hundreds of steps add up, in JAX too, which also adds in another order from run to run: 2048 ulps are 2.4e-4 of an element.
    check(smooth, ulps=2048)
    check({name: case for name, case in cases.items() if name not in smooth}, gradient=False, ulps=2048)


def test_policies_apply_to_steps():
    """A loop and the loop that the user unrolled give the same numbers under a policy."""

    def loss(w, h, xs, unroll):
        return lax.scan(lambda h, x: (jnp.tanh(h @ w + x), None), h, xs, unroll=unroll)[0].sum()

    libraries = [scalide.build(trace(jax.grad(lambda w, h, xs: loss(w, h, xs, unroll)), W, XS, np.stack([XS] * N)).numerics("f8_master")) for unroll in (1, N)]
    first, second = (library(W, XS, np.stack([XS] * N)) for library in libraries)
    np.testing.assert_allclose(first, second, rtol=1e-5, atol=1e-6)


def lines_of(program, pattern: str) -> list[str]:
    return [line.strip() for line in program.text.splitlines() if re.search(pattern, line)]


# The text.


def test_few_steps_are_unrolled():
    for steps, unroll, nodes in ((4, 1, 0), (5, 1, 1), (64, 64, 0), (65, 65, 1), (8, 2, 1)):
        program = trace(lambda x: lax.fori_loop(0, steps, lambda i, c: c * x, x, unroll=unroll), H)
        assert len(lines_of(program, r"= scan\(")) == nodes, (steps, unroll)


def test_counters_are_numbers_of_steps():
    """The counter of fori_loop is no carry. It gives the same numbers after the loop."""

    def f(x):
        downwards = lax.scan(lambda c, row: ((c[0] + 3, c[1] + row * c[0]), c[0]), (-2, x), XS, reverse=True)
        return lax.fori_loop(0, N, lambda i, c: c + i, x), downwards

    program = trace(f, H)
    bodies = lines_of(program, r"body\(")
    assert len(bodies) == 2 and all("i32[] step" in body and "i32[] inout" not in body for body in bodies)
    same(interpreted(program, H), f(H))


def test_what_never_changes_is_no_carry():
    program = trace(lambda n, x: lax.fori_loop(0, n, lambda i, c: c + 1, x), np.int32(3), H)
    (body,) = lines_of(program, r"body\(")
    assert body.count("inout") == 2 and "body(n: i32[], " in body


def test_closed_over_arrays_are_hidden_arguments():
    """Each once, although loops in loops read it."""
    table = jnp.asarray(XS)

    def f(x):
        def outer(c, _):
            return lax.fori_loop(0, N, lambda i, c: c + table[i] + table[0], c), None

        return lax.scan(outer, x, None, length=N)[0] + table[1]

    program = trace(f, H)
    assert len(program.constants) == 1 and program.arguments == ("x", *program.constants)
    same(interpreted(program, H), f(H))


def test_names_are_unique_and_sub_programs_are_shared():
    def f(xs):
        total = lambda x: lax.reduce(x, jnp.float32(-jnp.inf), jnp.logaddexp, (0,))  # noqa: E731
        return lax.scan(lambda c, x: (c + total(x), total(xs[:, 0])), jnp.float32(0), xs)

    program = trace(f, XS)
    main = program.text[program.text.index("program f") :]
    names = [name for line in main.splitlines() for name in re.findall(r"v\d+(?=[^(]* = \w+\()", line.split("{")[0])]
    assert len(names) == len(set(names)) > 4 and program.text.count("program reduce") == 2
    check({"reduce": (f, [XS])}, gradient=False)


def test_gradients_and_scopes_reach_regions():
    """Only the equation of the loop says that it belongs to a gradient."""

    def loss(w, h, xs):
        def cell(h, x):
            with jax.named_scope("cell"):
                return jnp.tanh(h @ w + x), None

        with jax.named_scope("rnn"):
            return lax.scan(cell, h, xs)[0].sum()

    program = trace(jax.grad(loss), W, H, XS)
    products = lines_of(program, r"dot_general\(")
    assert [line.endswith("cotangent") for line in products] == [False, True, True]
    forward = program.text[: program.text.index("reverse: true")]
    assert 'scope "rnn" {' in forward and 'scope "cell" {' in forward and "tanh(" in forward
    assert all(not line.endswith("cotangent") for line in lines_of(program, r"= tanh\("))


def test_recomputed_values_are_no_gradients():
    def loss(w, x):
        return lax.scan(jax.checkpoint(lambda h, _: (jnp.tanh(jnp.tanh(h @ w) @ w), None)), x, None, length=N)[0].sum()

    program = trace(jax.grad(loss), W, H)
    backward = program.text[program.text.index("reverse: true") :].splitlines()
    recomputed = [line for line in backward if "= tanh(" in line]
    assert recomputed and not any(line.endswith("cotangent") for line in recomputed)


def test_activations_in_regions_are_one_operator():
    program = trace(lambda x: lax.scan(lambda x, _: (jax.nn.gelu(x), jax.nn.silu(x)), x, None, length=N), H)
    assert len(lines_of(program, r"= gelu_tanh\(")) == len(lines_of(program, r"= silu\(")) == 1
    assert not lines_of(program, r"= tanh\(")


def test_branches_of_a_bool_and_of_a_number():
    program = trace(lambda x, i: (lax.cond(x[0] > 0, jnp.sin, jnp.cos, x), lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x)), H, np.int32(0))
    assert len(lines_of(program, r"= cond\(")) == len(lines_of(program, r"= switch\(")) == 1
    assert [line.split("(")[0] for line in lines_of(program, r"\) -> \(v")] == ["yes", "no", "branch0", "branch1", "branch2"]


def test_saved_programs_have_the_lines(tmp_path):
    program = trace(jax.grad(lambda w, h, xs: rnn(w, h, xs)[1].sum()), W, H, XS)
    program.save(tmp_path / "p.scl")
    loaded = scalide.Program.load(tmp_path / "p.scl")
    assert loaded.text == program.text and any("loop_programs.py" in str(place) for place in loaded.places)
    same(interpreted(loaded, W, H, XS), interpreted(program, W, H, XS))


def test_scaled_arrays_go_through_loops():
    """A carry that starts as a plain array is scaled if a step makes it so."""

    def f(x, h):
        (a, b, n), sums = lax.scan(lambda c, _: ((c[1], c[0] * x, c[2] + 1), c[1].sum()), (h, h, 0.0), None, length=N)
        return a, b, n, sums

    program = trace(f, scalide.ScaledArray(H, np.float32(2)), H)
    assert [spec.scaled for spec in program.outputs] == [True, True, False, True]
    assert program.text.count("body(") == 1
    library = scalide.build(program)
    got = library(scalide.ScaledArray(H, np.float32(2)), H)
    same([np.asarray(leaf.data * leaf.scale if isinstance(leaf, scalide.ScaledArray) else leaf) for leaf in got], f(2 * H, H))


@pytest.mark.parametrize("is_loop", [True, False])
def test_callbacks_are_named(is_loop):
    """The warning names the line of the user."""

    def step(c, _):
        jax.debug.print("c is {}", c)  # this line
        return c * 2, None

    with pytest.warns(UserWarning) as told:
        trace(lambda x: lax.scan(step, x, None, length=N if is_loop else 1), H)
    words = "not supported inside of loops" if is_loop else "a program has no side effects"
    messages = [str(warning.message) for warning in told if "is ignored" in str(warning.message)]
    assert len(messages) == 1 and words in messages[0] and "test_jax_loops.py" in messages[0]


def test_errors_name_the_line_in_a_region():
    def body(c, x):
        return jnp.linalg.cholesky(c), x  # this line

    def layer(x):
        return lax.fori_loop(0, N, lambda i, x: lax.scan(body, x, XS)[0], x)

    with pytest.raises(scalide.jax.TraceError) as error:
        trace(layer, jnp.eye(7))  # no other test has this shape: JAX keeps the lines of the first call
    number = int(re.match(r".*?test_jax_loops.py:(\d+)", str(error.value))[1])
    assert "# this line" in open(__file__).read().splitlines()[number - 1]


def test_lengths_may_be_symbols():
    """The text has the extent. A build of today needs a number."""
    program = trace(rnn, W, H, XS, symbolic=(None, None, "t, 3"))
    assert "{length: t}" in program.text and "[t in 1.." in program.text
    for steps in (1, 5):
        same(interpreted(program, W, H, XS[:steps]), rnn(W, H, XS[:steps]))


# Flax.


def models():
    class Block(nn.Module):
        @nn.compact
        def __call__(self, x, _):
            return x + nn.Dense(4)(nn.gelu(nn.LayerNorm()(x))), x.sum()

    class Stack(nn.Module):
        remat: bool

        @nn.compact
        def __call__(self, x):
            block = nn.remat(Block) if self.remat else Block
            return nn.scan(block, variable_axes={"params": 0}, split_rngs={"params": True}, length=N)()(x, None)

    class Tied(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.scan(Block, variable_broadcast="params", split_rngs={"params": False}, length=N)()(x, None)

    sequence = np.asarray(np.random.default_rng(0).normal(size=(2, N, 4)), np.float32)
    return {"layers": (Stack(remat=False), sequence), "rematerialized": (Stack(remat=True), sequence), "tied": (Tied(), sequence),
            "lstm": (nn.RNN(nn.LSTMCell(4)), sequence), "gru": (nn.RNN(nn.GRUCell(4), reverse=True, keep_order=True), sequence),
            "lengths": (nn.RNN(nn.OptimizedLSTMCell(4), return_carry=True), sequence),
            "bidirectional": (nn.Bidirectional(nn.RNN(nn.SimpleCell(4)), nn.RNN(nn.GRUCell(4))), sequence)}  # fmt: skip


@pytest.mark.parametrize("name", models())
def test_models_of_flax(name, partitionable):
    model, x = models()[name]
    params = model.init(jax.random.key(0), x)
    more = {"seq_lengths": np.asarray([3, 6], np.int32)} if name == "lengths" else {}

    def loss(params, x):
        out = model.apply(params, x, **more)
        return sum(jnp.sum(jnp.sin(leaf)) for leaf in jax.tree.leaves(out))

    step = jax.value_and_grad(loss)
    program = trace(step, params, x)
    assert "= scan(" in program.text
    same(interpreted(program, params, x), jax.jit(step)(params, x))
    check({name: (step, [params, x])}, gradient=False, ulps=64)


def test_no_warnings(partitionable):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trace(rnn, W, H, XS)
        trace(lambda key: jax.random.poisson(key, 3.0, (2,)), KEY)
