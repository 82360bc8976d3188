"""Donated arrays of which a step changes a part: the values, and that no kernel writes the whole array."""
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import scalide
from scalide.jax import trace

ROWS = np.int32([2, 0, -1, 2])  # row 2 twice


def rows(method, indices=ROWS):
    return lambda e, v: getattr(e.at[indices], method)(v)


#: A function of the donated array (11 x 6) and of the update, and the shape of the update.
UPDATES = {
    **{f"at.{method}": (rows(method), (4, 6)) for method in ("add", "multiply", "min", "max")},
    "at.set": (rows("set", np.int32([7, 0, -1])), (3, 6)),
    "outside": (lambda e, v: e.at[np.int32([40, 3, -40])].set(v, mode="drop"), (3, 6)),
    "column": (lambda e, v: e.at[:, 4].set(v), (11,)),
    "element": (lambda e, v: e.at[5, 2].add(v), ()),
    "row": (lambda e, v: lax.dynamic_update_slice(e, v, (3, 0)), (1, 6)),
    "block": (lambda e, v: lax.dynamic_update_slice(e, v, (9, -2)), (4, 3)),  # starts are clamped to 7 and 0
    "chain": (lambda e, v: lax.dynamic_update_slice(e.at[1].set(v[0]).at[ROWS].add(v), v[2:], (6, 0)), (4, 6)),
    "one row": (lambda e, v: lax.dynamic_update_index_in_dim(e, v, 8, 0), (6,)),
}
DTYPES = ["float32", "bfloat16", "float16", "int32", "uint8", "bool"]


def arrays(dtype, shape, seed):
    drawn = np.random.default_rng(seed).integers(0, 2 if dtype == "bool" else 9, (11, 6)).astype(np.float32), np.random.default_rng(seed + 1)
    return jnp.asarray(drawn[0]).astype(dtype), jnp.asarray(drawn[1].integers(0, 9, shape).astype(np.float32)).astype(dtype)


def kernels_of(program, tmp_path, numerics="f32"):
    """The plan: its steps and the arrays that it stores beside arguments and results."""
    library = scalide.build(program, numerics=numerics, output=tmp_path)
    plan = json.loads(next(tmp_path.glob("*.json")).read_text())["programs"][0]
    return library, [buffer for buffer in plan["buffers"] if buffer["storage"] == "arena"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UPDATES)
def test_values(name, dtype):
    fn, shape = UPDATES[name]
    if dtype == "bool" and name in ("at.add", "at.multiply", "at.min", "at.max", "element", "chain"):
        pytest.skip("JAX has no arithmetic on bools")
    program = trace(fn, *(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in arrays(dtype, shape, 0)), donate_argnums=0)
    library = scalide.build(program)
    for seed in (1, 2):
        e, v = arrays(dtype, shape, seed)
        np.testing.assert_array_equal(np.asarray(library(e, v)).astype(np.float32), np.asarray(jax.jit(fn)(e, v)).astype(np.float32))


@pytest.mark.parametrize("name", ["at.add", "at.set", "row", "block", "column", "chain"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_nothing_of_the_size_of_the_array_is_stored(name, dtype, tmp_path):
    if name in ("at.add", "chain") and dtype == "bfloat16":
        pytest.skip("sums of bf16 are added in f32, so each element is rounded once after all updates")
    fn, shape = UPDATES[name]
    _, stored = kernels_of(trace(fn, *arrays(dtype, shape, 0), donate_argnums=0), tmp_path)
    assert not [buffer for buffer in stored if buffer["shape"] == [11, 6]], stored


def test_readers_before_and_after_the_update(tmp_path):
    """A cache of keys: one row is written, all rows are read. The norm of the old rows is computed before."""

    def step(cache, row, place):
        old = jnp.sum(cache**2)
        cache = lax.dynamic_update_slice(cache, row, (place, 0))
        return cache, jnp.tanh(cache @ row[0]), old

    cache, row = arrays("float32", (1, 6), 3)
    library, stored = kernels_of(trace(step, cache, row, np.int32(4), donate_argnums=0), tmp_path)
    assert not [buffer for buffer in stored if buffer["shape"] == [11, 6]], stored
    for place in (0, 4, 10, 11, -1):
        for got, want in zip(library(cache, row, np.int32(place)), jax.jit(step)(cache, row, np.int32(place)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("fn", [
    lambda e, v: e.at[ROWS[:3]].set(e[np.int32([5, 6, 7])]),  # updates are old rows
    lambda e, v: e.at[ROWS[:3]].add(jnp.tanh(e[1:4]) * v[:3]),
    lambda e, v: (e.at[1].set(v[0])).at[2].add(v[1]),  # a chain
    lambda e, v: (e * 0.5).at[1].set(v[0]),  # every element changes
    lambda e, v: lax.dynamic_update_slice(e, e[:4] + v, (6, 0)),
])  # fmt: skip
def test_updates_that_read_the_array(fn):
    e, v = arrays("float32", (4, 6), 5)
    library = scalide.build(trace(fn, e, v, donate_argnums=0))
    np.testing.assert_allclose(library(e, v), jax.jit(fn)(e, v), rtol=1e-6)
    both = scalide.build(trace(lambda e, v: (fn(e, v), e * 2), e, v, donate_argnums=0))  # the old array is read afterwards
    for got, want in zip(both(e, v), (jax.jit(fn)(e, v), e * 2), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("numerics", ["bf16", "f16_master", "f8_master"])
def test_embedding_steps_under_policies(numerics):
    """Rows of a table are read, changed by a gradient and added. Rows that no index names keep their bits."""

    def step(table, w, ids, y):
        value, (of_rows, of_w) = jax.value_and_grad(lambda rows, w: jnp.mean((jnp.tanh(rows @ w) - y) ** 2), (0, 1))(table[ids], w)
        return table.at[ids].add(-0.1 * of_rows), w - 0.1 * of_w, value

    draw = np.random.default_rng(0)
    table, w = draw.normal(size=(64, 32)).astype(np.float32), draw.normal(size=(32, 16)).astype(np.float32) / 6
    ids, y = np.int32([1, 5, 63, 5, 0, 7, 9, 11]), draw.normal(size=(8, 16)).astype(np.float32) / 2
    got = scalide.build(trace(step, table, w, ids, y, donate_argnums=(0, 1)), numerics=numerics)(table, w, ids, y)[0]
    want, untouched = jax.jit(step)(table, w, ids, y)[0], np.setdiff1d(np.arange(64), ids)
    np.testing.assert_array_equal(np.asarray(got)[untouched], table[untouched])
    # A gradient of a row is below 0.1; 8 bits of it are within a quarter.
    np.testing.assert_allclose(got, want, atol=0.1 * 0.1 / 4)
