"""Loss scaling with the libraries of users: jaxamp, jmp, Flax and optax. Traced steps have the losses and the scaler states of JAX, step by step."""
import functools
import json

import jax
import jax.numpy as jnp
import jaxamp
import jmp
import numpy as np
import optax
import pytest
from conftest import golden_folder
from flax.training.dynamic_scale import DynamicScale
from oracle import interpreted

import scalide
import scalide.jax

PERIOD, STEPS, OVERFLOWS = 4, 64, (6, 21, 22, 23, 50)
draw = np.random.RandomState(0)
PARAMS = {"w1": draw.randn(16, 32).astype(np.float32) / 4, "b1": np.zeros(32, np.float32), "w2": draw.randn(32, 4).astype(np.float32) / 6}
X = draw.randn(STEPS, 8, 16).astype(np.float32)
Y = np.tanh(X[..., :4])
for _step in OVERFLOWS:
    X[_step, 3, 5] = np.inf

old_jax = tuple(int(part) for part in jax.__version__.split(".")[:2]) < (0, 5)


def loss(params, x, y):
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    return jnp.mean((hidden @ params["w2"] - y) ** 2)


#: The loss in several precisions, and the relative tolerance of losses: f32, and a few roundings of f16 and bf16.
LOSSES = {"f32": (loss, 1e-5), "f16": (scalide.jax.amp(loss, jnp.float16), 4e-3), "bf16": (scalide.jax.amp(loss, jnp.bfloat16), 3e-2)}


def updated(params, gradients, finite):
    return jax.tree_util.tree_map(lambda w, g: jnp.where(finite, w - 0.05 * g, w), params, gradients)


def of_jaxamp(loss, **options):
    """A step with value_and_grad of jaxamp."""

    def step(params, state, x, y):
        function = jaxamp.dynamic_scale_value_and_grad(loss, redo_on_nan=0, **options)
        state, (value, gradients) = function(params, x, y, dynamic_scaler_state=state)
        return updated(params, gradients, jmp.all_finite(gradients)), state, value

    return step


def of_jaxamp_aux(loss):
    def with_aux(params, x, y):
        value = loss(params, x, y)
        return value, {"double": 2 * value}

    def step(params, state, x, y):
        function = jaxamp.dynamic_scale_value_and_grad(with_aux, redo_on_nan=0, has_aux=True)
        state, ((value, aux), gradients) = function(params, x, y, dynamic_scaler_state=state)
        return updated(params, gradients, jmp.all_finite(gradients)), state, aux["double"]

    return step


def of_jaxamp_grad(loss):
    """A step with grad of jaxamp, whose default is redo_on_nan=0. apply_if_finite masks the update, as the README of jaxamp suggests."""
    optimizer = optax.apply_if_finite(optax.sgd(0.05), 1000)

    def step(params, state, x, y):
        scaler, inner = state
        scaler, gradients = jaxamp.dynamic_scale_grad(loss)(params, x, y, dynamic_scaler_state=scaler)
        updates, inner = optimizer.update(gradients, inner, params)
        return optax.apply_updates(params, updates), (scaler, inner), loss(params, x, y)

    return step


def of_jmp(loss):
    def step(params, state, x, y):
        value, gradients = jax.value_and_grad(lambda params: state.scale(loss(params, x, y)))(params)
        gradients = state.unscale(gradients)
        finite = jmp.all_finite(gradients)
        new = jax.tree_util.tree_map(lambda w, g: w - 0.05 * g, params, gradients)
        return jmp.select_tree(finite, new, params), state.adjust(finite), state.unscale(value)

    return step


def of_flax(loss):
    def step(params, state, x, y):
        state, finite, value, gradients = state.value_and_grad(loss)(params, x, y)
        return updated(params, gradients, finite), state, value

    return step


def of_optax(loss, optimizer):
    def step(params, state, x, y):
        value, gradients = jax.value_and_grad(loss)(params, x, y)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    return step


def jaxamp_state(scale=2.0**13):
    """Raw Python numbers, as jaxamp takes them."""
    return jaxamp.DynamicScalerState(patience=PERIOD, adjust_factor=2.0, scaler=scale, count=0, total_resets=0)


