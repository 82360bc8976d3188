"""Delayed scaling (policy f8_delayed): histories, scales and the values that are rounded with them, step by step, against NumPy."""
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import jax
import jax.numpy as jnp
import scalide
from scalide.jax import trace

LENGTH, E4M3, E5M2 = 1024, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2


class Tensor:
    """The state of one tensor, by the formulas of Transformer Engine and Flax."""

    def __init__(self, dtype):
        self.dtype, self.largest = dtype, np.float32(ml_dtypes.finfo(dtype).max)
        self.history, self.scale = np.zeros(LENGTH, np.float32), np.float32(1)

    def rounded(self, x):
        with np.errstate(invalid="ignore"):
            return np.clip(x / self.scale, -self.largest, self.largest).astype(self.dtype).astype(np.float32) * self.scale

    def update(self, x):
        self.history = np.roll(self.history, -1)
        self.history[0] = amax if np.isfinite(amax := np.abs(x).max()) else 0
        amax = self.history.max()
        if amax > 0 and np.isfinite(amax):
            with np.errstate(over="ignore"):
                self.scale = max(np.float32(1) / (self.largest / amax), np.float32(2.0**-126))


@pytest.fixture(scope="module")
def product():
    text = "program product(x: f32[m, k], w: f32[k, n]) -> (y: f32[m, n]) {\n  y = dot(x, w)\n}\n"
    return scalide.build(scalide.Program(text), numerics="f8_delayed")


def draw(seed, size, *shape):
    return (np.random.default_rng(seed).normal(size=shape) * size).astype(np.float32)


SIZES = {"growing": [1, 3, 10, 200], "shrinking": [300, 1, 1e-3, 1e-5], "zero": [0, 1, 0, 2], "tiny": [1e-40, 1e-40, 1, 1]}


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_state_and_values_follow_the_formulas(product, sizes):
    x_state, w_state, state = Tensor(E4M3), Tensor(E4M3), product.init()
    assert set(state) == {"x.amax_history", "x.scale", "w.amax_history", "w.scale"}
    for step, size in enumerate(sizes):
        x, w = draw(step, size, 8, 24), draw(step + 9, 0.1, 24, 5)
        y, state = product(x, w, state)
        expected = x_state.rounded(x).astype(np.float64) @ w_state.rounded(w).astype(np.float64)
        terms = np.abs(x_state.rounded(x)).astype(np.float64) @ np.abs(w_state.rounded(w)).astype(np.float64)
        # Only the sum is rounded otherwise: 24 terms and two factors in f32. Results below 2^-126 may become 0.
        np.testing.assert_array_less(np.abs(y - expected), 30 * 2.0**-24 * terms + 2.0**-126)
        for tensor, values, name in [(x_state, x, "x"), (w_state, w, "w")]:
            tensor.update(values)
            np.testing.assert_array_equal(state[f"{name}.amax_history"], tensor.history)
            assert state[f"{name}.scale"] == tensor.scale


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
def test_an_amax_that_is_not_finite_has_no_part_in_later_scales(product, number):
    """The history of Flax would keep the infinity, and with it the scale, for 1024 runs."""
    x, w, state = draw(0, 1, 4, 8), draw(1, 1, 8, 3), product.init()
    _, state = product(x, w, state)
    before, spoilt = state["x.scale"], x.copy()
    spoilt[0, 0] = number
    y, state = product(spoilt, w, state)
    assert not np.isfinite(y).all(), "an infinity is not hidden"
    np.testing.assert_array_equal(state["x.amax_history"], [0, *[0] * (LENGTH - 2), np.abs(x).max()])
    assert state["x.scale"] == before
    problems = {row.tensor: row.problem for row in product.check(spoilt, w, state).misfits}
    assert problems == {"x": "does not follow this run: the tensor has an infinity or a NaN, so its amax is not finite"}
    _, state = product(8 * x, w, state)
    assert state["x.scale"] == 8 * before
    assert product.check(x, w, state).misfits == ()


def test_scale_of_the_smallest_numbers_is_not_zero(product):
    """Flax would divide by a scale of 0 in the second step."""
    state = product.init()
    x, w = np.full((2, 8), 1e-45, np.float32), np.ones((8, 2), np.float32)
    for _ in range(2):
        y, state = product(x, w, state)
        assert np.isfinite(y).all()
    assert state["x.scale"] == np.float32(2.0**-126)


