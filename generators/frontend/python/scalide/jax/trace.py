"""`scalide.jax.trace` turns a JAX function into a Program."""
from __future__ import annotations

import dataclasses
import fnmatch
import functools
import inspect
import math
import re
import warnings
from typing import Any, Callable, Sequence

import jax
import numpy as np
from jax import tree_util

from .. import tree
from ..program import Program
from ..saving import key_name
from ..scaled_array import ScaledArray
from ..words import is_name, meant, name_text
from . import compat, loops, primitives_windows  # noqa: F401, fill the table
from .activations import fold_activations
from .dequantization import fold_dequantization
from .primitives import RULES
from .text import Number, Value, Writer, is_float, typed
from .complex_values import Pair
from .walk import DTYPES, TraceError, Walk, dtype_of, shape_of


def trace(fn: Callable, *args, scaled: bool | str | Sequence[str] | None = None, symbolic: Any = None, static_argnums=(), static_argnames=(),
          donate_argnums=(), constant_argnums=None, constant_argnames=None, name: str | None = None, **kwargs) -> Program:  # fmt: skip
    """Returns the program of `fn(*args, **kwargs)`.

    The names of arguments are the parameter names of fn, followed by the keys: `params.dense.kernel`. The names of results are `out`,
    `out.loss` or `out.0`.

    Args:
        fn: A function that JAX can trace. It may be jitted.
        args, kwargs: Arguments for fn: arrays, numbers or `jax.ShapeDtypeStruct`s in any pytree. Only shapes and dtypes are read. A
            `ScaledArray` makes a scaled argument.
        scaled: Names of more arguments that are scaled, such as "params.*". True: all float arguments.
        symbolic: Shapes with letters, as `jax.export.symbolic_args_specs` takes them: ("b, ...", None). The library then accepts every value
            of b. Shapes from `jax.export.symbolic_shape` in args do the same.
        static_argnums, static_argnames: As in `jax.jit`. Leave these arguments out when you call the library.
        donate_argnums: As in `jax.jit`. A donated argument is updated in place if a result has its shape and dtype.
        constant_argnums, constant_argnames: The arguments whose arrays are constant, such as weights during inference, in the form of
            static_argnums and static_argnames. Closed-over arrays are then constant, too. `Library.prepare` takes the constants.
        name: The name of the program and of its C function. Default: the name of fn.

    Raises:
        ValueError: A constant argument does not exist, or it is static or donated.
        TraceError: fn uses a JAX primitive for which Scalide has no rule. The message names the source line.
    """
    plain_args, plain_kwargs, scaled_paths = _without_scales(args, kwargs)
    if symbolic is not None:
        from jax import export  # which needs absl in JAX 0.4.33

        plain_args = export.symbolic_args_specs(plain_args, symbolic)
    own = static_argnums or static_argnames or donate_argnums or not isinstance(fn, compat.JITTED)
    static = {"static_argnums": static_argnums, "static_argnames": static_argnames}
    parameters = _Parameters(fn, len(args), *((static_argnums, static_argnames) if own else compat.static_arguments(fn)))
    watched = _Watched(fn)
    jitted = jax.jit(watched.function, donate_argnums=donate_argnums, **static) if own else fn
    try:
        traced = jitted.trace(*plain_args, **plain_kwargs)
    except TypeError as error:
        raise _explained(error, parameters, plain_args, plain_kwargs) from None
    if lost := watched.lost(static, plain_args, plain_kwargs):
        warnings.warn(f"{watched.name} changes its argument {', '.join(lost)}, but a library does not change its arguments, so this update is lost. Return the "
                      "new value. Of a Flax module: split it with flax.nnx.split, pass its state, and return flax.nnx.state(module)", stacklevel=2)  # fmt: skip
    constants = parameters.constants(constant_argnums, constant_argnames, kwargs)
    signature = _Signature(parameters, traced, _Scaled(scaled, scaled_paths), constants)
    program = signature.program(name or re.sub(r"\W", "_", traced.fun_name).strip("_") or "program")

    def retrace(transformation, argnums, has_aux):
        derived = getattr(jax, transformation)(fn, argnums=argnums, has_aux=has_aux)
        return trace(derived, *args, scaled=scaled, symbolic=symbolic, static_argnums=static_argnums, static_argnames=static_argnames,
                     constant_argnums=constant_argnums, constant_argnames=constant_argnames, name=f"{program.name}_{transformation}", **kwargs)  # fmt: skip

    return dataclasses.replace(program, retrace=retrace)


