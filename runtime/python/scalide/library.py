"""Library: a generated shared library in this process. Needs NumPy and ml_dtypes, not JAX."""
from __future__ import annotations

import collections
import functools
import math
import operator
import os
import pathlib
import sys
import tempfile
import threading
from typing import Any, NamedTuple

import numpy as np

from . import _runtime, arrays, reports
from .reports import Check, NonFinite, Table
from .scaled_array import ScaledArray
from .words import name_text

DTYPES = {name: numpy for name, (numpy, _) in arrays.DTYPES.items()}
_runtime.set_dtypes(DTYPES)
_PYTHON_NUMBERS = {"b": "b", "i": "bif", "f": "f"}  # kind of numbers -> kinds of dtypes that they may become; "f" are all floats


class Argument(NamedTuple):
    """An argument of a program, as the library describes it."""
    name: str
    dtype: str    # "f32", "f8_e4m3fn", ...
    rank: int
    role: str     # "input", "output", "inout", or "state": an inout that the policy adds
    scaled: bool


def empty(shape: int | tuple[int, ...], dtype: Any = "f32") -> np.ndarray:
    """A new array of undefined content whose memory is aligned to 64 bytes, as inout arguments of `Library.out` must be.
    dtype: a name of ours ("bf16") or what NumPy takes."""
    dtype = DTYPES.get(dtype, dtype) if isinstance(dtype, str) else dtype
    extents = [operator.index(extent) for extent in (shape if isinstance(shape, (tuple, list)) else (shape,))]
    count = math.prod(extents) * np.dtype(dtype).itemsize
    if min(extents, default=0) < 0 or count > sys.maxsize - 64:
        raise ValueError(f"empty: extents must be at least 0, and the array must have fewer than 2^63 bytes, got shape {shape}")
    memory = np.empty(count + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start:start + count].view(dtype).reshape(shape)


_loaded: dict[str, tuple] = {}  # path -> what the file was when it was first loaded
_loaded_lock = threading.Lock()


def _loadable(path):
    """A name under which the loader takes the file as it is now. It keeps the old library when a file was replaced under a known name."""
    status = os.stat(path)
    identity = (status.st_dev, status.st_ino, status.st_mtime_ns)
    with _loaded_lock:
        if _loaded.setdefault(path, identity) == identity:
            return path, None
    folder = tempfile.TemporaryDirectory(prefix="scalide-")
    link = pathlib.Path(folder.name, os.path.basename(path))
    link.symlink_to(path)
    return str(link), folder