APPLY_IF_FINITE = optax.apply_if_finite(optax.adam(1e-2), 2)  # accepts the third infinity in a row
MULTI_STEPS = optax.MultiSteps(optax.adam(1e-2), every_k_schedule=3, should_skip_update_fn=optax.skip_not_finite)
SCALERS = {
    "jaxamp": (of_jaxamp, jaxamp_state()),
    "jaxamp_without_filter": (functools.partial(of_jaxamp, filter=False), jaxamp_state()),
    "jaxamp_aux": (of_jaxamp_aux, jaxamp_state()),
    "jaxamp_grad": (of_jaxamp_grad, (jaxamp_state(), optax.apply_if_finite(optax.sgd(0.05), 1000).init(PARAMS))),
    "jmp": (of_jmp, jmp.DynamicLossScale(np.float32(2.0**13), period=PERIOD)),
    "jmp_static": (of_jmp, jmp.StaticLossScale(2.0**10)),
    "jmp_none": (of_jmp, jmp.NoOpLossScale()),
    "flax": (of_flax, DynamicScale(growth_interval=PERIOD, scale=2.0**13)),
    "multi_steps": (functools.partial(of_optax, optimizer=MULTI_STEPS), MULTI_STEPS.init(PARAMS)),
    "apply_if_finite": (functools.partial(of_optax, optimizer=APPLY_IF_FINITE), APPLY_IF_FINITE.init(PARAMS)),
}


def numbers(tree):
    """The whole numbers, bools and scales of a state, and its other floats."""
    leaves = [np.asarray(leaf) for leaf in jax.tree_util.tree_leaves(tree)]
    return [leaf for leaf in leaves if leaf.ndim == 0], [leaf for leaf in leaves if leaf.ndim]


def fits_old_jax(name):
    return not (old_jax and name == "jmp")


@pytest.mark.parametrize("precision", LOSSES)
@pytest.mark.parametrize("name", [name for name in SCALERS if fits_old_jax(name)])
def test_traced_scaler_has_the_states_of_jax(name, precision):
    make, state = SCALERS[name]
    function, tolerance = LOSSES[precision]
    step = make(function)
    library = scalide.build(scalide.jax.trace(step, PARAMS, state, X[0], Y[0]))
    compiled = jax.jit(step)
    ours, theirs = (PARAMS, jax.tree_util.tree_map(np.asarray, state)), (PARAMS, state)
    scales, skipped = set(), 0
    for i in range(STEPS):
        before = np.asarray(theirs[0]["w1"])
        *ours, value = library(*ours, X[i], Y[i])
        *theirs, want = compiled(*theirs, X[i], Y[i])
        (exact, arrays), (wanted, wanted_arrays) = numbers(ours[1]), numbers(theirs[1])
        assert [(leaf.dtype, leaf.item()) for leaf in exact] == [(leaf.dtype, leaf.item()) for leaf in wanted], f"step {i}"
        np.testing.assert_allclose(value, want, rtol=tolerance, err_msg=f"step {i}")
        for got, expected in zip(arrays, wanted_arrays):
            np.testing.assert_allclose(got, expected, rtol=0, atol=4 * tolerance * max(np.nanmax(np.abs(expected), initial=0), 1e-4), err_msg=f"step {i}")
        scales.update(leaf.item() for leaf in exact if leaf.dtype == np.float32)
        skipped += np.array_equal(theirs[0]["w1"], before)
    assert skipped >= len(OVERFLOWS) or name in ("multi_steps", "apply_if_finite")
    if name not in ("jmp_static", "jmp_none", "multi_steps", "apply_if_finite"):
        assert max(scales) >= 2.0**14 and len(scales) > 5  # it grew, and was reset
    if name not in ("jmp_static", "jmp_none"):
        assert isinstance(ours[1], type(theirs[1]))