class _Watched:
    """Finds the arguments of a function whose arrays the function replaces and does not return, such as an nnx.Module."""

    def __init__(self, fn):
        self.fn = fn
        self.function = fn
        self._replaced: dict[str, list] = {}  #: the new arrays by argument, of the last call
        self.name = getattr(fn, "__name__", type(fn).__name__)
        if not isinstance(fn, functools.partial):  # JAX finds the name in a functools.partial, but not in a function that calls it
            self.function = self._like_fn(lambda *args, **kwargs: self._call(*args, **kwargs))

    def _like_fn(self, function):
        """Gives a function the name and the parameters of fn. An object such as a module of Equinox has no name, and may have no hash."""
        wrapped = functools.wraps(self.fn)(function)
        wrapped.__name__ = self.name
        return wrapped

    def _call(self, *args, **kwargs):
        before = tree_util.tree_leaves((args, kwargs))
        result = self.fn(*args, **kwargs)
        known = set(map(id, [*before, *tree_util.tree_leaves(result)]))
        names = [*_Parameters(self.fn, len(args), (), ()).all_names(), *kwargs]
        replaced = {name: [leaf for leaf in tree_util.tree_leaves(argument) if isinstance(leaf, jax.Array) and id(leaf) not in known]
                    for name, argument in zip(names, (*args, *kwargs.values()))}  # fmt: skip
        self._replaced = {name: leaves for name, leaves in replaced.items() if leaves}
        return result

    def lost(self, static: dict, args, kwargs) -> list[str]:
        """Returns the names of these arguments. `static` has the static arguments of the function."""
        if not self._replaced:
            return []

        def new_arrays(*args, **kwargs):
            self._call(*args, **kwargs)
            return self._replaced

        traced = jax.jit(self._like_fn(new_arrays), **static).trace(*args, **kwargs)
        jaxpr, _ = compat.open_jaxpr(traced.jaxpr)
        changed = iter([compat.argument_number(variable, jaxpr) is None for variable in jaxpr.outvars])  # a jitted function returns arguments as new arrays
        counts = {name: len(leaves) for name, leaves in traced.out_info.items()}
        return [name for name in sorted(counts) if any([next(changed) for _ in range(counts[name])])]


def _explained(error: TypeError, parameters: _Parameters, args, kwargs) -> TypeError:
    """Returns an error that names the first argument that is no array, or that JAX cannot take apart. Otherwise returns `error`."""
    if "ArgInfo" in str(error):  # JAX 0.4.33
        return TypeError(f"an argument: its class computes with what it contains, and JAX {jax.__version__} puts objects into it that are no arrays. Use a later "
                         f"JAX, or pass the arrays of the argument and make it in the function. {error}")  # fmt: skip
    given = {**{parameters.name(place): args[place] for place in parameters.traced}, **kwargs}
    for name, argument in given.items() if str(error).startswith(compat.NO_ARRAY) else ():
        for path, leaf in tree_util.tree_flatten_with_path(argument)[0]:
            if hasattr(leaf, "dtype") or isinstance(leaf, (bool, int, float)):
                continue
            where = ".".join([name, *map(key_name, path)])
            hint = "Register its class as a pytree, or name the argument in static_argnums"
            if any(base.__module__.split(".")[0] == "equinox" for base in type(argument).__mro__):
                hint = "Split the Equinox module: arrays, rest = equinox.partition(module, equinox.is_array), and trace a function that calls equinox.combine(arrays, rest)"
            return TypeError(f"argument {where}: must be an array, a number or a pytree of them, got {type(leaf).__name__}. {hint}")
    return error


def _take_name(writer: Writer, *parts: str) -> str:
    """Takes the name of a leaf: the names on the path to it, joined by dots."""
    name = writer.take_name(".".join(parts))
    if not is_name(name):
        raise TraceError(f"{name[:100]!r}: a name must have 1 to 1000 bytes of UTF-8 without zero bytes, got {len(name)} characters. Rename the keys")
    return name


def _is_leaf(value) -> bool:
    return isinstance(value, ScaledArray)


