"""Tests Library.convert: parameters of any dtype in the formats of a library, and back. `scalide convert` gives the same bits."""
import collections
from subprocess import run

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from test_library import error_of

import scalide
from scalide import ScaledArray
from scalide.tool_process import tool_path
from scalide.jax import trace

DRAW = np.random.default_rng(3)
#: Under f16_scaled, arrays with fewer than 256 elements stay f32.
W = {"a": DRAW.normal(size=(16, 32)).astype(np.float32) * 1e-6, "b": [DRAW.normal(size=(32, 16)).astype(np.float32), np.zeros(16, np.float32)]}
X = DRAW.normal(size=(32, 16)).astype(np.float32)


def step(w, n, x, *, rate):
    value, gradient = jax.value_and_grad(lambda w: jnp.mean(jnp.square(jnp.tanh(x @ w["a"]) @ w["b"][0] + w["b"][1])))(w)
    return jax.tree.map(lambda p, g: p - rate * g, w, gradient), n + 1, value


def is_scaled(leaf):
    return isinstance(leaf, ScaledArray)


@pytest.fixture(scope="module")
def program():
    return trace(step, W, np.int32(0), X, rate=0.1, donate_argnums=(0, 1))


@pytest.fixture(scope="module")
def library(program):
    return scalide.build(program, numerics="f16_scaled")


def test_convert_gives_what_a_call_takes(library):
    params = library.convert(W)
    assert [(is_scaled(leaf), leaf.dtype) for leaf in jax.tree.leaves(params, is_leaf=is_scaled)] == [(True, np.float16)] * 2 + [(False, np.float32)]
    (params, _, _), _ = library(params, np.int32(0), X, library.init(), rate=0.1)
    back = library.convert(params, to="f32")
    assert jax.tree.structure(back) == jax.tree.structure(W) and all(leaf.dtype == np.float32 for leaf in jax.tree.leaves(back))
    for old, new in zip(jax.tree.leaves(W), jax.tree.leaves(back)):
        assert np.abs(old - new).max() < 0.1
    assert library.convert(np.int64(3), "n") == 3 and library.convert(np.int64(3), 1).dtype == np.int32
    assert library.convert(0.5, "rate") == np.float32(0.5)


def test_convert_gives_the_bits_of_the_tool(program, library, tmp_path):
    wide = {"w": W, "n": np.int32(0), "x": X, "rate": np.float32(0.1)}
    wide["w"]["b"][0][0, 0] = np.inf
    program.save(tmp_path / "step.scl")
    for policy in ("f16_scaled", "f8_scaled", "f32"):
        made = scalide.build(program, numerics=policy)
        for dtype in (np.float32, np.float16, ml_dtypes.bfloat16):
            given = jax.tree.map(lambda leaf: leaf.astype(dtype), W)
            scalide.save(tmp_path / "in.safetensors", {**wide, "w": given})
            run([tool_path(), "convert", "in.safetensors", "--for", "step.scl", "-n", policy, "-o", "out.safetensors"], cwd=tmp_path, check=True)
            file = scalide.load(tmp_path / "out.safetensors")
            for name, leaf in zip(("w.a", "w.b.0", "w.b.1"), jax.tree.leaves(made.convert(given), is_leaf=is_scaled)):
                for one, other in zip(*([each.data, each.scale] if is_scaled(each) else [each] for each in (leaf, file[name]))):
                    assert one.dtype == other.dtype and np.asarray(one).tobytes() == np.asarray(other).tobytes(), (policy, dtype, name)
    wide["w"]["b"][0][0, 0] = 0


def test_convert_takes_scaled_and_wide_arrays(library):
    wide = library.convert(jax.tree.map(lambda leaf: leaf.astype(np.float64), W))
    other = library.convert(jax.tree.map(lambda leaf: ScaledArray(jnp.asarray(leaf * 4), np.float32(0.25)), W))
    for one, same in zip(jax.tree.leaves(wide, is_leaf=is_scaled), jax.tree.leaves(other, is_leaf=is_scaled)):
        assert is_scaled(one) == is_scaled(same) and (not is_scaled(one) or one.scale == same.scale)
        assert np.array_equal(*(leaf.data if is_scaled(leaf) else leaf for leaf in (one, same)))
    kept = library.convert(wide)
    assert all(np.array_equal(a, b) for a, b in zip(*(jax.tree.leaves(each) for each in (wide, kept))))


def test_convert_takes_containers_that_only_jax_knows():
    @jax.tree_util.register_pytree_node_class
    class Box(collections.UserDict):
        def tree_flatten(self):
            return (self.data["w"],), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(w=children[0])

    library = scalide.build(trace(lambda x, box: x @ box["w"], X, Box(w=W["a"])), numerics="f8_weights")
    made = library.convert(Box(w=W["a"].astype(np.float16)), "box")
    assert isinstance(made, Box) and np.asarray(library(X, made)).shape == (32, 32)
    assert library.convert(made, 1, to="f32")["w"].dtype == np.float32


def test_errors_of_convert(library):
    assert error_of(library.convert, W, "v").startswith("ValueError: step: unknown argument 'v'. ")
    assert error_of(library.convert, W, 9) == "ValueError: step: argument must be from 0 to 3, or a name, got 9."
    assert "unknown dtype 'f33'. Did you mean" in error_of(library.convert, W, to="f33")
    assert error_of(library.convert, X[0], "x") == "ValueError: step.x: rank must be 2, got 1."
    assert error_of(library.convert, 0.5, "n").startswith("TypeError: step.n: must be an array that converts to i32, got float64.")
    assert error_of(library.convert, {"a": W["a"]}).startswith("TypeError: ")
    alone = scalide.Library(library.path)
    assert is_scaled(alone.convert(W["a"], "w.a")) and error_of(alone.convert, X, "y").startswith("ValueError: step: unknown argument 'y'.")
