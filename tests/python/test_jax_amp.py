"""scalide.jax.amp: the operations and the numbers of jaxamp, bodies, policies, transformations, and functions in mixed precision as programs."""
import functools
import inspect
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import golden_folder
from jax import lax

import scalide
import scalide.jax
from scalide.arrays import numpy_dtype
from scalide.jax import amp, amp_stop, default_amp_policy, use_compute_precision, use_original_precision

GOLDEN = golden_folder("loss_scaling")
ARRAYS = np.load(GOLDEN / "loss_scaling.npz")
CASES = {case["name"]: case for case in json.loads((GOLDEN / "loss_scaling.json").read_text())["cases"] if case["op"] == "amp_policy"}
SHORT = {"float32": "f32", "float16": "f16", "bfloat16": "bf16"}
draw = np.random.RandomState(0)
W, B, X = draw.randn(6, 6).astype(np.float32), draw.randn(6).astype(np.float32), draw.randn(4, 6).astype(np.float32)


def linear(w, b, x):
    return jnp.tanh(x @ w + b) * 2.0


def cross_entropy(logits, targets):
    shifted = logits - lax.stop_gradient(jnp.max(logits, -1, keepdims=True))
    return -jnp.mean(jnp.sum(targets * (shifted - jnp.log(jnp.sum(jnp.exp(shifted), -1, keepdims=True))), -1))


def stop(w, x):
    y = x @ w
    with amp_stop():
        total, third = y + x, y / 3.0
    return total - third


def conv(x, kernel):
    return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + x


FUNCTIONS = {"linear": linear, "cross_entropy": cross_entropy, "stop": stop, "conv": conv}


def golden_function(case):
    name, dtype = case["attrs"]["fn"], numpy_dtype(case["attrs"]["compute_dtype"])
    if name == "grad_linear":
        return jax.grad(lambda w, b, x: amp(linear, compute_dtype=dtype)(w, b, x).sum()), jax.grad(lambda w, b, x: linear(w, b, x).sum())
    return amp(FUNCTIONS[name], compute_dtype=dtype), FUNCTIONS[name]


def operations(closed):
    """(name, dtypes of operands, dtypes of results) of each equation, calls inlined."""
    jaxpr = getattr(closed, "jaxpr", closed)
    for eqn in jaxpr.eqns:
        if eqn.primitive.name in ("pjit", "jit"):
            yield from operations(eqn.params["jaxpr"])
        else:
            yield eqn.primitive.name, *(tuple(SHORT.get(str(v.aval.dtype), str(v.aval.dtype)) for v in values) for values in (eqn.invars, eqn.outvars))


def dtypes(fn, *args, name):
    """The dtypes of the operands of each operation with this name, in any body."""

    def visit(jaxpr):
        for eqn in getattr(jaxpr, "jaxpr", jaxpr).eqns:
            if eqn.primitive.name == name:
                yield tuple(SHORT.get(str(v.aval.dtype)) for v in eqn.invars)
            for value in eqn.params.values():
                for inner in value if isinstance(value, (list, tuple)) else [value]:
                    if hasattr(inner, "eqns"):
                        yield from visit(inner)

    return list(visit(jax.make_jaxpr(fn)(*args)))


def of_golden(entries):
    return [(entry["prim"], tuple(entry["in"]), tuple(entry["out"])) for entry in entries]


@pytest.mark.parametrize("name", CASES)
def test_operations_and_results_of_jaxamp(name):
    case = CASES[name]
    mixed, plain = golden_function(case)
    args = [ARRAYS[entry["key"]] for entry in case["inputs"]]
    assert list(operations(jax.make_jaxpr(plain)(*args))) == of_golden(case["ops_before"])
    assert list(operations(jax.make_jaxpr(mixed)(*args))) == of_golden(case["ops"])
    got = np.asarray(jax.jit(mixed)(*args))
    want = ARRAYS[case["outputs"][0]["key"]]
    assert got.dtype == want.dtype
    if "tanh" in {prim["prim"] for prim in case["ops"]}:  # the tanh of XLA differs by a few units in the last place from version to version
        np.testing.assert_allclose(got, want, rtol=1e-6 if case["attrs"]["fn"] == "linear" else 1e-3, atol=0)
    else:
        np.testing.assert_array_equal(got.view(np.uint32), want.view(np.uint32))


def test_ten_cases_of_jaxamp():
    assert len(CASES) == 10