def _without_scales(args, kwargs):
    """Returns the arguments with shapes instead of ScaledArrays, and the paths of the ScaledArrays."""
    leaves, structure = tree_util.tree_flatten_with_path((args, kwargs), is_leaf=_is_leaf)
    paths = {path for path, leaf in leaves if _is_leaf(leaf)}
    plain = [jax.ShapeDtypeStruct(np.shape(leaf.data), leaf.data.dtype) if _is_leaf(leaf) else leaf for _, leaf in leaves]
    return (*tree_util.tree_unflatten(structure, plain), paths) if paths else (args, kwargs, paths)


@dataclasses.dataclass
class _Scaled:
    """Decides which arguments are scaled: ScaledArrays (by path), and arguments that `scaled` of trace names."""

    names: bool | str | Sequence[str] | None
    paths: set

    def __call__(self, path, name: str, dtype: str) -> bool:
        if path in self.paths:
            return True
        globs = [self.names] if isinstance(self.names, str) else self.names
        return is_float(dtype) and (globs is True or any(fnmatch.fnmatchcase(name, glob) for glob in globs or ()))


def _listed(words) -> Sequence:
    """Returns a number, a name or None as a sequence."""
    return () if words is None else [words] if isinstance(words, (int, str)) else words


class _Parameters:
    """The names of a function's parameters for `count` positional arguments, and which of them are static."""

    def __init__(self, fn, count: int, static_argnums, static_argnames):
        self.names, self.rest = [], "x"
        try:
            for parameter in inspect.signature(fn).parameters.values():
                if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                    self.names.append(parameter.name)
                elif parameter.kind == parameter.VAR_POSITIONAL:
                    self.rest = parameter.name
        except (TypeError, ValueError):  # built-in functions have no signature
            pass
        self.count = count
        static = {n % count for n in _listed(static_argnums) if -count <= n < count}
        static |= {self.names.index(n) for n in _listed(static_argnames) if n in self.names}
        self.traced = [place for place in range(count) if place not in static]

    def constants(self, argnums, argnames, kwargs) -> set[int | str] | None:
        """Returns the positions and keywords of the constant arguments. None: no arguments were asked for."""
        if argnums is None and argnames is None:
            return None
        chosen: set[int | str] = set()
        for number in _listed(argnums):
            if not -self.count <= number < self.count:
                raise ValueError(f"constant_argnums: must be indices of the {self.count} positional arguments, from 0, got {number}")
            chosen.add(number % self.count)
        for name in _listed(argnames):
            known = {**{self.name(place): place for place in range(self.count)}, **{key: key for key in kwargs}}
            if name not in known:
                raise ValueError(f"constant_argnames: unknown argument '{name}'. {meant(name, known)}")
            chosen.add(known[name])
        for place in chosen:
            if isinstance(place, int) and place not in self.traced:
                raise ValueError(f"argument '{self.name(place)}' cannot be both static and constant. A static argument is part of the program already")
        return chosen

    def all_names(self) -> list[str]:
        """Returns the names of the positional arguments."""
        return [self.name(place) for place in range(self.count)]

    def name(self, place: int) -> str:
        """Returns the name of the positional argument with this number."""
        return self.names[place] if place < len(self.names) else f"{self.rest}.{place - len(self.names)}"


def argument_names(fn: Callable, args: tuple, kwargs: dict) -> list[str]:
    """Returns the names that `trace` gives to the arrays of these arguments, in the order of `tree_flatten((args, kwargs))`."""
    given = [*zip(_Parameters(fn, len(args), (), ()).all_names(), args), *sorted(kwargs.items())]
    return [".".join([name, *map(key_name, path)]) for name, argument in given for path, _ in tree_util.tree_flatten_with_path(argument)[0]]


class _JaxTree:
    """A pytree structure with containers that only JAX knows, such as Flax states and dataclasses."""

    def __init__(self, structure):
        self.structure = structure

    def flatten(self, value) -> list:
        try:
            return self.structure.flatten_up_to(value)  # a leaf may be a ScaledArray or a list
        except ValueError as error:
            raise TypeError(f"the arguments must have the tree structure of the traced arguments, {self.structure}. {error}") from None

    def parts(self) -> tuple[list[int], dict[str, int]]:
        args, kwargs = self.structure.children()
        names = sorted(_filled(self.structure)[1])
        return [child.num_leaves for child in args.children()], {name: child.num_leaves for name, child in zip(names, kwargs.children())}

    def unflatten(self, leaves) -> Any:
        return tree_util.tree_unflatten(self.structure, leaves)


