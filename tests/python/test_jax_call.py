"""scalide.jax.call: libraries in jitted functions."""
import concurrent.futures

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_library import DTYPES, SCALED, STEP, TINY, bits_of, error_of, step_arrays, tiny_numbers

import scalide
from scalide import Library, ScaledArray
from scalide.jax import call, trace, vjp
from scalide.jax.call import Operation


def test_runs_in_jit_with_other_operations(libraries):
    step = call(Library(libraries(STEP)))
    x, w, rate = map(jnp.asarray, step_arrays())

    @jax.jit
    def twice(x, w, rate):
        first = step(x * 2, w, rate=rate)
        second = step(x, first.w, rate)
        return first.y + second.y, second.w, w

    y, w2, unchanged = twice(x, w, rate)
    np.testing.assert_array_equal(y, 2.5 * (x @ w))
    np.testing.assert_array_equal(w2, w / 4)
    np.testing.assert_array_equal(unchanged, w)
    np.testing.assert_array_equal(step(x, w, 0.5).y, x @ w)  # without jit too
    np.testing.assert_array_equal(jax.jit(lambda x: step(x, w, rate).y)(jnp.zeros((0, 4))), jnp.zeros(0))


def test_passes_every_dtype_and_scales(libraries):
    arrays = [jnp.array([1, -2, 0], d) for d in (jnp.float16, jnp.bfloat16, jnp.float8_e4m3fn, jnp.int32, jnp.bool_)]
    for given, result in zip(arrays, jax.jit(call(Library(libraries(DTYPES))))(*arrays)):
        assert result.dtype == given.dtype
        np.testing.assert_array_equal(np.asarray(result, np.float32), np.asarray(~given if given.dtype == bool else -given, np.float32))
    x, w = ScaledArray(jnp.array([1, 2], jnp.float16), 4), ScaledArray(jnp.array([3, 5], jnp.float16), jnp.float16(0.5))
    result = jax.jit(call(Library(libraries(SCALED))))(x, w)
    np.testing.assert_array_equal(np.asarray(result.y), [6, 20])
    np.testing.assert_array_equal(np.asarray(result.w), [3, 5])


def test_gives_the_bits_that_numpy_arrays_get(libraries):
    tiny, x = Library(libraries(TINY)), tiny_numbers()
    expected = bits_of(tiny(x))
    assert np.count_nonzero(tiny(x).y) == x.size
    given = jnp.asarray(x)
    for result in (tiny(given), call(tiny)(given), jax.jit(call(tiny))(given), jax.jit(lambda x: tiny(x))(given)):
        assert bits_of(result) == expected


def test_tells_of_jax_arrays_what_is_not_finite(libraries):
    scaled, x = Library(libraries(SCALED)), ScaledArray(jnp.array([1, 2], jnp.float16), 4)
    large = ScaledArray(jnp.array([60000, 5], jnp.float16), jnp.float32(1))
    assert scaled.first_non_finite(x, x) is None
    assert scaled.first_non_finite(x, ScaledArray(large.data * 2, large.scale)) is not None


def test_says_what_is_wrong(libraries):
    step = jax.jit(call(Library(libraries(STEP))))
    x, w, rate = map(jnp.asarray, step_arrays())
    assert error_of(step, x.astype(jnp.float16), w, rate) == (
        "TypeError: step.x: dtype must be f32, got float16. Convert the array, or build the program with another policy.")
    assert error_of(step, x[0], w, rate) == "ValueError: step.x: rank must be 2, got 1. Pass an array of shape [b, 4]."
    assert error_of(step, x, ScaledArray(w, 1), rate) == "TypeError: step.w: must be a plain array, got a ScaledArray. Use its to_array()."
    wrong = error_of(jax.jit(lambda: jnp.asarray(step(x, w[:3], rate).y)))
    assert "step.w: extent 0 must be 4, got 3" in wrong


def test_differentiates_with_a_generated_gradient():
    def fn(params, x, labels):
        logits = jnp.tanh(x @ params["w"] + params["b"])
        return jnp.sum(logits**2, 1), logits[:, 0] * labels

    params = {"w": jnp.linspace(-1, 1, 12).reshape(4, 3), "b": jnp.ones(3)}
    x, labels = jnp.linspace(0, 1, 8).reshape(2, 4), jnp.array([1, 2], jnp.int32)
    forward = scalide.build(trace(fn, params, x, labels))
    backward = scalide.build(trace(vjp(fn), jax.eval_shape(fn, params, x, labels), params, x, labels))
    generated = call(forward, backward)

    def loss(f, params, x):
        a, b = f(params, x, labels)
        return jnp.sum(a * 3) + jnp.sum(b**2)

    for of in (jax.grad, lambda f, **k: jax.jit(jax.grad(f, **k), static_argnums=0)):
        expected, got = (of(loss, argnums=(1, 2))(f, params, x) for f in (fn, generated))
        jax.tree_util.tree_map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), got, expected)


def test_says_that_there_is_no_gradient(libraries):
    step = call(Library(libraries(STEP)))
    x, w, rate = map(jnp.asarray, step_arrays())
    assert error_of(jax.grad(lambda x: jnp.sum(step(x, w, rate).y)), x).startswith(
        "TypeError: library 'step' has no gradient. Build one with scalide.jax.vjp and pass it: ")


def test_library_takes_the_trees_of_its_function(tmp_path):
    """NumPy ScaledArrays in dicts; the same from files, without JAX."""

    def fn(params, x):
        return {"y": x @ params["w"], "w": params["w"] * 2}

    params, x = {"w": ScaledArray(np.full((4, 2), 3, np.float16), 2)}, np.ones((3, 4), np.float16)
    program = trace(fn, params, x)
    library = scalide.build(program, output=tmp_path)
    program.save(tmp_path / "fn.scl")
    again = Library(library.path, scalide.Program.load(tmp_path / "fn.scl"))
    for result in (library(params, x), again(params, x), jax.jit(library)(params, x)):
        assert result["y"].shape == (3, 2) and isinstance(result["w"], ScaledArray)
        np.testing.assert_array_equal(np.asarray(result["y"]), np.full((3, 2), 24))
        np.testing.assert_array_equal(np.asarray(result["w"]), np.full((4, 2), 12))
    assert isinstance(again(params, x)["w"].data, np.ndarray)
    assert error_of(library, {"v": params["w"]}, x).startswith("TypeError: ")


def test_many_threads_of_jitted_calls(libraries):
    step = jax.jit(call(Library(libraries(STEP))))

    def work(batch):
        x, w, rate = map(jnp.asarray, step_arrays(batch))
        return all(np.array_equal(step(x, w, rate).y, x @ w) for _ in range(50))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, [1, 2, 3, 4]))


def test_vmaps_one_after_the_other(libraries):
    if not hasattr(jax, "ffi"):
        pytest.skip("the FFI of this JAX has no vmap")
    step = call(Library(libraries(STEP)))
    x, w, rate = map(jnp.asarray, step_arrays())
    rates = jnp.array([0.0, 0.5, 1.0])
    np.testing.assert_array_equal(jax.vmap(lambda r: step(x, w, r).w)(rates), w * (1 - rates[:, None]))


def test_compiled_function_of_another_process(libraries):
    """JAX's cache on disk may hold functions whose libraries are not loaded."""
    operation = Operation(Library(libraries(STEP)))
    operation.key = np.int64(12345)
    x, w, rate = map(jnp.asarray, step_arrays())
    assert "the library of this compiled function is not loaded in this process" in error_of(
        lambda: jax.block_until_ready(jax.jit(operation.run)([x, w, rate])))
