"""Calls with anything in the place of arrays, trees, shapes and paths: only what the pages document is raised, and the process lives. Draws are
those of SCALIDE_FUZZ_SEED; with SCALIDE_FUZZ_SECONDS in the environment (hours of it) each test goes on so long."""
import os
import random
import time

import ml_dtypes
import numpy as np
import pytest

import scalide
from scalide import Library, ScaledArray

SEED = int(os.environ.get("SCALIDE_FUZZ_SEED", 1))
SECONDS = float(os.environ.get("SCALIDE_FUZZ_SECONDS", 0))
STEP = """program step(x: f32[b, 4], w: f32[4] inout, n: i32[b], rate: f32[]) -> (y: f32[b], w = w1) {
  m = convert_element_type(n) {dtype: f32}
  z = dot_general(x, w) {contract: [[1], [0]]}
  y = add(z, m)
  d = mul(w, rate)
  w1 = sub(w, d)
}
"""
SCALED = """program scaled(x: f16[n] scaled, w: f16[n] scaled inout) -> (y: f16[n] scaled, w = w1) {
  y = mul(x, w)
  w1 = mul(w, 2)
}
"""


class Mine(Exception):
    """Raised by hostile objects. A call may pass it on."""


class Raises:
    """Raises wherever it is looked at."""

    def __array__(self, dtype=None, copy=None):
        raise Mine

    def fail(self, *_, **__):
        raise Mine

    __len__ = __iter__ = __getitem__ = __float__ = __int__ = __index__ = __bool__ = __eq__ = fail
    __hash__ = None
    shape = dtype = data = scale = property(fail)


class Lies:
    """An array by its attributes alone."""

    shape, dtype, ndim, size, strides = (2**62, -1), np.float32, 2, -1, (1, 1)
    __array_interface__ = {"shape": (2**40,), "typestr": "<f4", "version": 3}

    def __len__(self):
        return 2**62


class Subclass(np.ndarray):
    """An array that says what it likes."""

    shape = property(lambda self: (2**40, 3))
    dtype = property(lambda self: np.dtype(np.int8))


def cyclic():
    cycle = [1.0]
    cycle.append(cycle)
    return cycle


def arrays(draw):
    """Arrays that are hard to take, and some that fit."""
    dtypes = (np.float32, np.float16, np.float64, np.int32, np.int64, np.bool_, np.complex64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn,
              ml_dtypes.int4, "O", "U3", "S0", "V0", "M8[s]", ">f4", [("a", "f4")], [])
    shape = draw.choice(((), (0,), (4,), (3, 4), (3,), (3, 4), (0, 4), (1,) * 9, (1,) * 32, (2, 0, 2**40)))
    array = np.zeros(shape, draw.choice(dtypes[:4] if draw.random() < 0.6 else dtypes))
    changes = (lambda a: a, lambda a: a, lambda a: a.T, lambda a: a[::-1] if a.ndim else a, lambda a: np.broadcast_to(a, (2**40, *a.shape)), read_only,
               lambda a: a.view(Subclass), lambda a: np.lib.stride_tricks.as_strided(a, strides=(0,) * a.ndim), misaligned)
    try:
        return draw.choice(changes)(array)
    except (TypeError, ValueError):  # NumPy has no such array
        return array


def read_only(array):
    array.flags.writeable = False
    return array


def misaligned(array):
    if array.dtype.hasobject or array.size == 0:
        return array
    return np.zeros(array.nbytes + 1, np.uint8)[1:].view(array.dtype).reshape(array.shape)


def anything(draw):
    numbers = (None, True, 0, -1, 2**31, 2**70, 0.5, float("nan"), float("inf"), 1j, "x", "\ud800", b"x", "", object(), len, np, ...)
    containers = ([], (), {}, set(), [[]], [[1], [1, 2]], [2**70], ["x"], [None], {"x": 1.0}, {1: 2}, range(3), cyclic(), [[1.0]] * 3, memoryview(b"1234"))
    others = (Raises, Lies, lambda: [Raises()], lambda: scaled(draw), lambda: np.float32(1), lambda: np.zeros(2, "O"), lambda: iter([1.0]), Raises)
    return draw.choice((lambda: draw.choice(numbers), lambda: draw.choice(containers), lambda: draw.choice(others)(), lambda: arrays(draw),
                        lambda: arrays(draw), lambda: arrays(draw)))()  # fmt: skip