_LEAF = object()  #: what classes of pytrees must accept instead of an array: JAX puts plain objects into them, too


def _filled(structure):
    """Returns the containers of a structure, with `_LEAF` instead of each array."""
    return tree_util.tree_unflatten(structure, [_LEAF] * structure.num_leaves)


def _paths_of(structure) -> list[tuple]:
    """Returns the path to each array."""
    return [path for path, _ in tree_util.tree_flatten_with_path(_filled(structure))[0]]


def _tree_of(structure):
    node = tree.node_of(_filled(structure), lambda value: value is _LEAF)
    return _JaxTree(structure) if node is NotImplemented else tree.Tree(node)


class _Signature:
    """Builds the program of a traced function: names, donated arguments and symbols."""

    def __init__(self, parameters: _Parameters, traced, is_scaled: _Scaled, constants: set[int | str] | None):
        self.parameters, self.traced, self.is_scaled, self.constants = parameters, traced, is_scaled, constants
        self.in_structure, self.donated, self.out_structure = compat.trees_of(traced)
        self.paths, self.out_paths = _paths_of(self.in_structure), _paths_of(self.out_structure)
        self.writer = Writer()

    def program(self, name: str) -> Program:
        jaxpr, _ = compat.open_jaxpr(self.traced.jaxpr)
        arguments = [self._argument(path, variable.aval) for path, variable in zip(self.paths, jaxpr.invars)]
        walk = Walk(self.writer, RULES)
        self.writer.place = (place,) if (place := compat.caller_place()) else None
        results = walk.run_closed(self.traced.jaxpr, arguments)
        results = [self._result(walk, result, path) for result, path in zip(results, self.out_paths)]
        for writer in walk.writer.all_writers():
            fold_activations(writer)
            fold_dequantization(writer)
        walk.writer.drop_unused(results)
        hidden = [Value(constant, DTYPES[str(array.dtype)], array.shape) for constant, array in walk.constants.items()]
        overwritten = self._donated(arguments, results)
        lines, places = self._text(name, [*arguments, *hidden], results, overwritten, walk)
        places = [place and compat.Place(place) for place in places]
        return Program("\n".join(lines) + "\n", _tree_of(self.in_structure), _tree_of(self.out_structure), walk.constants, places=places)

    @staticmethod
    def _result(walk: Walk, result, path) -> Value:
        if isinstance(result, Pair):
            name = "".join(f".{key_name(key)}" for key in path)
            raise TraceError(f"result out{name}: dtypes must be real, got complex64. Return the real and the imaginary part")
        return walk.writer.value(result)

    def _argument(self, path, aval) -> Value:
        """Returns the value of an argument. A path is: args or kwargs, the argument, then keys."""
        side, which, *keys = path
        place = self.parameters.traced[which.idx] if side.idx == 0 else None
        name = self.parameters.name(place) if side.idx == 0 else key_name(which)
        name = _take_name(self.writer, name, *map(key_name, keys))

        def fail(requirement, got, way_out):
            return TraceError(f"argument {name}: {requirement}, got {got}. {way_out}")

        dtype = dtype_of(aval, fail, narrows=False)
        full_path = path if place is None else (side, tree_util.SequenceKey(place), *keys)
        return Value(name, dtype, shape_of(aval, fail), self.is_scaled(full_path, name, dtype))

    def _donated(self, arguments, results) -> dict[int, Value]:
        """Maps the number of a result to the donated argument that it overwrites. Equal paths go first, then equal types."""
        free = {i: argument for i, (donated, argument) in enumerate(zip(self.donated, arguments)) if donated}
        overwritten: dict[int, Value] = {}
        for same in (lambda i, o: self.paths[i][2:] in (self.out_paths[o][1:], self.out_paths[o]), lambda i, o: True):
            for o, result in enumerate(results):
                fitting = [i for i, a in free.items() if (a.dtype, a.shape) == (result.dtype, result.shape) and same(i, o)]
                if fitting and o not in overwritten:
                    overwritten[o] = free.pop(fitting[0])
        return overwritten

    def _text(self, name, arguments, results, overwritten, walk):
        inouts = {argument.name for argument in overwritten.values()}
        constants = self._constant_names(arguments)
        declared = [type_of(a) + " inout" * (a.name in inouts) + " constant" * (a.name in constants) for a in arguments]
        made = []
        for number, (path, result) in enumerate(zip(self.out_paths, results)):
            if number in overwritten:
                made.append(f"{name_text(overwritten[number].name)} = {name_text(result.name)}")
            else:
                own = _take_name(self.writer, "out", *map(key_name, path))
                made.append(f"{type_of(result, own)} = {name_text(result.name)}")
        symbols = self._symbols()
        head = f"program {name_text(name)}" + (f" [{', '.join(symbols)}]" if symbols else "")
        signature = f"{head}({', '.join(declared)}) -> ({', '.join(made)}) {{"
        body, places = walk.writer.body()
        programs = "\n".join(walk.programs).splitlines()
        return [*programs, signature, *body, "}"], [*[None] * (len(programs) + 1), *places, None]

    def _constant_names(self, arguments) -> set[str]:
        """Returns the names of the constant arguments. `arguments` ends with the closed-over arrays."""
        if self.constants is None:
            return set()
        names = {argument.name for argument in arguments[len(self.paths) :]}
        for path, donated, argument in zip(self.paths, self.donated, arguments):
            side, which, *_ = path
            place = self.parameters.traced[which.idx] if side.idx == 0 else which.key
            if place not in self.constants:
                continue
            if donated:
                raise ValueError(f"argument '{argument.name}' cannot be both donated and constant. Remove it from one of the lists")
            names.add(argument.name)
        return names

    def _symbols(self) -> list[str]:
        """Returns the declarations of symbols, such as `b in 8..4096 step 16`, from the constraints of jax.export.symbolic_shape."""
        dimensions = [d for v in self.traced.jaxpr.jaxpr.invars for d in v.aval.shape if not isinstance(d, (int, np.integer))]
        bounds = {symbol: _Bounds() for dimension in dimensions for symbol in sorted(compat.symbols_of(dimension))}
        constraints = list(dict.fromkeys(sum(map(compat.constraints_of, dimensions), [])))
        replaced = {constraint.split("==")[0].strip() for constraint in constraints}
        for constraint in constraints:
            if not _is_taken(constraint, bounds, replaced):
                raise TraceError(f"symbolic shape: a constraint must bound, divide or replace one symbol, got '{constraint}'. "
                                 "Write it as 'b >= 8', 'b <= 64', 'mod(b, 16) == 0' or 'b == 2*c', or leave it out if the function does not need it")  # fmt: skip
        return [f"{symbol} in {of.low}..{of.high}" + f" step {of.step}" * (of.step > 1) for symbol, of in bounds.items()]


