"""The interface of jax_scalify: scalide.jax as jsa. Meanings as in Scalify, where README.md does not say otherwise."""
import functools
import re
import warnings

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from test_library import error_of

import scalide
import scalide.jax as jsa
from scalide.jax import core, lax, ops


def scaled(values, scale, dtype=np.float16):
    return jsa.as_scaled_array(np.asarray(values, np.float32), np.float32(scale)).astype(dtype)


def value(array):
    return np.asarray(jsa.asarray(array, np.float32))


# --- ScaledArrays and arrays


def test_scales_are_finite_and_not_negative():
    for scale in (np.float32(-1), -0.5, jnp.float32(-2)):
        with pytest.raises(ValueError, match=r"ScaledArray.scale: must not be negative, got -[\d.]+. The sign belongs to the data."):
            jsa.ScaledArray(np.ones(2, np.float16), scale)
    assert jax.jit(lambda scale: jsa.ScaledArray(jnp.ones(2), scale).to_array())(-1.0)[0] == -1  # not known yet
    for scale in (np.float32(np.nan), np.inf, jnp.float32(np.inf), np.float64(1e39)):
        with pytest.raises(ValueError, match=r"ScaledArray.scale: must be finite in f32, got [\w.+]+. Put infinities and NaN into the data."):
            jsa.ScaledArray(np.ones(2, np.float16), scale)
    for data in (np.ones(2, np.float16), jnp.ones(2), np.ones(2, ml_dtypes.float8_e4m3fn)):
        with pytest.warns(UserWarning, match="ScaledArray.scale: is 0, so the value of the array is 0, but the data is not."):
            jsa.ScaledArray(data, np.float32(0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jsa.ScaledArray(np.zeros(2, np.float16), 0), jax.jit(lambda data: jsa.ScaledArray(data, np.float32(0)).to_array())(np.ones(2))


def test_a_scaled_function_overflows_as_its_dtype():
    """As in JAX and scalide.build. A policy with scales avoids the overflow."""
    x, w = (jsa.ScaledArray(np.full(shape, 1000, np.float16), np.float32(1)) for shape in ((4, 64), (64, 8)))
    for f in (lambda x, w: x @ w, lambda x, w: (x.astype(jnp.float32) @ w.astype(jnp.float32)).astype(jnp.float16)):
        assert np.isinf(jsa.scalify(f)(x, w).data).all() and np.isinf(jax.jit(f)(x.data, w.data)).all()
        np.testing.assert_allclose(value(jsa.scalify(f, numerics="f16_scaled")(x, w)), 6.4e7, rtol=2.0**-11)
    large = np.full(4, 1e6, np.float32)
    program = jsa.trace(lambda x: ops.cast_on_forward(x, np.float16), large)
    assert np.isinf(scalide.build(program, numerics="f8_master")(large)).all()


def test_scaled_array_has_the_properties_of_its_data():
    array = jsa.ScaledArray(np.array([1, 2], np.float16), np.float32(4))
    assert (array.dtype, array.shape, array.size, array.ndim) == (np.float16, (2,), 2, 1)
    assert array.aval.shape == (2,) and array.aval.dtype == np.float16
    np.testing.assert_array_equal(array.to_array(), np.array([4, 8], np.float16))
    assert array.to_array(np.int32).dtype == np.int32 and np.asarray(array, np.float32).dtype == np.float32
    cast = array.astype(ml_dtypes.float8_e4m3fn)
    assert cast.dtype == ml_dtypes.float8_e4m3fn and cast.scale == 4
    assert "must be a scalar, got the shape (1,)" in error_of(jsa.ScaledArray, np.ones(2), np.ones(1))
    assert error_of(jsa.ScaledArray, "x", 1).startswith("TypeError: ScaledArray.data: must be an array, got str")
    large = jsa.ScaledArray(np.array([0, 2**-15], np.float16), np.float32(2.0**19))  # inf and NaN if it were cast first
    np.testing.assert_array_equal(large.to_array(), np.array([0, 16], np.float16))


def test_errors_name_both_ways_out():
    """A ScaledArray rejects operators, indexing, array methods, jax.numpy, and numpy.asarray of a traced array."""
    for array in (scaled([1, 2], 2), jsa.as_scaled_array(jnp.ones(2), np.float32(2))):
        uses = [lambda: array[0], lambda: array + 1, lambda: 1 - array, lambda: array @ array, lambda: -array, lambda: array < 1, lambda: len(array), lambda: bool(array),
                lambda: float(array), lambda: list(array), lambda: jnp.ones(2) * array, lambda: jnp.sin(array), lambda: jnp.asarray(array), lambda: array.sum(),
                lambda: array.reshape(1, 2), lambda: array.T, lambda: jax.jit(np.asarray)(array), lambda: array.__setitem__(0, 1)]  # fmt: skip
        for use in uses:
            words = error_of(use)
            assert words.startswith(("TypeError: a ScaledArray cannot be used with ", "AttributeError: a ScaledArray cannot be used with ")), words
            assert "to_array()" in words and "scalide.jax.scalify(function)" in words
        np.testing.assert_array_equal(np.asarray(array), array.to_array())  # NumPy takes the value
        assert error_of(lambda: array.shap) == "AttributeError: 'ScaledArray' object has no attribute 'shap'"
        assert not hasattr(array, "sum") and array == array and array != 3


def test_as_scaled_array():
    array = scaled([1, 2], 2)
    counter, flag = np.arange(3), np.array(True)
    tree = {"a": array, "b": (counter, flag, 3, True), "c": np.array([4, 8], np.float16), "d": 5.0}
    made = jsa.as_scaled_array(tree)
    assert made["a"] is array and made["b"][0] is counter and made["b"][1] is flag and made["b"][2:] == (3, True)
    assert made["c"].data is tree["c"] and made["c"].scale == 1 and made["c"].scale.dtype == np.float16
    assert (made["d"].data, made["d"].scale) == (1.25, 4)
    for given, expected in ((np.array([4, 8], np.float16), np.ndarray), (jnp.array([4, 8], jnp.float16), jax.Array)):
        for scale in (np.float32(4), 4, 4.0):
            made = jsa.as_scaled_array(given, scale)
            assert isinstance(made.data, expected) and made.dtype == np.float16 and made.scale.dtype == np.float32
            np.testing.assert_array_equal(made.data, [1, 2])
    made = jax.jit(lambda x: jsa.as_scaled_array(x, 4))(np.array([4, 8], np.float16))
    np.testing.assert_array_equal(made.data, [1, 2])


def test_asarray_and_scaled_array():
    tree = [scaled([1, 2], 4), np.arange(2), jnp.ones(2, jnp.float16)]
    back = jsa.asarray(tree)
    assert [leaf.dtype for leaf in back] == [np.float16, np.int64, np.float16]
    assert all(leaf.dtype == np.float32 for leaf in jsa.asarray(tree, np.float32))
    made = jsa.scaled_array([1, 2], 3.0, np.float16, np)
    assert made.dtype == np.float16 and made.scale == 3 and isinstance(made.data, np.ndarray)


def test_tree_functions_take_scaled_arrays_as_leaves():
    tree = {"w": scaled([1, 2], 2), "n": np.arange(2), "x": np.ones(2, np.float32)}
    leaves, structure = jsa.tree.flatten(tree)
    assert len(leaves) == 3 and leaves == jsa.tree.leaves(tree) and structure == jsa.tree.structure(tree)
    assert jsa.tree.unflatten(structure, leaves)["w"] is tree["w"]
    assert [leaf.dtype for leaf in jsa.tree.leaves(jsa.tree.astype(tree, np.float16))] == [np.float16] * 3
    assert jsa.tree.astype(tree, np.float16, floating_only=True)["n"].dtype == np.int64
    assert jsa.tree.map(lambda a, b: a.shape == b.shape, tree, tree) == {"w": True, "n": True, "x": True}
    assert jsa.tree.all({"a": np.array([True]), "b": [True]}) and not jsa.tree.all([True, {"c": np.array([True, False])}])
    assert [core.is_scaled_leaf(v) for v in (tree["w"], np.ones(2), jnp.ones(2), 3, [1], {"a": 1})] == [True, True, True, True, False, False]
    assert jax.tree_util.tree_map(lambda x: x * 2, tree["w"]).scale == 4  # a pytree of two leaves to JAX


# --- powers of two


@pytest.mark.parametrize("api", [np, jnp])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_powers_of_two(api, dtype):
    values = api.asarray(np.array([1, 3, -448, 0.75, 0, np.inf, -np.inf, np.nan, 4], dtype))
    inf = np.inf
    np.testing.assert_array_equal(core.pow2_round_down(values), np.array([1, 2, 256, 0.5, 0, inf, inf, inf, 4], dtype))
    np.testing.assert_array_equal(core.pow2_round_up(values), np.array([1, 4, 512, 1, 0, inf, inf, inf, 4], dtype))
    np.testing.assert_array_equal(core.pow2_round(values, jsa.Pow2RoundMode.NEAREST), np.array([1, 4, 512, 1, 0, inf, inf, inf, 4], dtype))
    np.testing.assert_array_equal(core.pow2_round(values, jsa.Pow2RoundMode.NONE), values)
    np.testing.assert_array_equal(core.get_mantissa(values), np.array([1, 1.5, -1.75, 1.5, 0, np.inf, -np.inf, np.nan, 1], dtype))
    scale, mantissa = core.pow2_decompose(values, np.float32)
    assert scale.dtype == np.float32 and mantissa.dtype == dtype
    np.testing.assert_array_equal(scale, [1, 2, 256, 0.5, 0, np.inf, np.inf, np.inf, 4])
    assert "STOCHASTIC" in error_of(core.pow2_round, values, jsa.Pow2RoundMode.STOCHASTIC)


def test_scaled_scalars():
    for number, data, scale in ((5.0, 1.25, 4), (0.0, 0, 0), (-0.375, -1.5, 0.25), (np.inf, np.inf, np.inf), (np.float16(6e-8), 1, 2**-24)):
        made = core.make_scaled_scalar(number)
        assert (float(made.data), float(made.scale)) == (data, scale) and made.scale.dtype == made.data.dtype
    assert core.make_scaled_scalar(np.float16(3), np.float32).scale.dtype == np.float32
    with jsa.ScalifyConfig(scale_dtype=np.float32):
        assert core.make_scaled_scalar(np.float16(3)).scale.dtype == np.float32
    subnormal = core.make_scaled_scalar(np.float32(2.0**-140))
    assert float(subnormal.data) * 2.0**-126 == 2.0**-140 and subnormal.scale == 2.0**-126


def test_static_questions():
    assert core.is_static_one_scalar(1) and core.is_static_one_scalar(np.float16(1)) and not core.is_static_one_scalar(jnp.ones(()))
    np.testing.assert_array_equal(core.is_static_zero(np.array([0, 1])), [True, False])
    np.testing.assert_array_equal(core.is_static_zero(scaled([0, 1], 1)), [True, False])
    np.testing.assert_array_equal(core.is_static_anyscale(np.array([0, 1, np.inf])), [True, False, True])
    assert not core.is_static_zero(jnp.zeros(2)).any()
    assert core.get_scale_dtype(scaled([1], 1)) == np.float32 and core.get_scale_dtype(np.ones(2, np.float16)) == np.float16
    np.testing.assert_array_equal(core.safe_div(np.float32([1, 2]), np.float32([0, 4])), [0, 0.5])
    np.testing.assert_array_equal(core.safe_reciprocal(jnp.array([0.0, 4])), [0, 0.25])


# --- scalify


def test_plain_arguments_give_what_jax_gives():
    fn = jsa.scalify(lambda a, b: jnp.sin(a) @ b)
    a, b = np.linspace(0, 1, 6, dtype=np.float32).reshape(2, 3), np.ones((3, 2), np.float32)
    for call in (fn, jax.jit(fn)):
        result = call(a, b)
        assert isinstance(result, jax.Array)
        np.testing.assert_array_equal(result, jnp.sin(a) @ b)


def test_scaled_arguments_give_scaled_results():
    fn = jsa.scalify(lambda a, b: {"sum": a + b, "less": a < b, "index": jnp.argmax(a), "plain": jnp.ones(2, jnp.float16)})
    a, b = scaled([1, 2], 2), scaled([3, 1], 4)
    for call in (fn, jax.jit(fn)):
        result = call(a, b)
        assert isinstance(result["sum"], jsa.ScaledArray) and result["sum"].scale == 4
        np.testing.assert_array_equal(value(result["sum"]), [4, 3])
        np.testing.assert_array_equal(result["less"], [True, False])
        assert result["less"].dtype == bool and result["index"].dtype == jnp.int32 and result["index"] == 1
        np.testing.assert_array_equal(result["plain"], [1, 1])


def test_scales_can_be_anything():
    fn = jsa.scalify(lambda x, w: jax.nn.softmax(jnp.tanh(x @ w)))
    random = np.random.RandomState(0)
    x, w = random.randn(4, 8).astype(np.float32), random.randn(8, 3).astype(np.float32)
    expected = jax.nn.softmax(jnp.tanh(x @ w))
    for scale in (2.0**-40, 1, 2.0**40):
        np.testing.assert_allclose(value(fn(scaled(x, scale, np.float32), scaled(w, 1 / scale, np.float32))), expected, rtol=1e-5)


def test_infinite_literals_have_no_scale():
    """logsumexp begins its maximum at -inf, which is no reason to store it with another scale, in f16 neither."""
    for dtype in (np.float32, np.float16):
        x = jsa.as_scaled_array(np.random.RandomState(42).rand(10).astype(dtype), np.float32(4))
        result = jsa.scalify(jax.scipy.special.logsumexp)(x)
        assert result.scale == 4
        np.testing.assert_allclose(value(result), jax.scipy.special.logsumexp(value(x)), rtol=1e-3)


def test_rounding_modes():
    fn = jsa.scalify(lambda a, b: a + b)
    a, b = scaled([1, 2], 2), scaled([3, 6], 4)
    for mode, scale in ((jsa.Pow2RoundMode.DOWN, 4), (jsa.Pow2RoundMode.UP, 8), (jsa.Pow2RoundMode.NONE, np.float32(20**0.5)), (jsa.Pow2RoundMode.NEAREST, 4)):
        with jsa.ScalifyConfig(rounding_mode=mode):
            assert core.get_scalify_config().rounding_mode == mode
            result = fn(a, b)
        np.testing.assert_allclose(result.scale, scale, rtol=1e-6)
        np.testing.assert_allclose(value(result), [4, 8], rtol=1e-3)
    assert core.get_scalify_config().rounding_mode == jsa.Pow2RoundMode.DOWN


def test_keyword_static_and_nested():
    inner = jsa.scalify(lambda x, *, factor: x * factor)

    @functools.partial(jsa.scalify, static_argnums=1, static_argnames="flip")
    def fn(x, power, *, params, flip=False):
        made = inner(x, factor=params["w"]) ** power
        return -made if flip else made

    x, w = scaled([1, 2], 2), scaled([3, 4], 0.5)
    np.testing.assert_array_equal(value(fn(x, 2, params={"w": w})), [9, 64])
    np.testing.assert_array_equal(value(fn(x, 1, params={"w": w}, flip=True)), [-3, -8])
    np.testing.assert_array_equal(value(jax.jit(lambda x: fn(x, 1, params={"w": w}))(x)), [3, 8])


def test_gradients_inside():
    def loss(w, x):
        return jnp.mean(jnp.square(jnp.tanh(x @ w)))

    random = np.random.RandomState(0)
    w, x = random.randn(8, 3).astype(np.float32), random.randn(4, 8).astype(np.float32)
    expected = jax.value_and_grad(loss)(w, x)
    got = jax.jit(jsa.scalify(jax.value_and_grad(loss)))(scaled(w, 2, np.float32), scaled(x, 0.5, np.float32))
    np.testing.assert_allclose(value(got[0]), expected[0], rtol=1e-5)
    np.testing.assert_allclose(value(got[1]), expected[1], rtol=1e-4, atol=1e-6)
    assert isinstance(got[1], jsa.ScaledArray)


def test_gradients_of_scalified_functions():
    """Like scalify(jax.grad(fn)): with static arguments, auxiliary results, unscaled arguments, two uses, in jit."""

    def loss(params, x, power=2, sign="+"):
        total = jnp.mean(jnp.tanh(x @ params["w"] + params["b"]) ** power)
        return total if sign == "+" else -total, {"x": x}

    random = np.random.RandomState(0)
    params, x = {"w": random.randn(8, 3).astype(np.float32), "b": random.randn(3).astype(np.float32)}, random.randn(4, 8).astype(np.float32)
    given, batch = {"w": scaled(params["w"], 2, np.float32), "b": params["b"]}, scaled(x, 0.5, np.float32)
    fn = jsa.scalify(loss, static_argnums=2, static_argnames="sign")
    (want, _), gradient = jax.value_and_grad(loss, has_aux=True)(params, x, 4, sign="-")
    for of in (fn, jax.jit(fn, static_argnums=2, static_argnames="sign")):
        (got, aux), made = jsa.value_and_grad(of, has_aux=True)(given, batch, 4, sign="-")
        np.testing.assert_allclose(value(got), want, rtol=1e-5)
        assert isinstance(made["w"], jsa.ScaledArray) and made["w"].dtype == np.float32 and isinstance(aux["x"], jsa.ScaledArray)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), jsa.asarray(made), gradient)

    def twice(params, x):
        return jsa.asarray(fn(params, x)[0]) + 3 * fn(params, batch)[0]

    @functools.wraps(fn)
    def other(params, x):
        return twice(params, x)

    want = jax.grad(lambda params, x: loss(params, x)[0], argnums=(0, 1))(params, x)
    for of in (twice, other):
        got = jax.jit(jsa.grad(of, argnums=(0, 1)))(given, batch)
        np.testing.assert_allclose(value(got[0]["w"]), 4 * want[0]["w"], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(value(got[1]), want[1], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(jsa.grad(lambda p, x: fn(p, x)[0])(params, x)["w"], want[0]["w"], rtol=1e-4, atol=1e-6)  # plain in, plain out
    narrow = jsa.grad(jsa.scalify(lambda w: jnp.sum(w.astype(jnp.float32) ** 2)))(scaled([1, 2], 2**20))
    assert narrow.dtype == np.float16 and value(narrow).tolist() == [2, 4]
    assert "scalide.jax.grad(fn) instead of jax.grad(fn)" in error_of(jax.grad(lambda p, x: fn(p, x)[0].data), given, batch)


# --- operators on scales


def deep_network(depth=12, width=64):
    """The loss of a deep network with its gradients, parameters, and data."""
    random = np.random.RandomState(0)
    draw = lambda *shape, deviation=1.0: (random.randn(*shape) * deviation).astype(np.float32)
    parameters = [draw(width, width, deviation=(2 / width) ** 0.5) for _ in range(depth)]

    def loss(parameters, x, y):
        for w in parameters[:-1]:
            x = jax.nn.relu(x @ w)
        return jnp.mean((x @ parameters[-1] - y) ** 2)

    return jax.value_and_grad(loss), (parameters, draw(32, width), draw(32, width))


@pytest.mark.parametrize("numerics", ["f16_master", "f16_scaled", "f8_master", "f8_scaled", "mxfp8"])
def test_a_policy_holds_for_data_in_f16(numerics):
    step, plain = deep_network()
    loss, gradients = step(*plain)
    stored = jsa.tree.astype(jsa.as_scaled_array(plain, scale=np.float32(1)), np.float16)
    got, got_gradients = jsa.scalify(step, numerics=numerics)(*stored)
    assert abs(value(got) / loss - 1) < (0.01 if "16" in numerics else 0.05)
    for right, given in zip(gradients, got_gradients):
        assert np.linalg.norm(value(given) - right) < (0.1 if "16" in numerics else 0.6) * np.linalg.norm(right)


def test_data_in_f16_without_scales_of_its_own_is_a_warning():
    step, plain = deep_network()
    stored = jsa.tree.astype(jsa.as_scaled_array(plain, scale=np.float32(1)), np.float16)
    words = r"loss: scales may become 2\^\d+ times larger than the data, but the smallest normal number of float16 is 2\^-14.*numerics=\"f16_scaled\""
    with pytest.warns(UserWarning, match="scalify: " + words):
        jsa.scalify(step)(*stored)
    with pytest.raises(ValueError, match="scalify: numerics='bf16' gives no array a scale. " + words):
        jsa.scalify(step, numerics="bf16")(*stored)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        jsa.scalify(step, numerics="f16_master")(*stored)
        jsa.scalify(step)(*jsa.as_scaled_array(plain, scale=np.float32(1)))  # f32 has the range
        few, arguments = deep_network(depth=2)
        jsa.scalify(few)(*jsa.tree.astype(jsa.as_scaled_array(arguments, scale=np.float32(1)), np.float16))


def test_operators_on_scales_outside_and_inside_of_scalify():
    x = scaled([1, 2], 2)
    for run in (lambda f: f, jsa.scalify, lambda f: jax.jit(jsa.scalify(f))):
        assert run(lambda v: lax.set_scaling(v, np.float32(0.5)))(x).scale == 0.5
        assert run(lambda v: lax.rebalance(v, 4))(x).scale == 8
        np.testing.assert_array_equal(value(run(lambda v: lax.rebalance(v, 4))(x)), [1, 2])
        stopped = run(lambda v: lax.stop_scaling(v, np.float32))(x)
        assert isinstance(stopped, jax.Array) and stopped.dtype == np.float32
        data, scale = run(lax.get_data_scale)(x)
        np.testing.assert_array_equal(data, [0.5, 1])
        assert scale == 2
    started = jsa.scalify(lambda v: lax.set_scaling(v, np.float32(4)))(np.array([1, 2], np.float16))
    assert isinstance(started, jsa.ScaledArray) and started.scale == 4
    zero = lax.set_scaling(x, np.float32(0))
    assert not np.any(zero.data) and zero.scale == 0


def test_operators_on_scales_do_nothing_in_plain_functions():
    x = np.array([1, 2], np.float16)
    for op in (ops.dynamic_rescale_max, ops.dynamic_rescale_l1, ops.dynamic_rescale_l2, ops.dynamic_rescale_max_grad, lambda v: lax.rebalance(v, 2),
               lambda v: lax.set_scaling(v, np.float32(2)), lax.stop_scaling):
        assert op(x) is x
        np.testing.assert_array_equal(jax.jit(op)(x), x)
        np.testing.assert_array_equal(jax.grad(lambda v: jnp.sum(op(v)))(jnp.asarray(x)), [1, 1])
        np.testing.assert_array_equal(jax.vmap(op)(jnp.asarray(x)), x)
    assert lax.get_data_scale(x)[1] == 1
    np.testing.assert_array_equal(jax.jit(lax.get_data_scale)(x)[0], x)


@pytest.mark.parametrize("norm, of", [("max", lambda v: np.max(abs(v))), ("l1", lambda v: np.mean(abs(v))), ("l2", lambda v: np.sqrt(np.mean(v**2)))])
def test_dynamic_rescale(norm, of):
    rescale, rescale_grad = getattr(ops, f"dynamic_rescale_{norm}"), getattr(ops, f"dynamic_rescale_{norm}_grad")
    numbers = np.random.RandomState(0).randn(64).astype(np.float32) * 100
    x = scaled(numbers, 4, np.float32)
    for result in (rescale(x), jsa.scalify(rescale)(x), jax.jit(jsa.scalify(rescale))(x)):
        assert 1 <= of(np.asarray(result.data)) < 2
        np.testing.assert_array_equal(value(result), numbers)
    gradient = jsa.scalify(jax.grad(lambda v: jnp.sum(rescale_grad(v) ** 3)))(x)
    assert 1 <= of(np.asarray(gradient.data)) < 2
    np.testing.assert_allclose(value(gradient), 3 * numbers**2, rtol=1e-5)
    assert not np.any(rescale(scaled([0, 0], 2)).data)


def test_casts_in_one_direction():
    f8 = ml_dtypes.float8_e4m3fn
    x = scaled([17, 19], 2, np.float32)
    np.testing.assert_array_equal(value(ops.reduce_precision_on_forward(x, f8)), [16, 20])
    np.testing.assert_array_equal(value(jsa.scalify(lambda v: ops.reduce_precision_on_forward(v, f8))(x)), [16, 20])
    np.testing.assert_array_equal(ops.reduce_precision_on_forward(jnp.float32([17, 19]), f8), [16, 20])
    assert ops.cast_on_forward(x, f8).dtype == f8
    first_name = jsa.scalify(lambda v: ops.cast_ml_dtype(v, f8))(x)  # as in the first versions of Scalify
    np.testing.assert_array_equal(first_name.data, np.float32([8, 10]))
    assert first_name.scale == 2 and first_name.dtype == np.float32
    # Forward casts act under grad too, unlike Scalify's; the cotangent is that of the identity.
    square = jax.grad(lambda v: jnp.sum(ops.reduce_precision_on_forward(v, f8) ** 2))
    np.testing.assert_array_equal(square(jnp.float32([17, 19])), [32, 40])
    np.testing.assert_array_equal(value(jsa.scalify(square)(x)), [32, 40])
    back = jax.grad(lambda v: jnp.sum(ops.reduce_precision_on_backward(v, f8) * jnp.float32([17, 19])))
    np.testing.assert_array_equal(back(jnp.ones(2)), [16, 20])
    np.testing.assert_array_equal(value(jsa.scalify(back)(x)), [16, 20])
    back = jax.grad(lambda v: jnp.sum(ops.cast_ml_dtype_grad(v, f8) * jnp.float32([17, 19])))
    np.testing.assert_array_equal(back(jnp.ones(2)), [16, 20])
    back = jax.grad(lambda v: jnp.sum(ops.cast_on_backward(v, f8) * jnp.float32([17, 19])))
    np.testing.assert_array_equal(back(jnp.ones(2)), [16, 20])


def test_debug_callback_in_plain_functions(capsys):
    seen = []
    jax.jit(lambda x: jsa.debug_callback(lambda v: seen.append(np.asarray(v)), x))(np.float32([1, 2]))
    jax.effects_barrier()
    np.testing.assert_array_equal(seen, [[1, 2]])
    ops.debug_print("x is {}", np.float32(3))
    jax.effects_barrier()
    assert "x is 3.0" in capsys.readouterr().out


def test_debug_callback_in_scalified_functions():
    seen = []

    def loss(x):
        jsa.debug_callback(lambda v: seen.append(("value", v)), 2 * x)
        (x,) = ops.debug_callback_grad(lambda ct: seen.append(("cotangent", ct)), x)
        return jnp.sum(jax.nn.relu(x) ** 2)

    fn = jsa.scalify(jax.grad(loss))
    for call in (fn, jax.jit(fn)):
        seen.clear()
        np.testing.assert_array_equal(value(call(scaled([1, 2], 2))), [2, 4])
        jax.effects_barrier()
        assert sorted(kind for kind, _ in seen) == ["cotangent", "value"]
        for kind, array in seen:
            assert isinstance(array, jsa.ScaledArray)
            np.testing.assert_array_equal(array.to_array(np.float32), [2, 4])


def test_debug_print_in_scalified_functions(capsys):
    def double(x):
        jax.debug.print("x is {} {y} here", x, y=2 * x)
        jax.debug.print("words alone")
        return 2 * x

    for call in (jsa.scalify(double), jax.jit(jsa.scalify(double))):
        np.testing.assert_array_equal(value(call(scaled([1, 2], 4))), [2, 4])
        jax.effects_barrier()
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 2 and lines[1] == "words alone"
        assert re.fullmatch(r"x is ScaledArray\(.*\) ScaledArray\(.*scale=.*8.*\) here", lines[0]), lines[0]
