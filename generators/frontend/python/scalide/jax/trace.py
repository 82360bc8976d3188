"""`scalide.jax.trace`: a JAX function becomes a Program."""
from __future__ import annotations

import dataclasses
import fnmatch
import inspect
import math
import re
from typing import Any, Callable, Sequence

import jax
import numpy as np
from jax import tree_util

from .. import tree
from ..program import Program
from ..saving import key_name
from ..scaled_array import ScaledArray
from ..words import is_name, name_text
from . import compat, primitives_windows  # noqa: F401, fills the table
from .activations import fold_activations
from .primitives import RULES
from .text import Number, Value, Writer, is_float, type_text
from .walk import DTYPES, TraceError, Walk, dtype_of, shape_of


def trace(fn: Callable, *args, scaled: bool | str | Sequence[str] | None = None, symbolic: Any = None, static_argnums=(), static_argnames=(),
          donate_argnums=(), name: str | None = None, **kwargs) -> Program:  # fmt: skip
    """The program of `fn(*args, **kwargs)`.

    fn:       a function that JAX can trace, jitted or not
    args:     arrays, `jax.ShapeDtypeStruct`s or nests of them; a `ScaledArray` is an argument with a scale of its own
    scaled:   names of arguments, such as "params.*", that are scaled too; True: all of floats
    symbolic: shapes with letters for arguments, as `jax.export.symbolic_args_specs` takes them: ("b, ...", None); one library then serves
              every extent. Shapes from `jax.export.symbolic_shape` in args do the same
    static_argnums, static_argnames: as in jax.jit; leave these arguments out when you call the library
    donate_argnums: as in jax.jit; a donated argument with a result of its shape and dtype is overwritten by it (inout)
    name:     of the program and its C function; that of fn when left out

    Arguments are named by the function's parameters and the keys below them as they are, `params.dense.kernel`, `params.layer 0.kernel`;
    results `out`, `out.loss`, `out.0`.
    Throws TraceError, which names the line of the file, when the function uses what Scalide has no rule for.
    """
    plain_args, plain_kwargs, scaled_paths = _without_scales(args, kwargs)
    if symbolic is not None:
        from jax import export  # which needs absl in JAX 0.4.33

        plain_args = export.symbolic_args_specs(plain_args, symbolic)
    own = static_argnums or static_argnames or donate_argnums or not isinstance(fn, compat.JITTED)
    jitted = jax.jit(fn, static_argnums=static_argnums, static_argnames=static_argnames, donate_argnums=donate_argnums) if own else fn
    traced = jitted.trace(*plain_args, **plain_kwargs)
    parameters = _Parameters(fn, len(args), *((static_argnums, static_argnames) if own else compat.static_arguments(fn)))
    signature = _Signature(parameters, traced, _Scaled(scaled, scaled_paths))
    program = signature.program(name or re.sub(r"\W", "_", traced.fun_name).strip("_") or "program")

    def retrace(transformation, argnums, has_aux):
        derived = getattr(jax, transformation)(fn, argnums=argnums, has_aux=has_aux)
        return trace(derived, *args, scaled=scaled, symbolic=symbolic, static_argnums=static_argnums, static_argnames=static_argnames,
                     name=f"{program.name}_{transformation}", **kwargs)  # fmt: skip

    return dataclasses.replace(program, retrace=retrace)


def _take_name(writer: Writer, *parts: str) -> str:
    """The name of a leaf, of the names on the way to it."""
    name = writer.take_name(".".join(parts))
    if not is_name(name):
        raise TraceError(f"{name[:100]!r}: a name must have 1 to 1000 bytes of UTF-8 without zero bytes, got {len(name)} characters. Rename the keys")
    return name


def _is_leaf(value) -> bool:
    return isinstance(value, ScaledArray)


def _without_scales(args, kwargs):
    """Arguments with shapes in the place of ScaledArrays, and the paths of these."""
    leaves, structure = tree_util.tree_flatten_with_path((args, kwargs), is_leaf=_is_leaf)
    paths = {path for path, leaf in leaves if _is_leaf(leaf)}
    plain = [jax.ShapeDtypeStruct(np.shape(leaf.data), leaf.data.dtype) if _is_leaf(leaf) else leaf for _, leaf in leaves]
    return (*tree_util.tree_unflatten(structure, plain), paths) if paths else (args, kwargs, paths)


@dataclasses.dataclass
class _Scaled:
    """Which arguments are scaled: ScaledArrays, by path, and those that `scaled` of trace names."""

    names: bool | str | Sequence[str] | None
    paths: set

    def __call__(self, path, name: str, dtype: str) -> bool:
        if path in self.paths:
            return True
        globs = [self.names] if isinstance(self.names, str) else self.names
        return is_float(dtype) and (globs is True or any(fnmatch.fnmatchcase(name, glob) for glob in globs or ()))


class _Parameters:
    """The parameters of a function for `count` positional arguments: their names, and which are static."""

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
        numbers = [static_argnums] if isinstance(static_argnums, int) else static_argnums
        named = [static_argnames] if isinstance(static_argnames, str) else static_argnames
        static = {n % count for n in numbers if -count <= n < count} | {self.names.index(n) for n in named if n in self.names}
        self.traced = [place for place in range(count) if place not in static]

    def name(self, place: int) -> str:
        """Of the positional argument of this number."""
        return self.names[place] if place < len(self.names) else f"{self.rest}.{place - len(self.names)}"


