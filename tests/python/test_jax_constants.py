"""Constant arguments of traced functions: trace(constant_argnums=...), Library.prepare, jitted functions, messages."""
import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scalide
from scalide.jax import call, trace

random = np.random.default_rng(0)
PARAMS = {"w1": random.standard_normal((64, 32)).astype("f"), "b1": random.standard_normal(32).astype("f"), "w2": random.standard_normal((32, 8)).astype("f")}
X = random.standard_normal((4, 64)).astype("f")


def predict(params, x):
    return {"scores": jax.nn.relu(x @ params["w1"] + params["b1"]) @ params["w2"]}


@pytest.fixture(scope="module")
def library():
    return scalide.build(trace(predict, PARAMS, X, symbolic=(None, "b, ..."), constant_argnums=0), numerics="bf16")


@pytest.mark.parametrize("numerics", ["f32", "bf16", "f8_master"])
def test_prepared_arrays_have_the_bits_of_inputs(numerics):
    plain = scalide.build(trace(predict, PARAMS, X), numerics=numerics)
    constant = scalide.build(trace(predict, PARAMS, X, constant_argnames="params"), numerics=numerics)
    expected = plain(PARAMS, X)["scores"]
    np.testing.assert_array_equal(constant.prepare(PARAMS)(X)["scores"], expected)
    np.testing.assert_array_equal(constant(PARAMS, X)["scores"], expected)


def test_jitted_functions_keep_the_prepared_arrays(library):
    first, second = library.prepare(PARAMS), library.prepare(jax.tree_util.tree_map(lambda w: jnp.asarray(2 * w), PARAMS))
    doubled = {name: 2 * array for name, array in PARAMS.items()}
    for rows in (4, 1):
        x = jnp.asarray(X[:rows])
        for prepared, params in ((first, PARAMS), (second, doubled)):
            expected = library(params, X[:rows])["scores"]
            np.testing.assert_array_equal(prepared(x)["scores"], expected)
            np.testing.assert_array_equal(jax.jit(call(prepared))(x)["scores"], expected)
            np.testing.assert_array_equal(jax.vmap(call(prepared))(x[:, None])["scores"][:, 0], jnp.concatenate([library(params, row[None])["scores"] for row in X[:rows]]))


def test_a_jitted_function_whose_constants_are_gone_fails():
    prepared = scalide.build(trace(lambda w, x: x * w, np.ones(3, "f"), np.ones(3, "f"), constant_argnums=0)).prepare(np.full(3, 2, "f"))
    compiled = jax.jit(call(prepared)).lower(jnp.ones(3)).compile()
    np.testing.assert_array_equal(compiled(jnp.ones(3)), np.full(3, 2))
    del prepared
    gc.collect()
    with pytest.raises(Exception, match="or its prepared constants are gone. Keep the library that prepare returned, or trace the function again"):
        compiled(jnp.ones(3))


def test_closed_over_arrays_are_constant():
    bias = random.standard_normal(8).astype("f")
    program = trace(lambda params, x, *, scale: predict(params, x)["scores"] * scale["by"] + bias, PARAMS, X, scale={"by": np.float32(3)},
                    constant_argnums=-2, constant_argnames=["scale"])  # fmt: skip
    assert [spec.constant for spec in program.inputs] == [True, True, True, False, True, True]
    library = scalide.build(program)
    np.testing.assert_array_equal(library.prepare(PARAMS, scale={"by": np.float32(3)})(X), library(PARAMS, X, scale={"by": np.float32(3)}))
    alone = trace(lambda x: x + bias, X[0, :8], constant_argnums=())
    assert [spec.constant for spec in alone.inputs] == [False, True]
    np.testing.assert_array_equal(scalide.build(alone).prepare()(X[0, :8]), X[0, :8] + bias)


def test_programs_keep_the_role(tmp_path):
    program = trace(predict, PARAMS, X, constant_argnums=0)
    program.save(tmp_path / "p.scl")
    for again in (scalide.Program.load(tmp_path / "p.scl"), program.numerics("bf16")):
        library = scalide.build(again)
        np.testing.assert_array_equal(library.prepare(PARAMS)(X)["scores"], library(PARAMS, X)["scores"])
    assert [spec.constant and spec.scaled for spec in program.scalify().inputs] == [True, True, True, False]
    loss = trace(lambda params, x: predict(params, x)["scores"].sum(), PARAMS, X, constant_argnums=0)
    gradient = scalide.build(loss.grad(1))
    np.testing.assert_array_equal(gradient.prepare(PARAMS)(X), gradient(PARAMS, X))


@pytest.mark.parametrize("make, message", [
    (lambda library: trace(predict, PARAMS, X, constant_argnames="parms"), "constant_argnames: unknown argument 'parms'. Did you mean 'params'?"),
    (lambda library: trace(predict, PARAMS, X, constant_argnums=(0, 2)), "constant_argnums: must be indices of the 2 positional arguments, from 0, got 2"),
    (lambda library: trace(lambda a, b: a + b, X, X, constant_argnums=0, donate_argnums=0), "argument 'a' cannot be both donated and constant. Remove it from one of the lists"),
    (lambda library: trace(lambda a, b: a + b, X, 1, constant_argnames="b", static_argnums=1),
     "argument 'b' cannot be both static and constant. A static argument is part of the program already"),
    (lambda library: library.prepare(X), "predict: args[0]: must have the keys ['b1', 'w1', 'w2'], got ndarray"),
    (lambda library: library.prepare(PARAMS, X), "predict: the number of constant arguments by position must be 1, got 2"),
    (lambda library: library.prepare({**PARAMS, "b1": X}), "predict.params.b1: rank must be 1, got 2. Pass an array of shape [32]."),
    (lambda library: library.prepare({**PARAMS, "b1": PARAMS["b1"].astype("f2")}),
     "predict.params.b1: dtype must be f32, got f16. Convert the array, or build the program with another policy."),
    (lambda library: library.prepare(PARAMS)(PARAMS, X), "predict: the number of arguments that are not constant by position must be 1, got 2"),
    (lambda library: library.prepare(PARAMS)(X, scale=2), "predict: the arguments that are not constant by keyword must be [], got ['scale']"),
    (lambda library: call(library.prepare(PARAMS), library), "scalide.jax.call: 'gradient' cannot be used with a prepared library (predict). Pass the libraries before prepare."),
])  # fmt: skip
def test_wrong_constants_are_refused(library, make, message):
    with pytest.raises((TypeError, ValueError)) as raised:
        make(library)
    assert str(raised.value) == message