def test_outermost_scope_wins():
    def f(x):
        with jax.named_scope("outer"), jax.named_scope("inner"):
            return jnp.sin(x)

    def dtype(policy):
        return dtypes(amp(f, amp_policy=policy), X, name="sin")[0][0]

    assert dtype({"outer": "compute", "inner": "original"}) == "f16"
    assert dtype({"outer": "original", "inner": "compute"}) == "f32"
    assert dtype({"inner": "compute", lax.sin_p: "original"}) == "f16"  # a scope wins over the primitive
    assert dtype({lax.sin_p: "compute", "amp_default": "original"}) == "f16"  # the primitive wins over amp_default
    assert dtype({"amp_default": "compute"}) == "f16"
    assert dtype({}) == "f32"
    assert dtype(default_amp_policy | {"inner": jnp.bfloat16}) == "bf16"


def test_a_scope_around_amp_counts():
    def f(x):
        with amp_stop():
            return amp(lambda x: x + x)(x)

    assert dtypes(f, X, name="add") == [("f32", "f32")]


def test_words_and_dtypes_of_a_policy():
    def dtype(row, *args):
        return dtypes(amp(lambda x, y: lax.add(x, y), amp_policy={lax.add_p: row}), *args, name="add")[0]

    half = X.astype(np.float16)
    for row, expected in (("original", "f32"), ("compute", "f16"), ("widest", "f32"), (jnp.bfloat16, "bf16"), ("bfloat16", "bf16"), (np.dtype("float32"), "f32")):
        assert dtype(row, X, X) == (expected, expected)
    assert dtype("widest", half, half) == ("f16", "f16")
    assert dtype(use_original_precision, X, X) == ("f32", "f32") and dtype(use_compute_precision, X, X) == ("f16", "f16")


def test_widest_takes_bf16_before_f16():
    def dtype(*args):
        return dtypes(amp(lambda p, x, y: lax.select_n(p, x, y), compute_dtype=jnp.bfloat16, amp_policy={"amp_default": "widest"}), *args, name="select_n")

    assert dtype(X > 0, X, X) == [(None, "f32", "f32")]  # only floats are cast
    assert dtype(X > 0, X.astype(jnp.bfloat16), X.astype(jnp.bfloat16)) == [(None, "bf16", "bf16")]


def test_precision_function_of_the_user():
    calls = []

    def precision(compute_dtype, original_dtypes, *operands, **params):
        calls.append((compute_dtype, [str(dtype) for dtype in original_dtypes], len(operands), params["preferred_element_type"]))
        params["preferred_element_type"] = np.dtype(np.float32)
        return [operand.astype(compute_dtype) for operand in operands], params

    closed = jax.make_jaxpr(amp(lambda w, x: x @ w, compute_dtype=jnp.bfloat16, amp_policy={lax.dot_general_p: precision}))(W, X)
    assert calls == [(jnp.bfloat16, ["float32", "float32"], 2, np.float32)]
    assert ("dot_general", ("bf16", "bf16"), ("f32",)) in list(operations(closed))


def test_compute_precision_casts_arrays_in_parameters():
    operands, params = use_compute_precision(jnp.float16, [np.dtype("float32")], X, preferred_element_type=None, table=(X, 3))
    assert operands[0].dtype == jnp.float16 and params["preferred_element_type"] == jnp.float16
    assert params["table"][0].dtype == jnp.float16 and params["table"][1] == 3


def test_forms_of_a_decorator():
    @amp
    def first(w, x):
        return x @ w

    @amp(compute_dtype=jnp.bfloat16)
    def second(w, x):
        return x @ w

    @amp_stop
    def kept(w, x):
        return x @ w

    assert dtypes(first, W, X, name="dot_general") == [("f16", "f16")]
    assert dtypes(second, W, X, name="dot_general") == [("bf16", "bf16")]
    assert dtypes(amp(kept, jnp.bfloat16), W, X, name="dot_general") == [("f32", "f32")]
    assert first.__name__ == "first"


def test_arguments_that_are_no_arrays_are_static():
    @amp
    def f(name, x, options, scale=1.0):
        assert name == "square" and options["axis"] == 0 and isinstance(scale, float)
        return {"sum": jnp.sum(x * scale, options["axis"]), "name": name, "scale": scale, "nothing": None}

    result = f("square", X, {"axis": 0}, scale=2.5)
    assert result["name"] == "square" and result["scale"] == 2.5 and result["nothing"] is None
    np.testing.assert_allclose(result["sum"], (X * 2.5).sum(0), rtol=1e-5)


def test_results_and_gradients_keep_their_dtypes():
    mixed = jax.jit(amp(linear))
    assert mixed(W, B, X).dtype == np.float32
    gradients = jax.grad(lambda *args: mixed(*args).sum(), (0, 1, 2))(W, B, X)
    assert [g.dtype for g in gradients] == [np.float32] * 3
    exact = jax.grad(lambda *args: linear(*args).sum(), (0, 1, 2))(W, B, X)
    for got, want in zip(gradients, exact):
        np.testing.assert_allclose(got, want, atol=0.02)
    half = amp(lambda x: x * x)(X.astype(np.float16))  # computed in f32
    assert half.dtype == np.float16


