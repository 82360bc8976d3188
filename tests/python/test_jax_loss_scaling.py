"""Loss scalers on a float16 model: a policy must not hide an overflow from the program, which reads is_finite."""
import itertools
import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from conftest import slow_unless
from flax.training.dynamic_scale import DynamicScale

import scalide
import scalide.jax

POLICIES = ("f32", "bf16", "amp_f16", "amp_bf16", "f16_master", "f16_scaled", "f8_master", "f8_current", "f8_scaled", "f8_delayed", "f8_row", "f8_block", "mxfp8", "f8_calibrate")
STEPS, PERIOD = 301, 10
LOOSE = {"f32": 0.01, "f8_calibrate": 0.01, "bf16": 0.02, "f16_master": 0.02, "amp_f16": 0.02, "amp_bf16": 0.02, "f16_scaled": 0.03}  # relative, of the last loss; others: 0.3
draw = np.random.RandomState(0)
PARAMS = {"w1": draw.randn(16, 32).astype(np.float32) / 4, "w2": draw.randn(32, 4).astype(np.float32) / 6}
X = draw.randn(8, 16).astype(np.float32)
Y = np.tanh(X[:, :4])


def half(array):
    return array.astype(jnp.float16)


def loss(params, x, y):
    error = jnp.tanh(half(x) @ half(params["w1"])) @ half(params["w2"]) - half(y)
    return jnp.mean(error.astype(jnp.float32) ** 2)


def updated(params, gradients, finite):
    return jax.tree.map(lambda w, g: jnp.where(finite, w - 0.02 * g, w), params, gradients)


def flax_step(params, state, x, y):
    """Flax: the scale doubles after PERIOD finite steps, and halves after a step that is not finite."""
    state, finite, value, gradients = state.value_and_grad(loss)(params, x, y)
    return updated(params, gradients, finite), state, value, finite


def plain_step(params, state, x, y):
    """jmp and most own scalers: the gradients of a loss times a scale, in the float16 of the model, then all of is_finite."""
    scale, counter = state
    value, gradients = jax.value_and_grad(lambda params: loss(params, x, y) * scale)(params)
    gradients = jax.tree.map(lambda g: half(g).astype(jnp.float32) / scale, gradients)
    finite = jnp.stack([jnp.isfinite(g).all() for g in jax.tree.leaves(gradients)]).all()
    grows = counter == PERIOD - 1
    after = jnp.where(finite, jnp.where(grows, 2 * scale, scale), jnp.maximum(scale / 2, 1))
    return updated(params, gradients, finite), (after, jnp.where(finite & ~grows, counter + 1, 0)), value / scale, finite


OPTIMIZER = optax.apply_if_finite(optax.sgd(0.02), 1000)