def loss(params, x, y):
    hidden = jax.nn.relu(x @ params["w1"])
    return jnp.mean(jnp.square(hidden @ params["w2"] - y))


def sgd(params, x, y):
    value, gradients = jax.value_and_grad(loss)(params, x, y)
    return value, jax.tree_util.tree_map(lambda p, g: p - 0.05 * g, params, gradients)


@pytest.fixture(scope="module")
def training():
    params = {"w1": draw(0, 0.3, 12, 32), "w2": draw(1, 0.3, 32, 4)}
    x, y = draw(2, 1, 16, 12), draw(3, 1, 16, 4)
    return scalide.build(trace(sgd, params, x, y, donate_argnums=0), numerics="f8_delayed"), params, x, y


def test_each_tensor_has_one_history(training):
    """Six tensors: x, w1, hidden, w2 and two gradients. x, w2 and hidden are each read by two matmuls."""
    library = training[0]
    histories = [name for name in library.init() if name.endswith(".amax_history")]
    assert len(histories) == 6 and {"params.w1.amax_history", "params.w2.amax_history", "x.amax_history"} < set(histories)


def test_a_training_follows_f32(training):
    """The loss falls by 97 % in f32. With e4m3 and e5m2 in 32 neurons it ends within 1 % of the first loss."""
    library, params, x, y = training
    first = float(loss(params, x, y))
    reference, state, step = params, library.init(), jax.jit(sgd)
    for _ in range(100):
        (value, params), state = library(params, x, y, state)
        exact, reference = step(reference, x, y)
    assert float(value) == pytest.approx(float(exact), abs=0.01 * first)


def copied(tree):
    return jax.tree.map(np.array, tree)