def test_vmap_and_closures():
    batched = jax.vmap(amp(lambda x: x @ W + B))(X)
    np.testing.assert_array_equal(batched, amp(lambda x: x @ W + B)(X))

    def closes_over_a_tracer(w):
        return amp(lambda x: (x @ w).sum())(X)

    assert jax.grad(closes_over_a_tracer)(W).dtype == np.float32
    assert dtypes(closes_over_a_tracer, W, name="dot_general") == [("f16", "f16")]


def in_jit(w, x):
    return jax.jit(lambda w, x: x @ w)(w, x)


def in_checkpoint(w, x):
    return jax.checkpoint(lambda w, x: jnp.sin(x @ w))(w, x)


def in_scan(w, x):
    return lax.scan(lambda carry, e: (carry @ w + e, carry.sum()), x, jnp.stack([x, x]))


def in_while(w, x):
    return lax.while_loop(lambda state: state[0] < 3, lambda state: (state[0] + 1, state[1] @ w), (0, x))[1]


def in_fori(w, x):
    return lax.fori_loop(0, 3, lambda _, x: x @ w, x)


def in_cond(w, x):
    return lax.cond(x[0, 0] > 0, lambda w, x: x @ w, lambda w, x: x, w, x)


def in_switch(w, x):
    return lax.switch(jnp.int32(x[0, 0] > 0), [lambda w, x: x @ w, lambda w, x: x, lambda w, x: x @ w], w, x)


BODIES = [in_jit, in_checkpoint, in_scan, in_while, in_fori, in_cond, in_switch]


@pytest.mark.parametrize("fn", BODIES, ids=lambda fn: fn.__name__)
def test_bodies(fn):
    products = dtypes(amp(fn), W, X, name="dot_general")
    assert products and set(products) == {("f16", "f16")}
    assert set(dtypes(amp(fn, recurse=False), W, X, name="dot_general")) == {("f32", "f32")}
    for got, plain, exact in zip(*map(jax.tree_util.tree_leaves, (amp(fn)(W, X), fn(W, X), amp(fn, recurse=False)(W, X)))):
        assert got.dtype == plain.dtype == np.float32
        np.testing.assert_allclose(got, plain, rtol=0.01, atol=0.01 * np.abs(plain).max())
        np.testing.assert_array_equal(exact, jax.jit(lambda: plain)())
    if fn not in (in_while,):  # JAX cannot differentiate it
        gradient = jax.grad(lambda w: sum(leaf.sum() for leaf in jax.tree_util.tree_leaves(amp(fn)(w, X))))(W)
        assert gradient.dtype == np.float32 and np.isfinite(gradient).all()


@pytest.mark.parametrize("fn", BODIES, ids=lambda fn: fn.__name__)
def test_a_scope_around_a_body_counts_in_it(fn):
    stopped = amp(amp_stop(lambda w, x: fn(w, x)))
    assert set(dtypes(stopped, W, X, name="dot_general")) == {("f32", "f32")}


def test_a_checkpoint_stays():
    names = [name for name, _, _ in operations(jax.make_jaxpr(amp(in_checkpoint))(W, X))]
    assert {"checkpoint", "remat2", "remat"} & set(names)


@pytest.mark.parametrize("fn", [jax.nn.relu, jax.nn.silu, jax.nn.logsumexp, jax.nn.softplus], ids=lambda fn: fn.__name__)
def test_derivative_rules_stay(fn):
    """At 0 and at large numbers, where the rule of JAX differs from the derivative of its arithmetic."""
    x = np.float32([0, 1e4, -1e4, 1, -2])
    got, want = (jax.grad(lambda x: f(x).sum())(x) for f in (amp(fn), fn))
    np.testing.assert_allclose(got, want, atol=1e-3)


def test_custom_rules_are_called_at_original_precision():
    @jax.custom_vjp
    def f(x):
        return x + x

    f.defvjp(lambda x: (x + x, x), lambda x, g: (jnp.where(x.dtype == jnp.float32, 7.0, 1.0) * g,))
    assert (jax.grad(lambda w: amp(lambda w: f(X @ w))(w).sum())(np.eye(6, dtype=np.float32)) / X.sum(0)[:, None]).round(1).min() == 7
    assert dtypes(amp(f), X, name="add") == [("f32", "f32")]


def test_errors_name_the_row():
    with pytest.raises(ValueError, match=r"amp_policy\['sin'\]: must be 'original', 'compute', 'widest', a float dtype or a function, got 'orignal'. Did you mean 'original'"):
        amp(linear, amp_policy={lax.sin_p: "orignal"})
    with pytest.raises(ValueError, match=r"amp_policy\['block'\]: must be .*, got <class 'numpy.int32'>. Use one of the words"):
        amp(linear, amp_policy={"block": np.int32})
    with pytest.raises(ValueError, match="compute_dtype: must be a float dtype, got <class 'numpy.int8'>. Use jnp.float16, jnp.bfloat16 or jnp.float32"):
        amp(linear, compute_dtype=np.int8)


