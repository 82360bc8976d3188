"""State that a policy adds: how it is begun, handed on, forgotten, saved, and what depends on it."""
import numpy as np
import pytest

import jax
import jax.numpy as jnp
import scalide
from scalide import ScaledArray
from scalide.jax import call, trace

TEXT = """program decay(w: f32[m, n] inout, rate: f32[]) -> (w = kept) {
  kept = mul(w, rate)
}
"""


def weights(seed=0):
    """Of one power of two, so that a scale that a run chooses is that of the start."""
    data = np.random.default_rng(seed).uniform(20000, 32000, (32, 16)).astype(np.float16)
    return ScaledArray(data, np.float32(2.0**-14))


def at(step):
    return {"rounding_step": np.uint32(step)}


@pytest.fixture(scope="module")
def flat(tmp_path_factory):
    folder = tmp_path_factory.mktemp("decay")
    return scalide.build(scalide.Program(TEXT), numerics="f16_scaled", output=folder)


@pytest.fixture(scope="module")
def traced():
    def step(w, bias, x):
        return w * x, bias * x, jnp.sum(bias)

    w, bias = np.ones((32, 16), np.float32), np.ones(16, np.float32)
    return scalide.build(trace(step, w, bias, np.float32(1), donate_argnums=(0, 1)), numerics="f16_scaled")


def same(a, b):
    return a.data.tobytes() == b.data.tobytes() and float(a.scale) == float(b.scale)


def test_is_an_argument_behind_those_of_the_program(flat):
    assert [(a.name, a.dtype, a.rank, a.role) for a in flat.arguments] == [
        ("w", "f16", 2, "inout"), ("rate", "f32", 0, "input"), ("rounding_step", "u32", 0, "state")]  # fmt: skip
    assert {name: (value.dtype, value.shape, int(value)) for name, value in flat.init().items()} == {"rounding_step": (np.uint32, (), 0)}
    result = scalide.Library(flat.path)(weights(), 1.0, **flat.init())
    assert same(result.w, weights()) and int(result.rounding_step) == 1, "what is of the format stays"


def test_of_a_traced_step_it_is_one_more_tree(traced):
    state = traced.init()
    (w, bias, total), state = traced(weights(), np.ones(16, np.float32), 0.5, state)
    assert w.dtype == np.float16 and bias.dtype == np.float32, "fewer than 256 elements keep their format"
    assert total == 16 and int(state["rounding_step"]) == 1


def test_who_forgets_it_is_told(flat, traced):
    with pytest.raises(TypeError, match=r"step: the last argument must be the state of policy f16_scaled, a dict of rounding_step, got float\. "
                                        r"Start with state = library\.init\(\)"):  # fmt: skip
        traced(weights(), np.ones(16, np.float32), 0.5)
    with pytest.raises(TypeError, match="the number of arrays must be 3, got 2"):
        scalide.Library(flat.path)(weights(), 1.0)


def test_the_same_state_gives_the_same_bits(flat):
    alone = scalide.Library(flat.path, flat.program, threads=1)
    first, state = flat(weights(), 0.9999, at(7))
    assert state == at(8)
    assert same(first, flat(weights(), 0.9999, at(7))[0])
    assert same(first, alone(weights(), 0.9999, at(7))[0]), "for every number of threads"
    assert not same(first, flat(weights(), 0.9999, at(8))[0])


def test_a_run_that_resumes_goes_on_with_the_same_bits(flat, tmp_path):
    w, state = weights(), flat.init()
    for i in range(20):
        if i == 10:
            kept = ScaledArray(w.data.copy(), np.float32(w.scale)), dict(state)
        w, state = flat(w, 0.999, state)
    resumed, state = kept
    for _ in range(10):
        resumed, state = flat(resumed, 0.999, state)
    assert same(w, resumed)


def test_each_element_and_each_step_round_for_themselves(flat):
    """The mean of 2,000 steps that multiply by .9999 is that of f32; 512 equal elements part."""
    w, state = ScaledArray(np.full((32, 16), 20000, np.float16), np.float32(2.0**-14)), flat.init()
    for _ in range(2000):
        w, state = flat(w, 0.9999, state)
    values = w.data.astype(np.float64) * float(w.scale)
    expected = 20000 * 2.0**-14 * float(np.float32(0.9999)) ** 2000
    # A step's rounding has a deviation of at most half a unit, 2^-12 of the element: sqrt(2000) * 2^-12 of an element, /sqrt(512) of the mean.
    assert values.mean() == pytest.approx(expected, rel=4 * np.sqrt(2000 / 512) * 2.0**-12)
    assert len(np.unique(values)) > 20


def test_what_is_not_zero_stays_so(flat):
    tiny = np.full((32, 16), 2.0**-24, np.float16)
    tiny[0, 0], tiny[0, 1] = 20000, 0
    w, state = ScaledArray(tiny, np.float32(1)), flat.init()
    for _ in range(50):
        w, state = flat(w, 0.5, state)
    assert (w.data[1:] != 0).all() and w.data[0, 1] == 0


def test_goes_through_jit_and_scan(traced):
    step = call(traced)

    @jax.jit
    def run(w, bias, state):
        def body(carry, x):
            (w, bias, total), state = step(*carry[:2], x, carry[2])
            return (w, bias, state), total

        return jax.lax.scan(body, (w, bias, state), jnp.full(5, 0.75, jnp.float32))

    start = ScaledArray(jnp.asarray(weights().data), jnp.float32(weights().scale))
    (w, _, state), totals = run(start, jnp.ones(16), jax.tree.map(jnp.asarray, traced.init()))
    other, bias, kept = weights(), np.ones(16, np.float32), traced.init()
    for _ in range(5):
        (other, bias, _), kept = traced(other, bias, 0.75, kept)
    assert int(state["rounding_step"]) == 5 and totals.shape == (5,)
    np.testing.assert_array_equal(np.asarray(w.data), other.data)


def test_is_not_there_where_nothing_needs_it(tmp_path):
    small = scalide.build(scalide.Program("program p(w: f32[8] inout) -> (w = v) {\n  v = mul(w, 0.5)\n}\n"), numerics="f16_scaled", output=tmp_path)
    assert small.init() == {} and [a.role for a in small.arguments] == ["inout"]