def optax_step(params, state, x, y):
    """apply_if_finite under a scale that grows on its own and starts again at 2^14."""
    counter, state = state
    scale = jnp.exp2(14 + (counter // PERIOD) % 12).astype(jnp.float32)
    value, gradients = jax.value_and_grad(lambda params: loss(params, x, y) * scale)(params)
    updates, state = OPTIMIZER.update(jax.tree.map(lambda g: g / scale, gradients), state, params)
    return optax.apply_updates(params, updates), (counter + 1, state), value / scale, state.last_finite


SCALERS = {
    "flax": (flax_step, DynamicScale(growth_interval=PERIOD, scale=jnp.float32(2.0**14))),
    "plain": (plain_step, (np.float32(2.0**14), np.int32(0))),
    "optax": (optax_step, (np.int32(0), OPTIMIZER.init(PARAMS))),
}


def train(step, state, first=None):
    """The number of skipped steps, the number after which the first was skipped, and the last finite loss."""
    params, skipped, value = PARAMS, [], np.nan
    own = first
    for i in range(STEPS):
        if first is None:
            params, state, now, finite = step(params, state, X, Y)
        else:
            (params, state, now, finite), own = step(params, state, X, Y, own)
        if finite:
            value = float(now)
        else:
            skipped.append(i)
    return skipped, value


@pytest.fixture(scope="module")
def expected():
    return {name: train(jax.jit(step), state) for name, (step, state) in SCALERS.items()}


@pytest.mark.parametrize("scaler, policy", slow_unless(lambda scaler, policy: scaler == "plain" or policy in ("f32", "f16_master"), itertools.product(SCALERS, POLICIES)))
def test_scaler_skips_the_steps_of_jax(scaler, policy, expected):
    step, state = SCALERS[scaler]
    state = jax.tree.map(np.asarray, state)
    library = scalide.build(scalide.jax.trace(step, PARAMS, state, X, Y), numerics=policy)
    check_skips(library, state, expected[scaler], LOOSE.get(policy, 0.3))


def check_skips(library, state, wanted, tolerance):
    skipped, value = train(library, state, library.init() or None)
    want, least = wanted
    assert len(want) > 5 and abs(len(skipped) - len(want)) <= 2 + len(want) // 10
    assert abs(skipped[0] - want[0]) <= PERIOD  # the first overflow is found at the scale at which JAX finds it, or one doubling away
    np.testing.assert_allclose(value, least, rtol=tolerance)


def test_static_scales_of_a_calibration_skip_the_steps_of_jax(expected, tmp_path):
    """Calibrated in the same training. The amaxes of steps that overflow are not kept: they are infinite."""
    step, state = SCALERS["flax"]
    state = jax.tree.map(np.asarray, state)
    program = scalide.jax.trace(step, PARAMS, state, X, Y)
    calibrate = scalide.build(program, numerics="f8_calibrate")
    params, scaler, amax, spoilt = PARAMS, state, calibrate.init(), 0
    for _ in range(STEPS):
        (params, scaler, _, finite), after = calibrate(params, scaler, X, Y, amax)
        spoilt += not finite and not all(np.isfinite(number) for number in after.values())
        amax = after if finite else amax
    assert spoilt > 5
    lines = [f"  {json.dumps(name.removesuffix('.amax'))}: {float(number)!r}" for name, number in amax.items()]
    (tmp_path / "step.amax.yaml").write_text("\n".join([f"program: {program.name}", "amax:", *lines]) + "\n")
    (tmp_path / "static.yaml").write_text("policy: static\nextends: f8_static\ncalibration: step.amax.yaml\n")
    check_skips(scalide.build(program, numerics=tmp_path / "static.yaml"), state, expected["flax"], 0.3)


@pytest.mark.parametrize("policy", (*POLICIES, "f8_weights"))
def test_overflow_is_not_hidden(policy):
    """The norm of a gradient that overflows in float16: infinity, not a number that is 100 times too small."""

    def norm(w, x, scale):
        gradient = jax.grad(lambda w: scale * jnp.mean((half(x) @ half(w)).astype(jnp.float32) ** 2))(w) / scale
        return jnp.isfinite(gradient).all(), jnp.sqrt(jnp.sum(gradient * gradient))

    w, x = np.full((16, 8), 0.1, np.float32), np.ones((4, 16), np.float32)
    library = scalide.build(scalide.jax.trace(norm, w, x, np.float32(1)), numerics=policy)
    w = library.convert(w)  # a ScaledArray under f8_weights
    run = (lambda *given: library(*given, library.init(*given))[0]) if library.init() else library
    assert not run(w, x, np.float32(2.0**24))[0]
    finite, value = run(w, x, np.float32(1))
    assert finite and abs(value - 4.524376) < 0.3


def test_conversions_of_the_program_do_not_saturate():
    program = scalide.jax.trace(lambda x: (half(x), half(x).astype(jnp.float32), jnp.sum(half(x)), half(x) * half(x)), np.ones(4, np.float32))
    x = np.float32([1e5, -1e5, 300, 60000])
    with np.errstate(all="ignore"):
        want = jax.jit(lambda x: (half(x), half(x).astype(jnp.float32), jnp.sum(half(x)), half(x) * half(x)))(x)
    for policy in (*POLICIES, "f8_weights"):
        for got, expected in zip(scalide.build(program, numerics=policy)(x), want):
            np.testing.assert_array_equal(np.asarray(got), np.asarray(expected), policy)


def test_a_late_scale_does_not_hide_an_overflow():
    """Under f8_delayed the first scale is 1, so the policy saturates. The product overflows in float16 before that, as in JAX."""
    a, w = np.full((4, 16), 1000, np.float16), np.full((16, 8), 1e-3, np.float16)

    def f(a, w):
        return jnp.isfinite((a * a) @ w).all()

    library = scalide.build(scalide.jax.trace(f, a, w), numerics="f8_delayed")
    assert not jax.jit(f)(a, w) and not library(a, w, library.init())[0]
    assert "is_finite depends on 2 arrays that the policy may saturate" in library.summary
    assert "is_finite" not in scalide.build(scalide.jax.trace(f, a, w), numerics="f8_master").summary


@pytest.mark.parametrize("numerics", ["f32", "bf16", "f16_master", "f16_scaled", "f8_master"])
def test_a_product_in_f16_overflows(numerics):
    """A product of f16 numbers that only is_finite reads is stored by no kernel, but it overflows as f16."""
    x = np.float32([1.5, -0.5])
    program = scalide.jax.trace(lambda x: jnp.isfinite(x.astype(jnp.float16) * jnp.float16(60000)), x)
    np.testing.assert_array_equal(scalide.build(program, numerics=numerics)(x), [False, True])
