"""Library: runs a generated shared library. Needs NumPy and ml_dtypes, but not JAX."""
from __future__ import annotations

import collections
import copy
import functools
import importlib
import math
import operator
import os
import pathlib
import sys
import threading
from typing import Any, NamedTuple

import numpy as np

from . import _runtime, conversion, reports
from .marshal import DTYPES, any_of_jax, in_format, on_host, to_read, to_write, updated, without_lists
from .owned_folder import OwnedFolder
from .reports import Check, NonFinite, NonFiniteElement, NonFiniteError, Table, Traced
from .scaled_array import ScaledArray
from .words import meant, name_text

# init with arguments: at most so many runs, until no scale changes by more than this part. Two runs of the first steps of a training differ more.
_FITTING_RUNS, _FITTING_CHANGE = 64, 0.25


class Argument(NamedTuple):
    """An argument of a library."""
    name: str
    dtype: str    # "f32", "f8_e4m3fn", ...
    rank: int
    role: str     # "input", "output", "inout", "constant", or "state" (an inout that the policy adds)
    scaled: bool


def empty(shape: int | tuple[int, ...], dtype: Any = "f32") -> np.ndarray:
    """Returns a new array with undefined elements and memory aligned to 64 bytes. Inout arguments of `Library.out` need this alignment.

    Args:
        shape: An extent, or a tuple or list of extents.
        dtype: A name such as "bf16", or a NumPy dtype.

    Raises:
        ValueError: An extent is negative, or the array is too large.
    """
    dtype = DTYPES.get(dtype, dtype) if isinstance(dtype, str) else dtype
    extents = [operator.index(extent) for extent in (shape if isinstance(shape, (tuple, list)) else (shape,))]
    count = math.prod(extents) * np.dtype(dtype).itemsize
    if min(extents, default=0) < 0 or count > sys.maxsize - 64:
        raise ValueError(f"empty: extents must be at least 0, and the array must have fewer than 2^63 bytes, got shape {shape}")
    memory = np.empty(count + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start:start + count].view(dtype).reshape(shape)


_loaded: dict[str, tuple] = {}  # path -> identity of the file when it was first loaded
_loaded_lock = threading.Lock()


def _loadable(path):
    """Returns a path from which the loader reads the current file. For a known path it would return the library that it loaded before."""
    status = os.stat(path)
    identity = (status.st_dev, status.st_ino, status.st_mtime_ns)
    with _loaded_lock:
        if _loaded.setdefault(path, identity) == identity:
            return path, None
    folder = OwnedFolder()
    link = pathlib.Path(folder.name, os.path.basename(path))
    link.symlink_to(path)
    return str(link), folder