def scaled(draw):
    try:
        return ScaledArray(arrays(draw), draw.choice((1.0, np.float32(2), np.zeros(()), arrays(draw), np.array(1, np.float16))))
    except (TypeError, ValueError):
        return ScaledArray._of(anything(draw), 1.0)


def fitting(library, draw):
    """Arguments that a library takes."""
    arguments = []
    for argument in library.arguments:
        dtype = {"f32": np.float32, "i32": np.int32, "f16": np.float16}[argument.dtype]
        data = scalide.empty(((), (4,), (3, 4))[argument.rank] if argument.name != "n" else (3,), dtype)
        data[...] = 1
        if argument.name == "y" and not argument.scaled:
            data = data[:3]
        arguments.append(ScaledArray(data, np.ones((), np.float32)) if argument.scaled else data)
    return arguments


def draws(test):
    """Random generators, each with a seed of its own, which a failure prints."""
    end, count = time.monotonic() + SECONDS, 0
    while count < 1500 or time.monotonic() < end:
        seed = f"{test} {SEED} {count}"
        count += 1
        try:
            yield random.Random(seed)
        except BaseException:
            print(f"seed: {seed}")
            raise
    print(f"{test}: {count} draws")


def attempt(function, *args, **kwargs):
    """A call that may raise what is documented."""
    try:
        return function(*args, **kwargs)
    except (TypeError, ValueError, MemoryError, Mine):
        return None


@pytest.mark.parametrize("text", (STEP, SCALED), ids=("plain", "scaled"))
def test_library_survives_any_arguments(libraries, text):
    library = Library(libraries(text), threads=1)
    inputs = sum(argument.role != "output" for argument in library.arguments)
    for draw in draws("library"):
        given = fitting(library, draw)
        call, used = draw.choice(((library, given[:inputs]), (library.out, given), (library.first_non_finite, given[:inputs])))
        for _ in range(draw.randrange(3)):
            used[draw.randrange(len(used))] = anything(draw)
        if draw.random() < 0.1:
            used = used[: draw.randrange(len(used))]
        named = {draw.choice(("x", "w", "none", "y")): anything(draw)} if draw.random() < 0.1 else {}
        attempt(call, *used, **named)
    assert attempt(library, *fitting(library, random)[:inputs]) is not None, "a library takes what fits, after all that"


def test_makers_survive_anything(libraries, tmp_path):
    path = libraries(STEP)
    for draw in draws("makers"):
        made = attempt(ScaledArray, anything(draw), anything(draw))
        if made is not None and isinstance(made.data, np.ndarray):
            attempt(made.to_array, anything(draw))
        attempt(scalide.empty, draw.choice((anything(draw), (draw.choice((0, -1, 2**31, 2**62)), 2))), draw.choice(("f32", "bf16", anything(draw))))
        if draw.random() < 0.02:
            name, threads = draw.choice((None, "none", "step", "x" * 1000, anything(draw))), draw.choice((1, -1, 2**40, anything(draw)))
            try:
                attempt(Library, draw.choice((path, __file__, anything(draw))), name=name, threads=threads)
            except OSError:
                pass


def test_programs_survive_any_text_and_trees():
    program = scalide.Program(STEP)
    for draw in draws("programs"):
        text = list(STEP)
        for _ in range(draw.randrange(4)):
            text[draw.randrange(len(text))] = draw.choice(("", "(", "{", "\n", "program", "\0", "\ud800", "\xe9"))
        attempt(scalide.Program, draw.choice(("".join(text), anything(draw))))
        attempt(program.flatten, draw.choice(((anything(draw),) * 4, anything(draw))), draw.choice(({}, {"x": anything(draw)})))


def test_what_draws_have_found(libraries):
    library = Library(libraries(STEP), threads=1)
    with pytest.raises(TypeError, match="step.y: must be an array, got <class 'tuple'>"):
        library.out(*fitting(library, random)[:4], y=())
    with pytest.raises(TypeError):  # not: multiplies a million million numbers
        scalide.empty(np.broadcast_to(1, (2**40,)))
    with pytest.raises(ValueError, match="empty: extents must be at least 0, and the array must have fewer than 2.63 bytes, got shape .4611686018427387904, 4."):
        scalide.empty((2**62, 4))
    with pytest.raises(ValueError, match="program: p.y: must be a result"):
        scalide.Program("program p(x: f32[2]) -> (y) {\n}\n")