@dataclasses.dataclass
class _Bounds:
    """The bounds that the program declares for a symbol."""

    low: int = 1
    high: int = 2**31 - 1
    step: int = 1


#: The supported constraints. JAX adds the last but one to each mod. In the last one, JAX replaces the symbol by the right side.
_CONSTRAINTS = (r"(?P<symbol>\w+)(?P<relation>>=|<=)(?P<number>-?\d+)", r"(?P<number>-?\d+)(?P<relation>>=|<=)(?P<symbol>\w+)",
                r"mod\((?P<symbol>\w+),(?P<step>\d+)\)==0", r"(?P<step>\d+)\*floordiv\((?P<symbol>\w+),(?P=step)\)==(?P=symbol)",
                r"(?P<replaced>\w+)==.+")  # fmt: skip


def _is_taken(constraint: str, bounds: dict[str, _Bounds], replaced: set[str]) -> bool:
    """Narrows the bounds by a constraint. Returns False if bounds cannot express the constraint."""
    text = constraint.replace(" ", "")
    matches = filter(None, (re.fullmatch(pattern, text) for pattern in _CONSTRAINTS))
    found = (match := next(matches, None)) and match.groupdict()
    if not found or "replaced" in found:
        return bool(found) and found["replaced"] not in bounds
    of = bounds.get(found["symbol"])
    if of is None:  # a symbol of another program, or a replaced symbol, which has no bounds
        return found["symbol"] not in replaced
    if "step" in found:
        of.step = math.lcm(of.step, int(found["step"]))
    elif (found["relation"] == ">=") == text.startswith(found["symbol"]):
        of.low = max(of.low, int(found["number"]))
    else:
        of.high = min(of.high, int(found["number"]))
    return True


def type_of(value: Value, name: str | None = None) -> str:
    return typed(value, name or value.name) + " scaled" * value.scaled
