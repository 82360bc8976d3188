"""Donated arrays of which a step changes a part: the values, and that no kernel writes the whole array."""
import itertools
import json
import logging
import os
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import slow_unless
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


#: Each update meets f32, bf16 and one of the other dtypes.
VALUES = slow_unless(lambda name, dtype: dtype in (*DTYPES[:2], DTYPES[2 + list(UPDATES).index(name) % 4]), itertools.product(UPDATES, DTYPES))


@pytest.mark.parametrize("name, dtype", VALUES)
def test_values(name, dtype):
    fn, shape = UPDATES[name]
    if dtype == "bool" and name in ("at.add", "at.multiply", "at.min", "at.max", "element", "chain"):
        pytest.skip("JAX has no arithmetic on bools")
    program = trace(fn, *(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in arrays(dtype, shape, 0)), donate_argnums=0)
    library = scalide.build(program)
    for seed in (1, 2):
        e, v = arrays(dtype, shape, seed)
        np.testing.assert_array_equal(np.asarray(library(e, v)).astype(np.float32), np.asarray(jax.jit(fn)(e, v)).astype(np.float32))


@pytest.mark.parametrize("name", ["at.add", "at.multiply", "at.min", "at.set", "element", "row", "block", "column", "chain"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", pytest.param("float16", marks=pytest.mark.slow)])
def test_nothing_of_the_size_of_the_array_is_stored(name, dtype, tmp_path):
    if name == "chain" and dtype != "float32":
        pytest.skip("the second update reads the rows of the first one, so they are separate arrays")
    fn, shape = UPDATES[name]
    _, stored = kernels_of(trace(fn, *arrays(dtype, shape, 0), donate_argnums=0), tmp_path)
    assert not [buffer for buffer in stored if buffer["shape"] == [11, 6]], stored


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("update", [
    lambda e, i, v: e.at[i].add(v),
    lambda e, i, v: e.at[i, i[::-1]].add(v[:, 0]),  # elements
    lambda e, i, v: e.at[:, i].add(v.T),  # columns
    lambda e, i, v: e.at[i].multiply(v),
    lambda e, i, v: e.at[i].max(v),
    lambda e, i, v: e.at[i[0]].add(v[0]),
    lambda e, i, v: e.at[5:9].add(v[:4]),
])  # fmt: skip
def test_sixteen_bits_are_rounded_once(update, dtype, tmp_path):
    """Updates of one place are combined in f32, in their order, and the sum is rounded once. Other elements keep their bits."""
    draw = np.random.default_rng(2)
    e, v = draw.normal(size=(48, 48)).astype(np.float32), draw.normal(size=(12, 48)).astype(np.float32) / 8
    e, v = jnp.asarray(e).astype(dtype), jnp.asarray(v).astype(dtype)
    ids = [np.int32(each) for each in ([3] * 12, np.arange(12), [47, 0, -1, 3, 3, 0, 48, -49, 3, 200, 5, 47])]
    library, stored = kernels_of(trace(update, e, ids[0], v, donate_argnums=0), tmp_path)
    assert not [buffer for buffer in stored if buffer["shape"] == [48, 48]], stored
    for i in ids:
        got, want = library(e, i, v), update(e.astype(jnp.float32), i, v.astype(jnp.float32)).astype(dtype)
        np.testing.assert_array_equal(np.asarray(got).view(np.uint16), np.asarray(want).view(np.uint16))


#: A step, the policy, and the reason why a run copies the whole array.
COPIES = {
    "scaled": (lambda e, i, v: e.at[i].add(v), "float32", "f16_scaled", "the policy stores it with a scale, and a new scale changes all elements"),
    "clip": (lambda e, i, v: e.at[i].add(v, mode="clip"), "bfloat16", "f32", "its 16-bit elements are rounded once after all updates (see donate_argnums of trace)"),
    "old rows": (lambda e, i, v: (lambda new: (new, e + new))(e.at[i].set(v)), "float32", "f32", "the program also reads the old array, or the array between two updates"),
    "all elements": (lambda e, i, v: e - 0.1 * jnp.zeros_like(e).at[i].add(v), "float32", "f32", None),
    "optimizer": (lambda e, i, v: e * 0.9 - 0.1 * jnp.tanh(e), "bfloat16", "f32", None),
    "in place": (lambda e, i, v: e.at[i].add(v), "bfloat16", "f32", None),
    "scalar": (lambda e, i, v: e.at[i[0], 3].add(v[0, 0]), "float16", "f32", None),
}  # fmt: skip


@pytest.mark.parametrize("name", COPIES)
def test_a_build_warns_if_a_run_copies_the_array_for_a_part(name, tmp_path, caplog):
    fn, dtype, numerics, reason = COPIES[name]
    rows = 2**11 if (dtype, numerics) == ("float32", "f32") else 2**12  # 1 MiB as it is stored

    def traced(rows):
        return trace(fn, jax.ShapeDtypeStruct((rows, 128), dtype), np.int32([3, 5]), jax.ShapeDtypeStruct((2, 128), dtype), donate_argnums=0)

    program = traced(rows)
    with caplog.at_level(logging.INFO, "scalide"):
        library = scalide.build(program, numerics=numerics)
    file = tmp_path / "step.scl"
    program.save(file)
    shown = subprocess.run([os.environ["SCALIDE_TOOL"], "inspect", "-n", numerics, file], capture_output=True, text=True, check=True).stdout
    if reason is None:
        assert "warning" not in library.summary and "copied whole" not in shown
        return
    number = next(i for i, line in enumerate(open(__file__), 1) if line.startswith(f'    "{name}": (lambda e, i, v'))
    assert f"; warning: test_jax_in_place.py:{number}" in library.summary
    assert library.summary.endswith(f" updates a part of e, but each run copies all of it, because {reason}")
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert f"copied whole for an update of a part:\n  e (test_jax_in_place.py:{number}" in shown and f"): {reason}\n" in shown
    assert "warning" not in scalide.build(traced(rows - 1), numerics=numerics).summary, "less than 1 MiB"


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


def table_step(state, ids, rows):
    """Two donated arrays in a dict, and two results that are not donated."""
    table = state["table"].at[ids].add(rows)
    return {"table": table, "count": state["count"] + 1}, jnp.sum(rows), table[0]


def table_arrays(of=np.asarray):
    table = scalide.empty((64, 16))
    table[:] = np.arange(1024, dtype=np.float32).reshape(64, 16)
    return {"table": of(table), "count": of(np.zeros((), np.int32))}, np.int32([3, 1]), np.ones((2, 16), np.float32)


@pytest.fixture(scope="module")
def table_library():
    return scalide.build(trace(table_step, *table_arrays(), donate_argnums=0))


def same(got, want):
    for one, other in zip(jax.tree_util.tree_leaves(got), jax.tree_util.tree_leaves(want), strict=True):
        np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_donate_updates_numpy_arrays(table_library):
    state, ids, rows = table_arrays()
    before = [state["table"].copy(), ids.copy(), rows.copy()]
    want = table_library(state, ids, rows)
    np.testing.assert_array_equal(state["table"], before[0])  # a call modifies nothing
    for _ in range(2):
        made, total, first = table_library.donate(state, ids, rows)
        assert made["table"] is state["table"] and made["count"] is state["count"]
        same((made, total, first), want)
        same((ids, rows), before[1:])
        assert not np.shares_memory(first, made["table"])
        want = table_library(made, ids, rows)


@pytest.mark.parametrize("change", [
    lambda table: table[:, ::2],  # not contiguous
    lambda table: table.reshape(-1)[1:1009].reshape(63, 16),  # not aligned
    lambda table: np.frombuffer(table.tobytes(), np.float32).reshape(64, 16),  # read-only
    lambda table: table.astype(np.float64),
    lambda table: table.astype(">f4"),
])  # fmt: skip
def test_donate_copies_arrays_that_do_not_fit(change):
    state, ids, rows = table_arrays()
    given = change(state["table"])
    if not given.flags.c_contiguous:
        rows = rows[:, ::2]
    before = given.copy()
    library = scalide.build(trace(table_step, {**state, "table": given.astype(np.float32)}, ids, rows, donate_argnums=0))
    want = library({**state, "table": given}, ids, rows)
    first = library.donate({**state, "table": given}, ids, rows)
    same(first, want)
    same(given, before)
    assert not np.shares_memory(first[0]["table"], given)
    second = library.donate(first[0], ids, rows)
    assert second[0]["table"] is first[0]["table"], "the result of a step fits"


def test_donate_deletes_jax_arrays(table_library):
    (state, ids, rows), (jax_state, _, _) = table_arrays(), table_arrays(lambda array: jnp.array(array, copy=True))
    want = table_library(state, ids, rows)
    for _ in range(3):
        made = table_library.donate(jax_state, ids, rows)
        same(made, want)
        assert jax_state["table"].is_deleted() and jax_state["count"].is_deleted()
        jax_state, want = made[0], table_library(want[0], ids, rows)
    table_library.donate(jax_state, ids, rows)
    for run in (table_library, table_library.donate):
        with pytest.raises(ValueError, match=r"table_step: a JAX array must not be deleted, .* Pass the result of that call"):
            run(jax_state, ids, rows)


def test_donate_of_numpy_arrays_among_jax_arrays(table_library):
    """XLA may read the memory of a NumPy array, but it must not write it."""
    state, ids, rows = table_arrays()
    before, shared = state["table"].copy(), jnp.asarray(state["table"])
    want = table_library(state, ids, rows)
    same(table_library.donate(state, jnp.asarray(ids), rows), want)
    same(table_library.donate({**state, "table": shared}, ids, rows), want)
    np.testing.assert_array_equal(state["table"], before)


def test_jit_with_donation(table_library):
    """JAX 0.5 or later: XLA passes the memory of the donated array, and it is the memory of the result."""
    big = 2**18  # rows; XLA reuses small arrays by chance
    library = scalide.build(trace(lambda e, i, v: e.at[i].add(v), np.zeros((big, 16), np.float32), np.int32([3]), np.ones((1, 16), np.float32), donate_argnums=0))
    step = jax.jit(lambda e, i, v: library(e, i, v), donate_argnums=0)
    array, i, v = jnp.zeros((big, 16)), np.int32([3]), np.ones((1, 16), np.float32)
    for count in range(1, 4):
        old, array = array, step(array, i, v)
        assert old.is_deleted()
        np.testing.assert_array_equal(array[2:5, 0], [0, count, 0])
    if hasattr(jax, "ffi"):
        lowered = step.lower(array, i, v)
        assert "output_operand_alias" in lowered.as_text() and "copy" not in lowered.compile().as_text()
        place = array.unsafe_buffer_pointer()
        assert step(array, i, v).unsafe_buffer_pointer() == place and place % 64 == 0
    kept = jnp.ones((big, 16))
    both = jax.jit(lambda e, i, v: (library(e, i, v), e[3] * 2))(kept, i, v)  # XLA copies: the old array is read afterwards
    np.testing.assert_array_equal(np.stack([both[0][3], both[1], kept[3]]), np.float32([[2], [2], [1]]) * np.ones(16, np.float32))


def test_donate_with_scales_and_state():
    """A ScaledArray keeps its data array, and gets the new scale. So does the state of a policy."""

    def step(w, x):
        return w - 0.5 * jnp.tanh(x @ w), jnp.sum(x)

    w, x = np.linspace(-1, 1, 512, dtype=np.float32).reshape(16, 32), np.ones((16, 16), np.float32)
    library = scalide.build(trace(step, w, x, donate_argnums=0), numerics="f16_scaled")
    called, donated = (library.convert(w), library.init()), (library.convert(w), library.init())
    in_jax = jax.tree_util.tree_map(lambda array: jnp.array(array, copy=True), called)
    assert isinstance(called[0], scalide.ScaledArray) and called[1]
    for number in range(3):
        given, old = donated, in_jax
        (called_w, _), called_state = library(called[0], x, called[1])
        (donated_w, _), donated_state = library.donate(donated[0], x, donated[1])
        (jax_w, _), jax_state = library.donate(in_jax[0], x, in_jax[1])
        called, donated, in_jax = (called_w, called_state), (donated_w, donated_state), (jax_w, jax_state)
        same(donated, called)
        same(in_jax, called)
        assert old[0].data.is_deleted()
        if number:
            assert donated_w is given[0] and all(donated_state[name] is given[1][name] for name in donated_state)


def test_shared_memory_of_many_arrays():
    """Bind sorts the arrays of 16 arguments and more by address. It finds every pair of which one is written, and allows two that are read."""
    count = 20
    written, read = [scalide.empty((4, 16)) for _ in range(count)], [np.ones((4, 16), np.float32) for _ in range(count)]
    for array in written:
        array[:] = 1
    library = scalide.build(trace(lambda written, read: [w + r for w, r in zip(written, read)], written, read, donate_argnums=0))
    library.donate(written, [read[0]] * count)
    same(written[count - 1], np.full((4, 16), 2))
    rows = scalide.empty((6, 16))
    rows[:] = 1
    for at in (0, 7, count - 1):
        with pytest.raises(ValueError, match=f"written.{at}: a run writes this memory, but it overlaps with read.5. Pass separate memory"):
            library.donate(written[:at] + [rows[:4]] + written[at + 1 :], read[:5] + [rows[2:]] + read[6:])
    twice = written[:2] + [written[1]] + written[3:]
    with pytest.raises(ValueError, match="written.1: a run writes this memory, but it overlaps with written.2"):
        library.donate(twice, read)


def test_donate_refuses_shared_memory():
    e = scalide.empty((8, 16))
    e[:] = 1
    library = scalide.build(trace(lambda e, v: e.at[0].add(v[1]), e, e, donate_argnums=0))
    want = np.float32([[2]] + [[1]] * 7) * np.ones(16, np.float32)
    same(library(e, e), want)
    with pytest.raises(ValueError, match="a run writes this memory, but it overlaps with v. Pass separate memory"):
        library.donate(e, e)
    whole = scalide.empty(129)
    whole[:] = 1
    same(library.donate(whole[1:].reshape(8, 16), whole[:128].reshape(8, 16)), want)  # not aligned, so it is copied
    same(whole, np.ones(129))
    with pytest.raises(ValueError, match="overlaps with v"):
        library.donate(whole[:128].reshape(8, 16), whole[1:].reshape(8, 16))
    in_jax = jnp.ones((8, 16))
    with pytest.raises(ValueError, match="lambda.v: must not share memory with a donated argument, got the array of e. Pass a copy"):
        library.donate(in_jax, in_jax)
    assert not in_jax.is_deleted()


def test_donate_of_wrong_arguments(table_library):
    state, ids, rows = table_arrays()
    before, in_jax = state["table"].copy(), table_arrays(jnp.asarray)[0]
    for given in (state, in_jax):
        with pytest.raises(TypeError):
            table_library.donate(given, ids)
        with pytest.raises((TypeError, ValueError), match="table_step.rows: dtype must be f32, got f(loat)?16. Convert the array"):
            table_library.donate(given, ids, rows.astype(np.float16))
        with pytest.raises(ValueError, match="extent|shape"):
            table_library.donate(given, ids, rows[:, :3])
        with pytest.raises(TypeError, match="must be a plain array, got a ScaledArray"):
            table_library.donate({**given, "table": scalide.ScaledArray(given["table"], 1)}, ids, rows)
    np.testing.assert_array_equal(state["table"], before)
    np.testing.assert_array_equal(in_jax["table"], before)
    with pytest.raises(TypeError, match="donate cannot be used while JAX traces a function. Call the library"):
        jax.jit(lambda rows: table_library.donate(state, ids, rows))(rows)


def test_donate_of_a_prepared_library():
    e, w, v = scalide.empty((8, 16)), np.eye(16, dtype=np.float32) * 2, np.ones((1, 16), np.float32)
    e[:] = 1
    library = scalide.build(trace(lambda w, e, v: e.at[np.int32([2])].add(v @ w), w, e, v, constant_argnums=0, donate_argnums=1))
    prepared = library.prepare(w)
    assert prepared.donate(e, v) is e and library.donate(w, e, v) is e
    same(e, prepared.donate(jnp.ones((8, 16)).at[2].add(2), v))