class _JaxTree:
    """A structure with containers that only JAX knows: Flax's, dataclasses."""

    def __init__(self, structure):
        self.structure = structure

    def flatten(self, value) -> list:
        try:
            return self.structure.flatten_up_to(value)  # what stands for an array may be a ScaledArray or a list
        except ValueError as error:
            raise TypeError(f"the arguments must have the tree structure of the traced arguments, {self.structure}. {error}") from None

    def unflatten(self, leaves) -> Any:
        return tree_util.tree_unflatten(self.structure, leaves)


def _tree_of(structure):
    leaf = object()
    node = tree.node_of(tree_util.tree_unflatten(structure, [leaf] * structure.num_leaves), lambda value: value is leaf)
    return _JaxTree(structure) if node is NotImplemented else tree.Tree(node)


class _Signature:
    """The program of a traced function, with names, donated arguments and symbols."""

    def __init__(self, parameters: _Parameters, traced, is_scaled: _Scaled):
        self.parameters, self.traced, self.is_scaled = parameters, traced, is_scaled
        self.infos, self.in_structure = tree_util.tree_flatten_with_path(traced.args_info)
        self.out_infos, self.out_structure = tree_util.tree_flatten_with_path(traced.out_info)
        self.writer = Writer()

    def program(self, name: str) -> Program:
        jaxpr, _ = compat.open_jaxpr(self.traced.jaxpr)
        arguments = [self._argument(path, variable.aval) for (path, _), variable in zip(self.infos, jaxpr.invars)]
        walk = Walk(self.writer, RULES)
        results = walk.run_closed(self.traced.jaxpr, arguments)
        results = [walk.writer.value(result) for result in results]
        fold_activations(walk.writer)
        walk.writer.drop_unused(results)
        hidden = [Value(constant, DTYPES[str(array.dtype)], array.shape) for constant, array in walk.constants.items()]
        overwritten = self._donated(arguments, results)
        lines, places = self._text(name, [*arguments, *hidden], results, overwritten, walk)
        return Program("\n".join(lines) + "\n", _tree_of(self.in_structure), _tree_of(self.out_structure), walk.constants, places=places)

    def _argument(self, path, aval) -> Value:
        """Paths have `(args, kwargs)`, which of them, then keys."""
        side, which, *keys = path
        place = self.parameters.traced[which.idx] if side.idx == 0 else None
        name = self.parameters.name(place) if side.idx == 0 else key_name(which)
        name = _take_name(self.writer, name, *map(key_name, keys))

        def fail(requirement, got, way_out):
            return TraceError(f"argument {name}: {requirement}, got {got}. {way_out}")

        dtype = dtype_of(aval, fail)
        full_path = path if place is None else (side, tree_util.SequenceKey(place), *keys)
        return Value(name, dtype, shape_of(aval, fail), self.is_scaled(full_path, name, dtype))

    def _donated(self, arguments, results) -> dict[int, Value]:
        """Result number to the argument that it overwrites: of equal path first, then of equal type."""
        free = {i: argument for i, ((_, info), argument) in enumerate(zip(self.infos, arguments)) if info.donated}
        overwritten: dict[int, Value] = {}
        for same in (lambda i, o: self.infos[i][0][2:] == self.out_infos[o][0][1:] or self.infos[i][0][2:] == self.out_infos[o][0], lambda i, o: True):
            for o, result in enumerate(results):
                fitting = [i for i, a in free.items() if (a.dtype, a.shape) == (result.dtype, result.shape) and same(i, o)]
                if fitting and o not in overwritten:
                    overwritten[o] = free.pop(fitting[0])
        return overwritten

    def _text(self, name, arguments, results, overwritten, walk):
        inouts = {argument.name for argument in overwritten.values()}
        declared = [type_of(a) + " inout" * (a.name in inouts) for a in arguments]
        made = []
        for number, ((path, _), result) in enumerate(zip(self.out_infos, results)):
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

    def _symbols(self) -> list[str]:
        """`b in 8..4096 step 16`, as the constraints of jax.export.symbolic_shape say."""
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
    """What the program declares of a symbol."""

    low: int = 1
    high: int = 2**31 - 1
    step: int = 1


#: The constraints that have a meaning here. The last but one is what JAX adds to mod; JAX puts the right side of the last in place of its symbol.
_CONSTRAINTS = (r"(?P<symbol>\w+)(?P<relation>>=|<=)(?P<number>-?\d+)", r"(?P<number>-?\d+)(?P<relation>>=|<=)(?P<symbol>\w+)",
                r"mod\((?P<symbol>\w+),(?P<step>\d+)\)==0", r"(?P<step>\d+)\*floordiv\((?P<symbol>\w+),(?P=step)\)==(?P=symbol)",
                r"(?P<replaced>\w+)==.+")  # fmt: skip


def _is_taken(constraint: str, bounds: dict[str, _Bounds], replaced: set[str]) -> bool:
    """Narrows the bounds by a constraint. False when it says what bounds cannot."""
    text = constraint.replace(" ", "")
    matches = filter(None, (re.fullmatch(pattern, text) for pattern in _CONSTRAINTS))
    found = (match := next(matches, None)) and match.groupdict()
    if not found or "replaced" in found:
        return bool(found) and found["replaced"] not in bounds
    of = bounds.get(found["symbol"])
    if of is None:  # a symbol of other programs, or one that is replaced, of which nothing can be said
        return found["symbol"] not in replaced
    if "step" in found:
        of.step = math.lcm(of.step, int(found["step"]))
    elif (found["relation"] == ">=") == text.startswith(found["symbol"]):
        of.low = max(of.low, int(found["number"]))
    else:
        of.high = min(of.high, int(found["number"]))
    return True


def type_of(value: Value, name: str | None = None) -> str:
    return f"{name_text(name or value.name)}: {type_text(value.dtype, value.shape)}" + " scaled" * value.scaled