@pytest.mark.parametrize("as_arrays", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
def test_init_of_a_batch_has_its_scales(training, as_arrays):
    """The next run changes no scale by more than a rounding error, and no argument is modified. The arrays of init() are not used up."""
    library, params, x, y = training
    given = jax.tree.map(as_arrays, (params, x, y))
    before = copied(given)
    state = library.init(*given)
    assert jax.tree.all(jax.tree.map(lambda a, b: (np.asarray(a) == b).all(), given, before))
    assert {name: (array.shape, array.dtype) for name, array in state.items()} == {name: (array.shape, array.dtype) for name, array in library.init().items()}
    _, after = library(*given, state)
    for name, array in state.items():
        if name.endswith(".scale"):
            assert array != 1 and abs(after[name] / array - 1) < 0.25, name
        else:
            assert array[0] > 0 and not array[1:].any(), "the amax of another scale does not stay"
    for name, array in {"x": x, "params.w1": params["w1"], "params.w2": params["w2"]}.items():
        assert state[f"{name}.amax_history"][0] == np.abs(array).max() and state[f"{name}.scale"] == np.float32(1) / (np.float32(448) / np.abs(array).max())
    again = library.init(*jax.tree.map(np.asarray, given))
    assert all(again[name].tobytes() == array.tobytes() for name, array in state.items())


def test_init_of_a_batch_finds_tiny_gradients(training):
    """With the scale 1 all gradients round to 0 in the first step, so no parameter moves. Fitted scales give the update of larger gradients."""
    library, params, x, y = training

    def small(params, x, y):
        value, gradients = jax.value_and_grad(lambda params: 2.0**-30 * loss(params, x, y))(params)
        return value, jax.tree.map(lambda p, g: p - 0.05 * 2.0**30 * g, params, gradients)

    tiny = scalide.build(trace(small, params, x, y, donate_argnums=0), numerics="f8_delayed")
    first, fitted = (tiny(params, x, y, state)[0][1]["w1"] for state in (tiny.init(), tiny.init(params, x, y)))
    assert (first == params["w1"]).all()
    expected = library(params, x, y, library.init(params, x, y))[0][1]["w1"]
    assert np.abs(fitted - expected).max() < 0.1 * np.abs(expected - params["w1"]).max()


def test_init_of_a_deep_chain_needs_more_runs_than_layers():
    """Each layer makes its input 1000 times larger: with the scale 1, the next layer sees a number that is limited."""
    layers = "\n".join(f"  y{i + 1} = dot(y{i}, w)" for i in range(6))
    library = scalide.build(scalide.Program(f"program deep(y0: f32[4, 4], w: f32[4, 4]) -> (y: f32[4, 4] = y6) {{\n{layers}\n}}\n"), numerics="f8_delayed")
    y0, w = np.full((4, 4), 1, np.float32), np.full((4, 4), 250, np.float32)
    state = library.init(y0, w)
    for i in range(6):
        assert state[f"y{i}.amax_history"][0] == pytest.approx(1000.0**i, rel=0.1 * i)
    assert library(y0, w, state)[0][0, 0] == pytest.approx(1000.0**6, rel=0.3)


def test_init_of_a_batch_takes_the_arguments_of_a_call(product, training, tmp_path):
    x, w = draw(0, 1, 8, 24), draw(1, 1, 24, 5)
    plain = scalide.Library(product.path)  # without its program, state arrays are ordinary arguments of a call
    states = [product.init(x, w), plain.init(x, w), plain.init(x, w=w), product.init(x.astype(np.float64), w.tolist())]
    assert all(state[name].tobytes() == array.tobytes() for state in states for name, array in states[0].items())
    for library in (product, plain):
        for wrong in ((x,), (x, w, x), (x, w[1:]), (x.astype(np.float16), w), (x, "w"), (x, scalide.ScaledArray(w, 1))):
            with pytest.raises((TypeError, ValueError)) as of_init:
                library.init(*wrong)
            with pytest.raises(type(of_init.value)):
                library(*wrong, *((library.init(),) if library is product else library.init().values()))
    with pytest.raises(TypeError, match=r"missing argument 'w'\. The arguments are x, w\."):
        plain.init(x)
    closed = scalide.Library(product.path)
    closed.close()
    with pytest.raises(ValueError, match="is closed"):
        closed.init(x, w)
    assert scalide.build(trace(lambda x: x + 1, x), numerics="f8_delayed").init(x) == {}


def test_init_of_a_batch_of_a_prepared_library():
    x, w = draw(0, 1, 8, 24), draw(1, 1, 24, 5)
    library = scalide.build(trace(lambda w, x: x @ w, w, x, constant_argnums=0), numerics="f8_delayed")
    state, prepared = library.init(w, x), library.prepare(w).init(x)
    assert set(state) == set(prepared) and all(prepared[name].tobytes() == array.tobytes() for name, array in state.items())
    assert state["x.scale"] != 1


def test_init_of_a_batch_with_scaled_arrays_and_random_rounding():
    """State that is no scale keeps its first value: the number of the step is 0 in the first call of a training."""
    x, w = draw(0, 1, 32, 32), {"w": draw(1, 1, 32, 32)}
    library = scalide.build(trace(lambda w, x: jax.tree.map(lambda w: w + 1e-3 * (x @ w), w), w, x, donate_argnums=0), numerics="f16_scaled")
    w = library.convert(w)
    before = copied(w)
    assert library.init(w, x) == {"rounding_step": 0}
    assert (w["w"].data == before["w"].data).all() and w["w"].scale == before["w"].scale


def test_resuming_gives_the_same_bits(training, tmp_path):
    library, params, x, y = training
    state = library.init()
    for i in range(20):
        if i == 9:
            scalide.save(tmp_path / "state.safetensors", {**params, **state})
        (value, params), state = library(params, x, y, state)
    kept = scalide.load(tmp_path / "state.safetensors")
    again, state = {name: kept[name] for name in params}, {name: kept[name] for name in state}
    for _ in range(9, 20):
        (resumed, again), state = library(again, x, y, state)
    assert resumed == value
    for name in params:
        assert again[name].tobytes() == params[name].tobytes()


def test_moved_forms_of_a_tensor_share_its_history():
    text = """program turned(x: f32[8, 6], w: f32[6, 4]) -> (y: f32[8, 4], z: f32[6, 6]) {
  y = dot(x, w)
  t = transpose(x) {permutation: [1, 0]}
  z = dot(t, x)
}
"""
    library = scalide.build(scalide.Program(text), numerics="f8_delayed")
    assert set(library.init()) == {"x.amax_history", "x.scale", "w.amax_history", "w.scale"}


def test_a_library_without_its_state_says_so(product):
    with pytest.raises(TypeError, match=r"the last argument must be the state of policy f8_delayed, a dict of x\.amax_history, x\.scale"):
        product(draw(0, 1, 2, 8), draw(1, 1, 8, 2))


@pytest.mark.parametrize("as_arrays", [np.asarray, jnp.asarray], ids=["numpy", "jax"])
@pytest.mark.parametrize("change, error, message", [
    ({"x.amax_history": np.zeros(16, np.float32)}, ValueError, r"x\.amax_history: extent 0 must be 1024, got 16\. Pass an array of shape \[1024\]"),
    ({"x.amax_history": np.zeros((1024, 1), np.float32)}, ValueError, r"x\.amax_history: rank must be 1, got 2"),
    ({"x.scale": np.ones(1, np.float32)}, ValueError, r"x\.scale: rank must be 0, got 1"),
    ({"x.amax_history": np.zeros(1024, np.float16)}, (TypeError, ValueError), r"x\.amax_history: dtype must be f32, got f(loat)?16"),
    ({"x.amax_history": None}, TypeError, r"state of policy f8_delayed: missing array 'x\.amax_history'\. Pass the state that library\.init\(\)"),
    ({"x.scale": None, "x.scala": np.float32(1)}, TypeError, r"unknown array 'x\.scala'\. Did you mean 'x\.scale'\?"),
    ({"extra": np.float32(1)}, TypeError, r"unknown array 'extra'\. There are: x\.amax_history"),
], ids=["length", "rank", "scale", "dtype", "missing", "misspelt", "extra"])  # fmt: skip
def test_wrong_state_is_one_error_that_names_the_array(product, as_arrays, change, error, message):
    state = {name: array for name, array in {**product.init(), **change}.items() if array is not None}
    with pytest.raises(error, match=message):
        product(as_arrays(draw(0, 1, 2, 8)), draw(1, 1, 8, 2), {name: as_arrays(array) for name, array in state.items()})


def test_state_of_many_arrays_is_named_in_short():
    layers = "\n".join(f"  y{i} = dot(y{i - 1}, w)" if i else "  y0 = dot(x, w)" for i in range(6))
    program = scalide.Program(f"program deep(x: f32[4, 4], w: f32[4, 4]) -> (y: f32[4, 4] = y5) {{\n{layers}\n}}\n")
    with pytest.raises(TypeError, match=r"a dict of x\.amax_history, x\.scale, w\.amax_history, w\.scale, \.\.\. \(14 arrays\), got a dict of 1 other entries"):
        scalide.build(program, numerics="f8_delayed")(draw(0, 1, 4, 4), draw(1, 1, 4, 4), {"epoch": 3})


def test_a_policy_without_state_takes_none():
    x = draw(0, 1, 4, 4)
    library = scalide.build(trace(lambda x: x + 1, x), numerics="f8_delayed")
    assert library.init() == {}
    with pytest.raises(TypeError, match=r"policy f8_delayed keeps no state, so a call must not have one, got an empty dict\. Leave it out"):
        library(x, {})


def test_microbatches_share_the_state_of_a_scope(tmp_path):
    """With `per: scope` the inputs of a layer have one history and one scale, merged by max over the microbatches."""
    text = """program step(x0: f32[8, 24], x1: f32[8, 24], w: f32[24, 5]) -> (y0: f32[8, 5], y1: f32[8, 5]) {
  scope "layer" {
    y0 = dot(x0, w)
    y1 = dot(x1, w)
  }
}
"""
    built_in = Path(__file__).parents[2] / "rules/policies/f8_delayed.yaml"
    policy = tmp_path / "shared.yaml"
    policy.write_text(built_in.read_text().replace("per: tensor", "per: scope"))
    step = scalide.build(scalide.Program(text), numerics=policy)
    x_state, w_state, state = Tensor(E4M3), Tensor(E4M3), step.init()
    assert set(state) == {"x0.amax_history", "x0.scale", "w.amax_history", "w.scale"}
    for i, (first, second) in enumerate([(1, 3), (200, 2), (0, 1e-4), (0, 0)]):
        xs, w = (draw(i, first, 8, 24), draw(i + 9, second, 8, 24)), draw(i + 18, 0.1, 24, 5)
        ys, state = step(*xs, w, state)
        for x, y in zip(xs, ys):
            expected = x_state.rounded(x).astype(np.float64) @ w_state.rounded(w).astype(np.float64)
            terms = np.abs(x_state.rounded(x)).astype(np.float64) @ np.abs(w_state.rounded(w)).astype(np.float64)
            np.testing.assert_array_less(np.abs(y - expected), 30 * 2.0**-24 * terms + 2.0**-126)
        x_state.update(np.stack(xs))
        w_state.update(w)
        np.testing.assert_array_equal(state["x0.amax_history"], x_state.history)
        assert state["x0.scale"] == x_state.scale and state["w.scale"] == w_state.scale