class Library:
    """A program from a shared library. `scalide build --shared` and `scalide.build` write such libraries.

    Any thread may call a library. Runs of libraries with the same number of threads happen one after the other.

    Args:
        path: The shared library.
        program: The Program that the library was built from. Calls then take and return the pytrees of the traced function.
        name: The name in the C function `<name>_program`. Default: from the file name.
        threads: The number of threads. 0: all CPUs that this process may use.

    Raises:
        OSError: The file does not exist, or it is no library.
        ValueError: The library has no such program.
        RuntimeError: The library needs another version of the runtime, or another CPU.
    """

    def __init__(self, path: str | os.PathLike, program: Any = None, *, name: str | None = None, threads: int = 0):
        self.path, self.program = os.path.realpath(path), program
        self.summary = None  # scalide.build sets it
        self._options: dict = {}  # scalide.build sets it: options that commands of the tool need again
        if not os.path.isfile(self.path):
            raise FileNotFoundError(f"cannot load {path}: no such file. Build the library with scalide.build.")
        name = name or pathlib.Path(self.path).name.removeprefix("lib").split(".")[0]
        loadable, _folder = _loadable(self.path)
        self._native, self._threads = _runtime.Program(loadable, name, threads), threads
        self.name, self.target, self.numerics, self.hash = (getattr(self._native, field) for field in ("name", "target", "numerics", "hash"))
        self.arguments = tuple(Argument(*row) for row in self._native.arguments)
        self._constants = None  # prepare sets it, in a copy of the library
        self._inputs = [a for a in self.arguments if a.role != "output"]
        self._written = [a for a in self.arguments if a.role in ("output", "inout", "state")]
        # The native module returns results in the order of the arguments.
        self._state = [a for a in self.arguments if a.role == "state"]
        self.results = tuple(a.name for a in self._written) if program is None else (*program.results, *(a.name for a in self._state))
        self._order = [[a.name for a in self._written].index(name) for name in self.results]
        self._tuple = collections.namedtuple("Results", self.results, rename=True)

    def __call__(self, *args: Any, check_finite: bool = False, **kwargs: Any) -> Any:
        """Runs the program and returns new arrays. The call never modifies its inputs.

        With a `program`, it takes and returns the pytrees of the traced function. Without, it takes the inputs and inouts by position or name,
        and returns one array or a named tuple. A scaled argument is a ScaledArray. If one argument is a JAX array, all results are JAX
        arrays, and the call may stand inside of `jax.jit`.

        If the policy keeps state, pass one more pytree at the end, first `init()`. The call then returns a pair: the result, and the pytree
        for the next call.

        Args:
            check_finite: Raise NonFiniteError if a result of a step has an infinity or a NaN. The exception has the results, which have the same
                bits. Not supported inside of `jax.jit`.

        Raises:
            TypeError: An argument is missing, unknown or no array.
            ValueError: A dtype or shape is wrong, or the library is closed.
            NonFiniteError: With check_finite, a result is not finite.
            RuntimeError: A kernel fails.
        """
        leaves = self._leaves(args, kwargs)
        if check_finite:
            return self._checked(leaves, donated=False)
        if any_of_jax(leaves, self.name):
            return self._nest(self._jitted([without_lists(leaf, a, self.name) for leaf, a in zip(leaves, self._inputs)]))
        results = self._running().call([to_read(leaf, a, self.name) for leaf, a in zip(leaves, self._inputs)], self._constants)
        return self._nest([ScaledArray._of(*results[i]) if type(results[i]) is tuple else results[i] for i in self._order])

    def donate(self, *args: Any, check_finite: bool = False, **kwargs: Any) -> Any:
        """Runs the program as a call does, but may overwrite the donated arguments: inouts and the state of the policy.

        Use only the results afterwards, as after a function of `jax.jit` with `donate_argnums`:

            params = library.donate(params, x)

        - A NumPy array is updated in place if it is contiguous, writable, aligned to 64 bytes and exactly of the dtype of the argument. The same
          object is the result. Other arrays are copied once and do not change. The results fit, so the next step copies nothing.
        - A ScaledArray is updated in place if its data is. It gets the new scale, and it is the result.
        - JAX arrays are donated to XLA, which deletes them. With `check_finite`, they are copied instead.

        Args:
            check_finite: As in a call. The donated arrays are updated before NonFiniteError is raised.

        Raises:
            TypeError: As a call; or an argument is a tracer of JAX. Inside of `jax.jit`, call the library.
            ValueError: As a call; or a donated array shares memory with another argument.
            RuntimeError: A kernel fails. The donated arrays are then undefined.
        """
        leaves = self._leaves(args, kwargs)
        if check_finite:
            return self._checked(leaves, donated=True)
        if any_of_jax(leaves, self.name):
            return self._nest(self._donating([without_lists(leaf, a, self.name) for leaf, a in zip(leaves, self._inputs)]))
        given = [to_read(leaf, a, self.name) for leaf, a in zip(leaves, self._inputs)]
        return self._nest(self._updated(leaves, self._running().call(given, self._constants, True)))

    def prepare(self, *args: Any, **kwargs: Any) -> Library:
        """Converts, scales and rounds the constant arguments once, and returns a library that takes only the other arguments.

        It takes the constant arguments of a call. Afterwards, the library does not need their arrays. A call returns the same bits as
        with all arguments. To replace the constants, call `prepare` again: libraries that it returned earlier keep their constants.

            predict = library.prepare(params)
            scores = predict(images)

        Raises:
            TypeError: A constant is missing, unknown or no array.
            ValueError: A dtype or shape is wrong, the program has no constants, or the library is closed.
        """
        constants = [a for a in self.arguments if a.role == "constant"]
        if not constants:
            raise ValueError(f"{self.name}: prepare needs constant arguments, and the program has none. Declare them with trace(..., constant_argnums=0), "
                             "or with 'constant' after the type in a .scl file.")  # fmt: skip
        if self.program is not None:
            leaves = self.program.flatten_part(args, kwargs, constant=True)
        else:
            given = self._merge(dict(zip((a.name for a in constants), args)), kwargs, constants, len(args))
            leaves = [given[a.name] for a in constants]
        if len(leaves) != len(constants):
            raise TypeError(f"{self.name}: the number of constants must be {len(constants)}, got {len(leaves)}. Pass {', '.join(a.name for a in constants)}.")
        prepared = copy.copy(self)
        prepared._constants = self._running().prepare([to_read(on_host(leaf), a, self.name) for leaf, a in zip(leaves, constants)])
        prepared._inputs = [a for a in self.arguments if a.role not in ("output", "constant")]
        for name in ("_jitted", "_donating"):  # they belong to the constants
            prepared.__dict__.pop(name, None)
        return prepared

    @property
    def prepared_bytes(self) -> int:
        """The number of bytes that the prepared arrays need. 0 if `prepare` did not make this library."""
        return self._constants.bytes if self._constants else 0

    def out(self, *args: Any, check_finite: bool = False, **kwargs: Any) -> None:
        """Runs in place: updates the inouts, and writes the outputs into arrays that you pass by name or after the inputs.

        Arrays that are written must be contiguous, writable NumPy arrays of exactly the dtype of the argument. Inouts must be aligned to 64
        bytes (`scalide.empty`). The scale of a scaled array that is written must be an f32 scalar array. `out` takes no pytrees.

        Args:
            check_finite: As in a call. The arrays are written before NonFiniteError is raised, and its `results` is None.

        Raises:
            TypeError, ValueError: An argument does not fit.
            RuntimeError: A kernel fails.
        """
        given = dict(zip([a.name for a in (*self._inputs, *(a for a in self._written if a.role == "output"))], args))
        read, written = {a.name for a in self._inputs}, {a.name for a in self._written}
        passed = [a for a in self.arguments if a.role == "output" or a.name in read]
        given = self._merge(given, kwargs, passed, len(args))
        leaves = [to_write(given[a.name], a, self.name) if a.name in written else to_read(given[a.name], a, self.name) for a in passed]
        found = self._running().run_in_place(leaves, self._constants, check_finite)
        if found:
            inputs = [given[a.name] for a in self._inputs]
            raise NonFiniteError(reports.non_finite(self, found, inputs, in_place=True), None)

    def init(self, *args: Any, **kwargs: Any) -> dict[str, np.ndarray]:
        """Returns the state that the policy needs for the first call, as a dict of arrays by name. The dict is empty if there is no state.

        Pass the dict after the other arguments. The call returns the state for the next call.

        With the arguments of a call, but without the state, the scales and amax histories fit these arguments. Otherwise all scales are 1 in
        the first call. `init` then runs the program several times, and keeps only the state of the policy. It never modifies its arguments.
        Integer state, such as the number of the step, keeps its first value.

            state = library.init(params, x, y)
            (loss, params), state = library(params, x, y, state)

        Raises:
            TypeError, ValueError, RuntimeError: As a call.
        """
        first = {name: np.full(shape, number, DTYPES[dtype]) for name, dtype, shape, number in self._running().state}
        return self._fitted(first, args, kwargs) if args or kwargs else first

    def first_non_finite(self, *args: Any, interpret: str | None = None, **kwargs: Any) -> NonFinite | NonFiniteElement | None:
        """Runs once and returns the first result that has an infinity or a NaN, or None.

        It takes the arguments of a call, and the results have the same bits. Arguments and constants are not results.

        Args:
            interpret: "stored" or "real": run in an interpreter, which looks into fused kernels, and return a NonFiniteElement: the operator and the
                index. "stored" rounds as kernels do. "real" computes in f64 without a policy, so it finds what no format can repair. This takes
                seconds for large arrays, runs the tool and needs the program.

        Raises:
            TypeError, ValueError, RuntimeError: As a call; or `interpret` is another word, or `prepare` returned the library.
            BuildError: The tool reports an error.
        """
        if interpret is not None:
            if interpret not in ("stored", "real"):
                raise ValueError(f"{self.name}: interpret must be 'stored', 'real' or None, got {interpret!r}.")
            return reports.non_finite_element(self, self._for_tool("first_non_finite", args, kwargs), interpret)
        leaves = [on_host(leaf) for leaf in self._leaves(args, kwargs)]
        _, found = self._running().call_checked([to_read(leaf, a, self.name) for leaf, a in zip(leaves, self._inputs)], self._constants)
        return found and reports.non_finite(self, found, leaves)

    def statistics(self) -> Table:
        """Returns the newest statistics of each tensor, as a tuple of `Statistic`s that prints as a table. It is empty before the first call.

        The kernels of the calls collect them, in the calls that the policy or `scalide.build(..., statistics=10)` names. Calls with
        `check_finite`, and the runs of `init`, `check`, `run_traced` and `first_non_finite`, collect nothing and do not count.

        Raises:
            ValueError: The library was built without statistics, or it is closed.
        """
        native = self._running()
        if not native.described_statistics:
            raise ValueError(f"{self.name}: the library was built without statistics. Build it with scalide.build(..., statistics=True), "
                             "or with a policy that has rows 'statistics'.")  # fmt: skip
        return reports.statistics(self, native)

    def run_traced(self, *args: Any, tensor: str | None = None, scope: str | None = None, **kwargs: Any) -> tuple[Any, tuple[Traced, ...]]:
        """Runs once and returns a pair: the results of a call, and the arrays that its steps compute, in order, as copies.

        It takes the arguments of a call, and the results have the same bits. The results are NumPy arrays. Each `Traced` has an array, the tensor
        of the program, and where it is computed. Arrays inside of fused kernels do not exist, so they are not in the list. Build with
        `traceable=True` to see all rounded copies and scales. In a loop, each step adds its arrays.

            (loss, params), arrays = library.run_traced(params, x, y, scope="block1/**")

        Args:
            tensor: A glob for the names of tensors. Other arrays are not copied, so that a large program fits in memory. Default: all.
            scope: A glob for scopes. Default: all arrays, also outside of scopes.

        Raises:
            TypeError: As a call; or the call is inside of `jax.jit`.
            ValueError, RuntimeError: As a call.
        """
        leaves = self._on_host(self._leaves(args, kwargs), "run_traced")
        given = [to_read(leaf, a, self.name) for leaf, a in zip(leaves, self._inputs)]
        tracing = reports.Tracing(self, tensor, scope)
        results, rows = self._running().call_traced(given, self._constants, tracing.wants)
        results = [ScaledArray._of(*results[i]) if type(results[i]) is tuple else results[i] for i in self._order]
        return self._nest(results), tracing.traced(rows)

    def _checked(self, leaves, donated):
        """Runs on the host, and raises NonFiniteError with the results if a result is not finite. Returns JAX arrays if one of the leaves is one."""
        is_jax = any_of_jax(leaves, self.name)
        given_leaves = self._on_host(leaves, "check_finite")
        given = [to_read(leaf, a, self.name) for leaf, a in zip(given_leaves, self._inputs)]
        results, found = self._running().call_checked(given, self._constants, donated and not is_jax)
        made = self._updated([] if is_jax or not donated else leaves, results)
        if is_jax:
            asarray = importlib.import_module("jax.numpy").asarray
            made = [ScaledArray._of(asarray(leaf.data), leaf.scale) if isinstance(leaf, ScaledArray) else asarray(leaf) for leaf in made]
        nested = self._nest(made)
        if found:
            raise NonFiniteError(reports.non_finite(self, found, given_leaves, in_place=donated and not is_jax), nested)
        return nested

    def _updated(self, leaves, results):
        """Returns the results in the order of the program. A donated ScaledArray of the leaves gets its new data and scale, and is a result."""
        leaf_of = {a.name: leaf for leaf, a in zip(leaves, self._inputs)}
        made = [updated(leaf_of.get(a.name), *result) if a.scaled else result for a, result in zip(self._written, results)]
        return [made[i] for i in self._order]

    def _on_host(self, leaves, what):
        """Returns NumPy arrays for JAX arrays. Raises TypeError for tracers."""
        jax = sys.modules.get("jax")
        data = [leaf.data if isinstance(leaf, ScaledArray) else leaf for leaf in leaves]
        if jax is not None and any(isinstance(array, jax.core.Tracer) for array in data):
            raise TypeError(f"{self.name}: {what} cannot be used inside of jax.jit, because the arrays have no elements there. Call the library outside.")
        return [on_host(leaf) for leaf in leaves]

    def explain(self, tensor: str | None = None, scope: str | None = None) -> Table:
        """Returns the format and the scale that the policy chose for each tensor, as a tuple of `Decision`s that prints as a table.

        Runs the tool. Needs the program.

        Args:
            tensor: The name of a tensor, or a glob such as "params.**". Default: all tensors.
            scope: A glob for the scopes around the operators, such as "block1/**". Default: all, also outside of scopes.

        Raises:
            ValueError: The library has no program, or no row matches.
            BuildError: The tool reports an error.
        """
        return reports.explain(self, tensor, scope)

    def explain_matmuls(self, tensor: str | None = None, scope: str | None = None) -> Table:
        """Returns how each matmul and convolution multiplies, and the rule or the reason, as a tuple of `MatmulDecision`s that prints as a table.

        Runs the tool. Needs the program.

        Args:
            tensor: The name of a result, or a glob. Default: all results.
            scope: A glob for the scopes around the matmuls. Default: all, also outside of scopes.

        Raises:
            ValueError: The library has no program, or no row matches.
            BuildError: The tool reports an error.
        """
        return reports.explain_matmuls(self, tensor, scope)

    def report(self, *runs: Any, output: Any = None, against: Any = ()) -> str:
        """Writes one HTML page about the program and about a training run of it, and returns what is unusual as text.

        As `Program.report`, with the policy and the rules of the library. Runs the tool. Needs the program.

        Args:
            runs: Folders of runs, or the `.jsonl` files of one run. Without runs, the page shows the program alone.
            output: The file of the page. Default: the name of the program, with the ending `.html`.
            against: Another run. The page shows how the metrics differ from it. Default: the first one of several runs.

        Raises:
            ValueError: The library has no program.
            BuildError: The tool reports an error, such as a file that it cannot read.
        """
        return reports.report(self, runs, output, against)

    def check(self, *args: Any, **kwargs: Any) -> Check:
        """Runs once in an interpreter, which rounds as kernels do, and counts the effects of rounding.

        The result has three tables. `roundings`: the zeros, saturated and subnormal elements of each tensor that is rounded to 8 or 16 bits.
        `states`: the elements of each in-place argument that did not move. `misfits`: the scales that do not fit their tensor. It takes seconds for large arrays. Runs the tool. Needs the program.

        Raises:
            TypeError, ValueError: As a call; or the library has no program, or `prepare` returned it.
            BuildError: The tool reports an error.
        """
        return reports.check(self, self._for_tool("check", args, kwargs))

    def _for_tool(self, method, args, kwargs):
        """Returns the inputs of a call as the tool reads them."""
        if self._constants:
            raise ValueError(f"{self.name}: {method} needs the arrays of the constants, and a prepared library has none. Call {method} on the library before prepare.")
        leaves = [on_host(leaf) for leaf in self._leaves(args, kwargs)]
        self._running().call([to_read(leaf, a, self.name) for leaf, a in zip(leaves, self._inputs)], apart=True)  # raises for wrong arguments
        return [in_format(leaf, a, self.name) for leaf, a in zip(leaves, self._inputs)]

    def convert(self, tree: Any, argument: int | str = 0, *, to: str | None = None) -> Any:
        """Returns the arrays of one argument in the formats and scales that the library takes, or back in a plain dtype.

            params = library.convert(params)                 # of the first argument: f16 ScaledArrays under f16_scaled
            params, loss = library(params, x, y)
            weights = library.convert(params, to="f32")      # data * scale

        Args:
            tree: The argument of the traced function. Its leaves are arrays of any float or integer dtype, or ScaledArrays. Without a
                `program`, it is one array.
            argument: The position or the name of the argument.
            to: A dtype such as "f32". The results are then plain arrays of this dtype.

        Raises:
            TypeError: The tree has another structure, or a float array is given for an integer argument.
            ValueError: The argument or the dtype is unknown, or a rank is wrong.
        """
        return conversion.convert(self, tree, argument, to)

    def close(self) -> None:
        """Closes the library. Later calls raise ValueError. Jitted functions that use it still work."""
        self._native = None

    @functools.cached_property
    def _jitted(self):
        return self._operation().jitted()

    @functools.cached_property
    def _donating(self):
        return self._operation().donating()

    def _operation(self):
        """Returns the library as an operation of JAX. JAX is optional, so scalide.jax is imported with the first JAX array."""
        if _make_operation is None:
            importlib.import_module(".jax", __package__)
        return _make_operation(self)

    def __repr__(self):
        return f"<scalide.Library {name_text(self.name)}({self._signature()}) -> ({', '.join(map(name_text, self.results))})>"

    def __copy__(self):  # copy.copy would use __getstate__, which is for other processes
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __getstate__(self):
        # The file of the library goes along, because the library of scalide.build is in a temporary folder. So does the manifest, which reports read.
        if self._native is None:
            raise ValueError(f"library '{self.name}' is closed. Load it again.")
        if self._constants is not None:
            raise TypeError(f"cannot pickle library '{self.name}': it is prepared, and its constants are in memory. Pickle the library before prepare.")
        file = pathlib.Path(self.path)
        files = [file, file.with_name(file.name.removeprefix("lib").split(".")[0] + ".json")]
        return {"files": {each.name: each.read_bytes() for each in files if each.is_file()}, "path": file.name, "program": self.program, "name": self.name,
                "threads": self._threads, "summary": self.summary, "options": self._options}  # fmt: skip

    def __setstate__(self, state):
        folder = OwnedFolder()
        for name, content in state["files"].items():
            pathlib.Path(folder.name, name).write_bytes(content)
        self.__init__(pathlib.Path(folder.name, state["path"]), state["program"], name=state["name"], threads=state["threads"])
        self._scratch = folder  # lives as long as the library
        self.summary, self._options = state["summary"], state["options"]

    def _signature(self):
        return ", ".join(f"{name_text(a.name)}: {a.dtype}[{', '.join('*' * a.rank)}]{' scaled' * a.scaled}{' inout' * (a.role in ('inout', 'state'))}{' constant' * (a.role == 'constant')}" for a in self._inputs)

    def _running(self):
        if self._native is None:
            raise ValueError(f"library '{self.name}' is closed. Load it again.")
        return self._native

    def _leaves(self, args, kwargs):
        """Returns the inputs and inouts in the order of the arguments."""
        leaves = args
        if self.program is not None:
            args, state = self._split_state(args)
            own = self.program.flatten_part(args, kwargs, constant=False) if self._constants else self.program.flatten(args, kwargs)
            leaves = [*own, *state]
        elif kwargs:
            given = self._merge(dict(zip((a.name for a in self._inputs), args)), kwargs, self._inputs, len(args))
            leaves = [given[a.name] for a in self._inputs]
        if len(leaves) != len(self._inputs):
            raise TypeError(f"{self.name}: the number of arrays must be {len(self._inputs)}, got {len(leaves)}. Pass {self._signature()}.")
        return leaves

    def _fitted(self, first, args, kwargs):
        """Returns the state after runs with these arguments, each with the scales of the run before it, until the scales fit."""
        if self.program is not None:
            leaves = self._leaves((*args, first) if first else args, kwargs)
        else:
            own = [a for a in self._inputs if a.role != "state"]
            given = self._merge(dict(zip((a.name for a in own), args)), kwargs, own, len(args))
            leaves = [*(given[a.name] for a in own), *first.values()]
        any_of_jax(leaves, self.name)  # raises for arrays on another device
        given = [to_read(on_host(leaf), a, self.name) for leaf, a in zip(leaves, self._inputs)]
        places = {name: [a.name for a in self._written].index(name) for name in first}
        state = first
        for _ in range(_FITTING_RUNS):
            # A history starts empty in each run: an amax that another scale changed would stay in it.
            passed = [first[name] if first[name].ndim else array for name, array in state.items()]
            results = self._running().call([*given[:len(given) - len(first)], *passed], self._constants, apart=True)
            before, state = state, {name: results[place] if first[name].dtype == np.float32 else first[name] for name, place in places.items()}
            if all(_fits(state[name], before[name]) for name in state):
                break
        return state

    def _split_state(self, args):
        """Returns the arguments of the traced function, and the arrays of the policy's state."""
        given = args[-1] if args else None
        if not self._state:
            if isinstance(given, dict) and not given and self.program.in_tree is not None and len(args) > len(self.program.in_tree.parts()[0]):
                raise TypeError(f"{self.name}: policy {self.numerics} keeps no state, so a call must not have one, got an empty dict. Leave it out: result = library(...).")
            return args, []
        names = [a.name for a in self._state]
        if not isinstance(given, dict) or not any(name in given for name in names):
            got = f"a dict of {len(given)} other entries" if isinstance(given, dict) else type(given).__name__ if args else "nothing"
            shown = names if len(names) <= 4 else [*names[:4], f"... ({len(names)} arrays)"]
            raise TypeError(f"{self.name}: the last argument must be the state of policy {self.numerics}, a dict of {', '.join(shown)}, got {got}. "
                            f"Start with state = library.init(), and pass the returned state to the next call: result, state = library(..., state).")  # fmt: skip
        unknown = [str(name) for name in given if name not in names]
        missing = [name for name in names if name not in given]
        if unknown or missing:
            what = f"unknown array {unknown[0]!r}. {meant(unknown[0], names)}" if unknown else f"missing array {missing[0]!r}."
            raise TypeError(f"{self.name}: state of policy {self.numerics}: {what} Pass the state that library.init() or the last call of this library returned.")
        return args[:-1], [given[name] for name in names]

    def _nest(self, results):
        """Returns the results as the caller gets them. The input has the order of `results`."""
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
        known = set(names)
        for name in named:
            if name not in known or name in given:
                twice = f"argument '{name}' is given twice. The arguments are {', '.join(names)}."
                raise TypeError(f"{self.name}: {twice if name in given else f'unknown argument {name!r}. {meant(name, names)}'}")
        given.update(named)
        missing = [name for name in names if name not in given]
        if missing:
            raise TypeError(f"{self.name}: missing argument '{missing[0]}'. The arguments are {', '.join(names)}.")
        return given


_make_operation = None


def register_operation(make) -> None:
    """Sets the function that returns a library as an operation of JAX. scalide.jax calls it when it is imported."""
    global _make_operation
    _make_operation = make


def _fits(state, before):
    """Returns True if a state array is nearly the one before it."""
    with np.errstate(invalid="ignore"):  # an infinity minus an infinity
        return np.array_equal(state, before) or bool(np.all(np.abs(state - before) <= _FITTING_CHANGE * np.abs(state)))
