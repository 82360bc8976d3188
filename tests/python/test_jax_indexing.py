"""Gather, scatter, dynamic slices and random bits, forward and gradient."""
import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from jax import lax
from oracle import check, few

import scalide
import scalide.jax

floats = st.sampled_from(["float32", "float16", "bfloat16"])


def normal(seed, shape, dtype="float32"):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), dtype)


@few
@given(n=st.sampled_from([5, 8]), m=st.sampled_from([1, 6]), dtype=floats, seed=st.integers(0, 1000), mode=st.sampled_from(["fill", "clip"]))
def test_gathers(n, m, dtype, seed, mode):
    x = normal(seed, (n, 4, 3), dtype)
    draw = np.random.default_rng(seed)
    inside, wide = jnp.asarray(draw.integers(0, n, m), jnp.int32), jnp.asarray(draw.integers(-n - 2, n + 2, (m, 2)), jnp.int32)
    along = jnp.asarray(draw.integers(0, 4, (n, 2, 3)), jnp.int32)
    bytes_ = jnp.asarray(draw.integers(0, n, m), jnp.uint8)
    check({
        "rows": (lambda x, i: x[i], (x, inside)), "take": (lambda x, i: jnp.take(x, i, 0, mode=mode), (x, wide)),
        "narrow_index": (lambda x, i: x[i], (x, bytes_)), "along": (lambda x, i: jnp.take_along_axis(x, i, 1), (x, along)),
        "two": (lambda x, i: x[i, i % 4], (x, inside)), "middle": (lambda x, i: x[:, i % 4], (x, inside)), "one": (lambda x, i: x[i[0]], (x, inside)),
        "get": (lambda x, i: x.at[i].get(mode="fill", fill_value=2), (x, wide)),
        "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i[0], 0, i[0] - 3), (2, 4, 2)), (x, inside)),
        "dynamic_index": (lambda x, i: lax.dynamic_index_in_dim(x, i[0], 1), (x, inside)),
        "integers": (lambda i, j: i.at[j].get(mode="fill"), (inside, wide)), "unsigned": (lambda i, j: i.at[j].get(mode="fill"), (bytes_, wide)),
        "vmapped": (lambda x, i: jax.vmap(lambda row, k: row[k])(x[:1], i[:1] % 4), (x, inside)),
    })  # fmt: skip


def test_elements_at_known_indices():
    """Without a scatter, so that they fuse."""
    x, places = normal(0, 6), jnp.arange(5, dtype=jnp.int32)
    cases = {"first": (lambda x: x.at[0].set(x.max()), (x,)), "last": (lambda x: x.at[-1].set(7), (x,)),
             "outside": (lambda x: x.at[6].set(7), (x,)), "clipped": (lambda x: x.at[6].set(7, mode="clip"), (x,)),
             "rolled": (lambda x: jnp.roll(x, -1).at[0].set(2), (x,)), "integers": (lambda i: i.at[2].set(i[0] - 9), (places,))}  # fmt: skip
    check(cases)
    text = scalide.jax.trace(lambda x: {name: fn(x) for name, (fn, _) in cases.items() if name != "clipped"}, x).text
    assert "scatter" not in text


@few
@given(n=st.sampled_from([5, 8]), m=st.sampled_from([1, 6]), dtype=floats, seed=st.integers(0, 1000))
def test_scatters(n, m, dtype, seed):
    x, y = normal(seed, (n, 3), dtype), normal(seed + 1, (m, 3), dtype)
    draw = np.random.default_rng(seed)
    i = jnp.asarray(draw.permutation(n)[:m] if m <= n else draw.integers(0, n, m), jnp.int32)
    unique = jnp.asarray(draw.permutation(n)[: min(m, n)], jnp.int32)
    y_unique = y[: min(m, n)]
    check({
        "set": (lambda x, y, i: x.at[i].set(y), (x, y_unique, unique)), "add": (lambda x, y, i: x.at[i].add(y), (x, y, i)),
        "multiply": (lambda x, y, i: x.at[i].multiply(y, unique_indices=True), (x, y_unique, unique)),
        "min": (lambda x, y, i: lax.stop_gradient(x.at[i].min(y)), (x, y, i)), "max": (lambda x, y, i: lax.stop_gradient(x.at[i].max(y)), (x, y, i)),
        "outside": (lambda x, y, i: x.at[i + n - 1].add(y, mode="drop"), (x, y, i)), "number": (lambda x, i: x.at[i, 1].set(7), (x, i)),
        "slice": (lambda x: x.at[1:3].set(0), (x,)), "dynamic": (lambda x, y, i: lax.dynamic_update_slice(x, y[:1], (i[0], 0)), (x, y, i)),
        "segments": (lambda y, i: jax.ops.segment_sum(y, i, n), (y, i)), "one_hot": (lambda i: jax.nn.one_hot(i, n, dtype=dtype), (i,)),
        "bincount": (lambda i: jnp.zeros(n, jnp.int32).at[i].add(1), (i,)),
        **({"subtract": (lambda x, y, i: x.at[i].subtract(y), (x, y, i))} if hasattr(x.at[0], "subtract") else {}),  # not in JAX 0.4.33
    })  # fmt: skip