def test_a_program_of_mixed_precision_keeps_lines_and_scopes():
    def f(w, x):
        with jax.named_scope("layer"):
            return jnp.tanh(x @ w)

    text = str(scalide.jax.trace(amp(f), W, X))
    assert 'scope "layer"' in text and "f16[4, 6]" in text


def test_errors_of_trace_name_the_line_in_the_function():
    line = inspect.getsourcelines(of_eigenvalues)[1] + 1
    for f in (amp(of_eigenvalues), amp(jax.jit(of_eigenvalues))):
        with pytest.raises(scalide.jax.TraceError, match=rf"test_jax_amp.py:{line}(:\d+)? \(of_eigenvalues\): JAX primitive 'eigh' is not supported"):
            scalide.jax.trace(f, W)


def of_eigenvalues(x):
    return jnp.linalg.eigh(x @ x)[0]


def ulps(dtype):
    """The distance of numbers near 1 in a dtype."""
    return float(jnp.finfo(dtype).eps)


def mlp(params, x, y):
    hidden = jax.nn.gelu(x @ params["w1"] + params["b1"])
    logits = hidden @ params["w2"]
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * y, -1))


ROUNDINGS = ("f32", "every_node")  # `round` of the policy: where arrays are stored, or after each operator


def policy_of(rounding, folder):
    if rounding == "f32":
        return "f32"
    (folder / "every_node.yaml").write_text("policy: every_node\nextends: f32\nround: every_node\n")
    return folder / "every_node.yaml"


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("fn", ["linear", "cross_entropy", "stop", "mlp"])
def test_a_library_of_mixed_precision_has_the_numbers_of_jax(fn, dtype, rounding, tmp_path):
    """Elements may be off by 4 units in the last place of the low precision, at the magnitude of the largest element: sums have another order, so
    that a result may be rounded to the other neighbour, and f32 leaves out roundings of arrays that it does not store."""
    if fn == "mlp":
        params = {"w1": W, "b1": B, "w2": W.T.copy()}
        f, args = jax.value_and_grad(amp(mlp, compute_dtype=dtype)), (params, X, np.eye(6, dtype=np.float32)[[0, 3, 1, 5]])
    elif fn == "cross_entropy":
        f, args = amp(cross_entropy, compute_dtype=dtype), (X, np.eye(6, dtype=np.float32)[[0, 3, 1, 5]])
    else:
        f, args = amp(FUNCTIONS[fn], compute_dtype=dtype), {"linear": (W, B, X), "stop": (W, X)}[fn]
    library = scalide.build(scalide.jax.trace(f, *args), numerics=policy_of(rounding, tmp_path))
    for got, want in zip(*map(jax.tree_util.tree_leaves, (library(*args), jax.jit(f)(*args)))):
        np.testing.assert_allclose(got, want, rtol=0, atol=4 * ulps(dtype) * np.abs(want).max())


@pytest.mark.parametrize("fn", [in_jit, in_checkpoint, in_scan, in_fori, in_cond], ids=lambda fn: fn.__name__)
def test_bodies_of_mixed_precision_become_programs(fn):
    f = amp(fn)
    library = scalide.build(scalide.jax.trace(f, W, X))
    for got, want in zip(*map(jax.tree_util.tree_leaves, (library(W, X), jax.jit(f)(W, X)))):
        np.testing.assert_allclose(got, want, rtol=0, atol=4 * ulps(jnp.float16) * np.abs(want).max())


def test_rounding_of_every_node_has_the_bits_of_jax(tmp_path):
    """Products of one term are rounded to nearest, ties to even, as in JAX. Policy f32 rounds a value of the program where it is stored."""
    x = np.float32(1 + np.arange(64) / 4096).reshape(1, 64)
    w = np.float32(1 + np.arange(64) / 1024).reshape(1, 64)
    f = amp(lambda x, w: x.T @ w)
    program, want = scalide.jax.trace(f, x, w), np.asarray(jax.jit(f)(x, w))
    np.testing.assert_array_equal(scalide.build(program, numerics=policy_of("every_node", tmp_path))(x, w), want)
    stored = scalide.build(program)(x, w)
    np.testing.assert_array_equal(stored.astype(np.float16), want)
    assert (stored != want).any()


def test_amp_of_partial_and_method():
    class Model:
        def __init__(self):
            self.w = jnp.asarray(W)

        def __call__(self, x):
            return x @ self.w

    assert dtypes(amp(Model()), X, name="dot_general") == [("f16", "f16")]
    assert dtypes(amp(functools.partial(linear, W)), B, X, name="dot_general") == [("f16", "f16")]