class Library:
    """A program of a shared library (`scalide build --shared`, `scalide.build`).

    path: the file. program: the `scalide.Program` it was built from, whose trees the arguments and results then have.
    name: of the program's C function, `<name>_program` (default: from the file's name). threads: 0 = the CPUs that this process may use.

    Any thread may call it; runs of libraries with as many threads come one after the other. Raises OSError (no such file, no library),
    ValueError (no such program), RuntimeError (made for another version of the runtime, or for another CPU).
    """

    def __init__(self, path: str | os.PathLike, program: Any = None, *, name: str | None = None, threads: int = 0):
        self.path, self.program = os.path.realpath(path), program
        self.summary = None  # scalide.build knows it
        self._options: dict = {}  # likewise: those that commands of the tool want again
        if not os.path.isfile(self.path):
            raise FileNotFoundError(f"cannot load {path}: no such file. Build the library with scalide.build.")
        name = name or pathlib.Path(self.path).name.removeprefix("lib").split(".")[0]
        loadable, _folder = _loadable(self.path)
        self._native = _runtime.Program(loadable, name, threads)
        self.name, self.target, self.numerics, self.hash = (getattr(self._native, field) for field in ("name", "target", "numerics", "hash"))
        self.arguments = tuple(Argument(*row) for row in self._native.arguments)
        self._inputs = [a for a in self.arguments if a.role != "output"]
        self._written = [a for a in self.arguments if a.role != "input"]
        # The native module gives results in the order of the arguments.
        self._state = [a for a in self.arguments if a.role == "state"]
        self.results = tuple(a.name for a in self._written) if program is None else (*program.results, *(a.name for a in self._state))
        self._order = [[a.name for a in self._written].index(name) for name in self.results]
        self._tuple = collections.namedtuple("Results", self.results, rename=True)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Inputs and inouts, by position or name (or in the trees of the traced function); returns the outputs and the new values of
        inouts (or the function's tree). Of a policy with state a traced function takes one tree more, `init()` at first, and returns
        the pair (its result, the tree for the next call). NumPy arrays give NumPy arrays; when one is JAX's, all results are, and the call may stand in
        `jax.jit`. A scaled argument is a ScaledArray. What is given is never written and only copied when it is not dense. Raises
        TypeError, ValueError (dtype, shape) or what the run reports."""
        leaves = self._leaves(args, kwargs)
        if _any_of_jax(leaves, self.name):
            return self._nest(self._jitted([_unlisted(leaf, a, self.name) for leaf, a in zip(leaves, self._inputs)]))
        results = self._running().call([_given(leaf, a, self.name) for leaf, a in zip(leaves, self._inputs)])
        return self._nest([ScaledArray(*results[i]) if type(results[i]) is tuple else results[i] for i in self._order])

    def out(self, *args: Any, **kwargs: Any) -> None:
        """Like a call, but writes in place: inouts are updated where they are, outputs are given too (by name, or behind the inputs).
        Arrays that are written must be NumPy's, dense and writable, inouts aligned to 64 bytes (`scalide.empty`); the scale of a scaled
        one is an f32 array of rank 0. Returns None. Trees of a program are not looked at: arguments are its flat list."""
        given = dict(zip([a.name for a in (*self._inputs, *(a for a in self._written if a.role == "output"))], args))
        given = self._merge(given, kwargs, self.arguments, len(args))
        leaves = [_given(given[a.name], a, self.name) if a.role == "input" else _written(given[a.name], a, self.name) for a in self.arguments]
        self._running().run_in_place(leaves)

    def init(self) -> dict[str, np.ndarray]:
        """The state that the policy adds, before the first call: arrays by name, empty where it adds none. A call takes it behind all
        other arguments and returns what the next one takes."""
        return {name: np.full(shape, first, DTYPES[dtype]) for name, dtype, shape, first in self._running().state}

    def first_non_finite(self, *args: Any, **kwargs: Any) -> NonFinite | None:
        """Runs on these arguments, as a call takes them, and says which result was the first with an infinity or a NaN; None: none was.
        A call has the same bits, so this is for the arguments of one that gave such numbers. Arguments and constants are no results."""
        leaves = [_on_host(leaf) for leaf in self._leaves(args, kwargs)]
        found = self._running().first_non_finite([_given(leaf, a, self.name) for leaf, a in zip(leaves, self._inputs)])
        return found and reports.non_finite(self, found, leaves)

    def explain(self, tensor: str | None = None) -> Table:
        """What the policy decides for each array, as `scalide explain` prints it: a tuple of `Decision` (tensor, use, format, scale, policy, source,
        safe), printed as a table. tensor: the name of one, or a glob. Asks the tool; needs the program. Raises ValueError, BuildError."""
        return reports.explain(self, tensor)

    def check(self, *args: Any, **kwargs: Any) -> Check:
        """One run on these arguments, as a call takes them, by the interpreter, which rounds as kernels do. Counts for each tensor that is rounded
        to 8 or 16 bits what became zero, saturated or subnormal (`roundings`), and for each state the elements that an update did not move
        (`states`). It takes seconds for large arrays; calls of the library cost nothing. Asks the tool; needs the program. Raises what a call
        raises for its arguments, ValueError, BuildError."""
        leaves = [_on_host(leaf) for leaf in self._leaves(args, kwargs)]
        self._running().call([_given(leaf, a, self.name) for leaf, a in zip(leaves, self._inputs)])  # refuses what the program does not take
        return reports.check(self, [_in_format(leaf, a, self.name) for leaf, a in zip(leaves, self._inputs)])

    def close(self) -> None:
        """Forgets the library; later calls raise ValueError. Jitted functions that use it keep working."""
        self._native = None

    @functools.cached_property
    def _jitted(self):
        import jax

        from .jax.call import Operation

        return jax.jit(Operation(self).run)

    def __repr__(self):
        return f"<scalide.Library {name_text(self.name)}({self._signature()}) -> ({', '.join(map(name_text, self.results))})>"

    def _signature(self):
        return ", ".join(f"{name_text(a.name)}: {a.dtype}[{', '.join('*' * a.rank)}]{' scaled' * a.scaled}{' inout' * (a.role in ('inout', 'state'))}" for a in self._inputs)

    def _running(self):
        if self._native is None:
            raise ValueError(f"library '{self.name}' is closed. Load it again.")
        return self._native

    def _leaves(self, args, kwargs):
        """Inputs and inouts in the order of the arguments."""
        leaves = args
        if self.program is not None:
            args, state = self._split_state(args)
            leaves = [*self.program.flatten(args, kwargs), *state]
        elif kwargs:
            given = self._merge(dict(zip((a.name for a in self._inputs), args)), kwargs, self._inputs, len(args))
            leaves = [given[a.name] for a in self._inputs]
        if len(leaves) != len(self._inputs):
            raise TypeError(f"{self.name}: the number of arrays must be {len(self._inputs)}, got {len(leaves)}. Pass {self._signature()}.")
        return leaves

    def _split_state(self, args):
        """The arguments of the traced function, and the arrays of the policy's state."""
        if not self._state:
            return args, []
        names = [a.name for a in self._state]
        if not args or not isinstance(args[-1], dict) or sorted(args[-1]) != sorted(names):
            got = type(args[-1]).__name__ if args else "nothing"
            raise TypeError(f"{self.name}: the last argument must be the state of policy {self.numerics}, a dict of {', '.join(names)}, got {got}. "
                            f"Start with state = library.init(), and pass the returned state to the next call: result, state = library(..., state).")  # fmt: skip
        return args[:-1], [args[-1][name] for name in names]

    def _nest(self, results):
        """Results in the order of `results` as the caller gets them."""
        if self.program is not None and self._state:
            own = len(results) - len(self._state)
            return self.program.unflatten(results[:own]), dict(zip((a.name for a in self._state), results[own:]))
        if self.program is not None:
            return self.program.unflatten(results)
        return results[0] if len(results) == 1 else self._tuple._make(results)

    def _merge(self, given, named, arguments, count):
        names = [a.name for a in arguments]
        if count > len(names):
            raise TypeError(f"{self.name}: the number of arrays must be {len(names)}, got {count}.")
        for name in named:
            if name not in names or name in given:
                problem = f"argument '{name}' is given twice" if name in given else f"unknown argument '{name}'"
                raise TypeError(f"{self.name}: {problem}. The arguments are {', '.join(names)}.")
        given.update(named)
        missing = [name for name in names if name not in given]
        if missing:
            raise TypeError(f"{self.name}: missing argument '{missing[0]}'. The arguments are {', '.join(names)}.")
        return given


def _any_of_jax(leaves, name):
    """Whether an array is JAX's. Raises ValueError for one that is not on the CPU."""
    jax, found = sys.modules.get("jax"), False
    for leaf in leaves if jax is not None else ():
        data = leaf.data if type(leaf) is ScaledArray else leaf
        if isinstance(data, jax.Array):
            found = True
            if not isinstance(data, jax.core.Tracer) and any(device.platform != "cpu" for device in data.devices()):
                raise ValueError(f"{name}: arrays must be on the CPU, got an array on {data.devices()}. Move it with jax.device_put(x, jax.devices('cpu')[0]).")
    return found


def _on_host(leaf):
    """The leaf with NumPy's array in the place of one of JAX's."""
    if type(leaf) is ScaledArray:
        return ScaledArray(_on_host(leaf.data), leaf.scale)
    jax = sys.modules.get("jax")
    return np.asarray(leaf) if jax is not None and isinstance(leaf, jax.Array) else leaf


def check_scaled(leaf, argument, name):
    """Raises TypeError for a ScaledArray in the place of a plain array and the other way round."""
    if isinstance(leaf, ScaledArray) == argument.scaled:
        return
    if argument.scaled:
        raise TypeError(f"{name}.{argument.name}: must be a ScaledArray, got {type(leaf).__name__}. Use scalide.ScaledArray(data, scale).")
    raise TypeError(f"{name}.{argument.name}: must be a plain array, got a ScaledArray. Use its to_array().")


def _given(leaf, argument, name):
    """What the native module takes for an argument that is read."""
    if type(leaf) is np.ndarray and not argument.scaled:
        return leaf
    check_scaled(leaf, argument, name)
    return (_array(leaf.data, argument, name), float(leaf.scale)) if argument.scaled else _array(leaf, argument, name)


def _array(leaf, argument, name):
    """NumPy's array, which an array of NumPy's already is, and numbers of Python or lists of them become."""
    if isinstance(leaf, (np.ndarray, np.generic)):
        return np.asarray(leaf)
    if isinstance(leaf, (bool, int, float, list, tuple)):
        try:
            if _kind(argument.dtype) in _PYTHON_NUMBERS.get(np.asarray(leaf).dtype.kind, ""):
                return np.asarray(leaf, DTYPES[argument.dtype])
        except (OverflowError, TypeError, ValueError) as error:
            raise TypeError(f"{name}.{argument.name}: must be an array of {argument.dtype}, got a {type(leaf).__name__}, which cannot be converted: {error}.") from None
    raise TypeError(f"{name}.{argument.name}: must be an array of {argument.dtype}, got {type(leaf).__name__}.")


def _in_format(leaf, argument, name):
    """A leaf that a call takes, as it reads it: an array or a ScaledArray, with 64 bits as 32."""
    given = _given(leaf, argument, name)
    data, scale = given if argument.scaled else (given, None)
    data = data.astype(DTYPES[argument.dtype])
    return ScaledArray(data, np.float32(scale)) if argument.scaled else data


def _unlisted(leaf, argument, name):
    """A list as an array: for JAX it would be many."""
    return _array(leaf, argument, name) if isinstance(leaf, (list, tuple)) else leaf


def _kind(dtype):
    return "f" if dtype[0] in "f" or dtype == "bf16" else "b" if dtype == "bool" else "i"


def _written(leaf, argument, name):
    check_scaled(leaf, argument, name)
    return (leaf.data, leaf.scale) if argument.scaled else leaf