@pytest.mark.skipif(not old_jax, reason="later versions of JAX can trace this class")
def test_old_jax_cannot_trace_a_class_that_computes_with_its_arrays():
    make, state = SCALERS["jmp"]
    with pytest.raises(TypeError, match="an argument: its class computes with what it contains, and JAX 0.4.3. puts objects into it that are no arrays. Use a later JAX"):
        scalide.jax.trace(make(loss), PARAMS, state, X[0], Y[0])


@pytest.mark.skipif(old_jax, reason="JAX cannot trace the class")
def test_a_class_that_computes_with_its_arrays_can_be_converted_and_be_constant():
    """DynamicLossScale of jmp looks at the dtype of what it contains, and accepts a plain object."""

    def scaled(state, x):
        return state.scale(x), state

    state = jmp.DynamicLossScale(np.float32(8), period=3)
    program = scalide.jax.trace(jax.jit(scaled, donate_argnums=1), state, X[1])
    assert [str(each) for each in program.inputs] == ["state.0: f32[]", "state.1: i32[]", "x: f32[8, 16] inout"]
    library = scalide.build(program)
    result, same = library(state, X[1])
    assert isinstance(same, jmp.DynamicLossScale) and same.period == 3
    np.testing.assert_array_equal(result, 8 * X[1])
    prepared = scalide.build(scalide.jax.trace(scaled, state, X[1], constant_argnums=0)).prepare(state)
    np.testing.assert_array_equal(prepared(X[1])[0], 8 * X[1])


@pytest.mark.parametrize("function", [jaxamp.dynamic_scale_grad, jaxamp.dynamic_scale_value_and_grad], ids=lambda function: function.__name__)
@pytest.mark.parametrize("row", [0, OVERFLOWS[0]])
def test_redo_is_a_loop(function, row):
    """jaxamp computes a gradient that is not finite again, with a smaller scale."""

    def step(params, state, x, y):
        return function(loss, redo_on_nan=3)(params, x, y, dynamic_scaler_state=state)

    program = scalide.jax.trace(step, PARAMS, jaxamp_state(), X[row], Y[row])
    assert " = while(" in program.text
    args = PARAMS, jaxamp_state(), X[row], Y[row]
    want = jax.jit(step)(*args)
    for got in (interpreted(program, *args), scalide.build(program)(*args)):
        for mine, theirs in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_an_overflow_before_a_division_is_seen():
    """A scaler multiplies in f16 and divides in f32. No kernel stores the f16 number, but it overflows."""
    x = np.float16([1.5, 300, -60000])

    def f(x, scale):
        big = (x * scale.astype(x.dtype)).astype(jnp.float32)
        return jnp.isfinite(big / scale), jnp.isfinite(-jnp.transpose(big[None] / scale)).all()

    library = scalide.build(scalide.jax.trace(f, x, np.float32(1)))
    for scale in (np.float32(1), np.float32(2.0**14)):
        for got, want in zip(library(x, scale), jax.jit(f)(x, scale)):
            np.testing.assert_array_equal(got, want)


# The reference data of jaxamp and Flax.

GOLDEN = golden_folder("loss_scaling")
ARRAYS = np.load(GOLDEN / "loss_scaling.npz")
CASES = {case["name"]: case for case in json.loads((GOLDEN / "loss_scaling.json").read_text())["cases"] if case["op"] != "amp_policy"}


def total(w, x):
    return jnp.sum(w * x)


def golden_step(case):
    """(a step (state, w, x) -> state, gradients, rows of the state; the first state) of a case."""
    attributes = case["attrs"]
    if attributes.get("variant") == "flax":
        state = DynamicScale(growth_factor=attributes["growth_factor"], backoff_factor=attributes["backoff_factor"], growth_interval=attributes["growth_interval"], scale=attributes["init"])

        def step(state, w, x):
            state, finite, _, gradients = state.value_and_grad(total)(w, x)
            return state, gradients, (state.scale, state.fin_steps, finite)

        return step, state
    grad = attributes["variant"] == "jaxamp_grad"
    state = jaxamp.DynamicScalerState(patience=attributes["patience"], adjust_factor=attributes["adjust_factor"], scaler=attributes["init"], count=0, total_resets=0)

    def step(state, w, x):
        function = jaxamp.dynamic_scale_grad(total) if grad else jaxamp.dynamic_scale_value_and_grad(total, redo_on_nan=0)
        state, results = function(w, x, dynamic_scaler_state=state)
        return state, results if grad else results[1], (state.scaler, state.count, state.total_resets)

    return step, state