def test_counts_of_many_places():
    """Long lists of places are counted in blocks of 4,096."""
    draw = np.random.default_rng(5)
    places = {f"{n}": jnp.asarray(draw.integers(-9, 50, n), jnp.int32) for n in (1023, 1024, 4095, 4096, 4097, 30001)}
    check({f"{n}.{mode}": (lambda i, mode=mode: jnp.arange(40, dtype=jnp.int32).at[i].add(3, mode=mode), (i,))
           for n, i in places.items() for mode in ("clip", "drop")})  # fmt: skip
    (n,) = jax.export.symbolic_shape("n")
    traced = scalide.jax.trace(lambda i: jnp.zeros(64, jnp.int32).at[i].add(1, mode="drop"), jax.ShapeDtypeStruct((n,), jnp.int32))
    library = scalide.build(traced)
    for i in [jnp.zeros(1, jnp.int32), *places.values()]:
        inside = np.where(i < 0, i + 64, i)
        np.testing.assert_array_equal(library(i), np.bincount(inside[inside < 64], minlength=64))


def test_gradients_of_extrema_outside():
    """JAX writes these gradients with scatters that promise places inside; what breaks the promise is dropped there."""
    x, u = jnp.arange(5, dtype=jnp.float32), jnp.asarray([1.5, 7.25, 0.5], jnp.float32)
    places = {"in": [0, 2, 1], "twice": [1, 1, 2], "out": [0, 9, 2], "negative": [0, -9, 2], "out_twice": [9, 9, 4]}
    check({f"{name}.{mode}.{where}": (lambda x, u, i, name=name, mode=mode: getattr(x.at[i], name)(u, mode=mode), (x, u, jnp.asarray(i, jnp.int32)))
           for name in ("max", "min", "add") for mode in ("clip", "drop") for where, i in places.items()})  # fmt: skip


def test_known_places():
    """Masks and 64-bit places of NumPy's, which JAX takes for 32 bits."""
    x = normal(0, (4, 3))
    mask, places = np.array([True, False, True, True]), np.array([2, 0])
    check({"mask": (lambda x: x[mask], (x,)), "places": (lambda x: x[places], (x,)), "both": (lambda x: x[mask][:, places].at[places].add(1), (x,)),
           "f64": (lambda x: x * np.linspace(0, 1, 3), (x,))})  # fmt: skip


def test_random_numbers_of_many_keys(partitionable):
    keys, old, grid = jax.random.split(jax.random.key(3), 4), jax.random.split(jax.random.PRNGKey(4), 3), jax.random.split(jax.random.key(5), (2, 3))
    rows = jnp.ones((4, 5))
    check({
        "uniform": (jax.vmap(lambda k: jax.random.uniform(k, (3,))), (keys,)), "normal": (jax.vmap(lambda k: jax.random.normal(k, (2, 3)), out_axes=1), (old,)),
        "one": (jax.vmap(jax.random.bits), (keys,)), "u8": (jax.vmap(lambda k: jax.random.bits(k, (5,), jnp.uint8)), (keys,)),
        "u16": (jax.vmap(lambda k: jax.random.bits(k, (5,), jnp.uint16)), (keys,)), "none": (jax.vmap(lambda k: jax.random.uniform(k, (0,))), (keys,)),
        "split": (jax.vmap(lambda k: jax.random.uniform(jax.random.split(k, 3)[1], (2,))), (keys,)),
        "fold_in": (jax.vmap(lambda k: jax.random.bits(jax.random.fold_in(k, 7))), (keys,)),
        "fold_many_in": (lambda k, n: jax.vmap(lambda i: jax.random.bits(jax.random.fold_in(k, i)))(n), (keys[0], jnp.arange(5))),
        "fold_each_in": (jax.vmap(lambda k, i: jax.random.bits(jax.random.fold_in(k, i))), (keys, jnp.arange(4))),
        "grid": (jax.vmap(jax.vmap(lambda k: jax.random.uniform(k, (2,)))), (grid,)),
        "dropout": (lambda k, x: jax.vmap(lambda k, x: jnp.where(jax.random.bernoulli(k, 0.5, x.shape), x, 0))(jax.random.split(k, 4), x), (keys[1], rows)),
    }, gradient=False)  # fmt: skip


def test_random_numbers(partitionable):
    key, old = jax.random.key(3), jax.random.PRNGKey(4)
    check({
        "normal": (lambda k: jax.random.normal(k, (5, 4)), (key,)), "uniform": (lambda k: jax.random.uniform(k, (7,), minval=-1, maxval=3), (key,)),
        "bits": (lambda k: jax.random.bits(k, (9,)), (key,)), "old": (lambda k: jax.random.normal(k, (3,)), (old,)),
        "split": (lambda k: [jax.random.uniform(one, (2,)) for one in jax.random.split(k)], (old,)),
        "split_key": (lambda k: [jax.random.uniform(one, (2,)) for one in jax.random.split(k, 3)], (key,)),
        "fold_in": (lambda k: jax.random.bits(jax.random.fold_in(k, 7), (2,)), (key,)), "bernoulli": (lambda k: jax.random.bernoulli(k, 0.3, (20,)), (key,)),
        "gumbel": (lambda k: jax.random.gumbel(k, (8,)), (key,)), "categorical": (lambda k: jax.random.categorical(k, jnp.zeros((6, 4))), (key,)),
        "randint": (lambda k: jax.random.randint(k, (9,), 3, 1000), (key,)), "seed": (lambda n: jax.random.uniform(jax.random.key(n), (3,)), (jnp.int32(12),)),
        "dropout": (lambda k: jnp.where(jax.random.bernoulli(k, 0.5, (4, 5)), jnp.ones((4, 5)), 0), (key,)),
    }, gradient=False)  # fmt: skip