SEQUENCES = [name for name, case in CASES.items() if "variant" in case["attrs"]]
KINDS = sorted({(CASES[name]["attrs"]["variant"], name.rsplit(".p", 1)[1]) for name in SEQUENCES})


@pytest.mark.parametrize("variant, parameters", KINDS)
def test_sequences_of_the_reference_data(variant, parameters):
    """finite, overflow, burst, always: 30 steps each. The states are exact, except for scales of Flax that are multiplied by 1.5 and by 2 / 3:
    versions of XLA round 2 / 3 * 100 in two ways, each factor adds a rounding."""
    names = [name for name in SEQUENCES if CASES[name]["attrs"]["variant"] == variant and name.endswith(".p" + parameters)]
    step, first = golden_step(CASES[names[0]])
    w, x = (ARRAYS[entry["key"]] for entry in CASES[names[0]]["inputs"][::-1])
    library = scalide.build(scalide.jax.trace(step, first, w, x[0]))
    for name in names:
        w, x = (ARRAYS[entry["key"]] for entry in CASES[name]["inputs"][::-1])
        rows, gradients = (ARRAYS[entry["key"]] for entry in CASES[name]["outputs"])
        state = jax.tree_util.tree_map(np.asarray, first)
        for i, (row, gradient) in enumerate(zip(rows, gradients)):
            state, got, values = library(state, w, x[i])
            assert [float(value) for value in values[1:]] == list(row[1:]), f"{name}, step {i}"
            np.testing.assert_allclose(values[0], row[0], rtol=4e-6 if variant == "flax" and "f1.5" in parameters else 0, err_msg=f"{name}, step {i}")
            np.testing.assert_allclose(got, gradient, rtol=1e-6, err_msg=f"{name}, step {i}")
    assert len(names) == 4


@pytest.mark.parametrize("x", [3.0, 30.0, 100.0])
def test_cubic_of_the_reference_data(x):
    """x ** 3 in f16 overflows at large scales: the scale goes from 2^15 to where the gradient is finite."""
    case = CASES[f"jaxamp.cubic_f16.redo0.x{x}"]
    state = jaxamp.DynamicScalerState(patience=10, adjust_factor=2.0, scaler=2.0**15, count=0, total_resets=0)
    x = ARRAYS[case["inputs"][0]["key"]]

    def step(state, x):
        state, (value, gradient) = jaxamp.dynamic_scale_value_and_grad(lambda x: x**3, redo_on_nan=0)(x, dynamic_scaler_state=state)
        return state, value, gradient

    library = scalide.build(scalide.jax.trace(step, state, jnp.asarray(x)))
    state = jax.tree_util.tree_map(np.asarray, state)
    for i, row in enumerate(ARRAYS[case["outputs"][0]["key"]]):
        state, value, gradient = library(state, x)
        assert [float(state.scaler), float(state.count), float(state.total_resets)] == list(row[:3]), f"step {i}"
        np.testing.assert_allclose([value, gradient], row[3:], rtol=2e-3, err_msg=f"step {i}")


@pytest.mark.parametrize("minimum", ["None", "1.0", "0.0009765625"])
def test_minimum_of_the_reference_data(minimum):
    case = CASES[f"flax.minimum.{minimum}"]
    state = DynamicScale(growth_interval=2, scale=4.0, minimum_scale=case["attrs"]["minimum_scale"])

    def step(state, x):
        state, finite, _, _ = state.value_and_grad(lambda x: x * x)(x)
        return state, (state.scale, state.fin_steps, finite)

    library = scalide.build(scalide.jax.trace(step, state, np.float32(1)))
    state = jax.tree_util.tree_map(np.asarray, state)
    for i, row in enumerate(ARRAYS[case["outputs"][0]["key"]]):
        state, values = library(state, np.float32(1 if row[2] else np.inf))
        assert [float(value) for value in values] == list(row), f"step {i}"
