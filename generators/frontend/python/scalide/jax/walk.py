"""Visits the equations of a jaxpr and writes them as nodes of a program. The rules for primitives are in `primitives`."""
from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Callable, Sequence

import jax
import numpy as np

from .. import arrays
from . import compat, complex_values
from .text import Extent, Number, Region, Value, Writer

#: The names of dtypes in Scalide by their names in JAX.
DTYPES = {str(numpy): name for name, (numpy, _) in arrays.DTYPES.items() if numpy is not None and name != "i64"}

class TraceError(NotImplementedError):
    """A function cannot become a program. The message names the source line of the user, the primitive and a suggestion."""


@dataclass
class Equation:
    """One application of a primitive. Rules get it."""

    name: str
    params: dict
    inputs: Sequence  #: abstract values (shape and dtype)
    outputs: Sequence
    place: tuple  #: its source location, and the locations of the calls around it

    def fail(self, requirement: str, got: str, way_out: str) -> TraceError:
        return TraceError(f"{compat.place_of(self.place)}: {self.name}: {requirement}, got {got}. {way_out}")


#: With jax_enable_x64, JAX gives 64 bits to indices and counters. They get 32 bits, because an array has fewer than 2^31 elements.
NARROWED = {"int64": "int32", "uint64": "uint32"}


def dtype_of(aval, fail: Callable, narrows: bool = True) -> str:
    """Returns Scalide's name for the dtype of an abstract value. `narrows`: integers of 64 bits get 32 bits, which arguments do not."""
    name = str(compat.stored_dtype(aval))
    name = NARROWED.get(name, name) if narrows else name
    if name in DTYPES:
        return DTYPES[name]
    if name in ("int64", "uint64", "float64"):
        advice = "Compute in float32" if name == "float64" else "Index by int32" if name == "int64" else "Use uint32"
        raise fail("dtypes must have at most 32 bits", name, f"{advice}, and do not set jax_enable_x64")
    if name.startswith("complex"):
        raise fail("dtypes must be real", name, "Compute with real and imaginary parts")
    raise fail("dtypes must be among " + ", ".join(DTYPES), name, "Convert the array first")


def shape_of(aval, fail: Callable) -> tuple:
    """The shape of an abstract value; a key is two words along a new last axis."""
    shape = tuple(extent_of(dimension, fail) for dimension in aval.shape)
    if not compat.is_key(aval):
        return shape
    if compat.key_scheme(aval) != "threefry2x32":
        raise fail("keys must use threefry2x32", compat.key_scheme(aval), "Use jax.random.key(seed), without impl")
    return (*shape, 2)


def extent_of(dimension, fail: Callable):
    """Returns an extent as an int, or as text if it is symbolic."""
    if isinstance(dimension, (int, np.integer)):
        return int(dimension)
    text = compat.extent_text(dimension)
    if text is None:
        raise fail("symbolic extents must be sums of products of symbols", str(dimension), "Use a separate symbol for it, or make it static")
    return Extent(text)


class Walk:
    """Writes jaxprs to `writer`. `rules` maps the name of a primitive to its rule, see `add_rule`."""

    def __init__(self, writer: Writer, rules: dict[str, Callable]):
        self.writer, self.rules = writer, rules
        self.constants: dict[str, np.ndarray] = {}  #: closed-over arrays by the name of their argument
        self.programs: list[str] = []  #: texts of sub-programs
        self._known: dict[int, Any] = {}

    def run(self, jaxpr, constants: Sequence, arguments: Sequence) -> list:
        """Returns the values of a jaxpr's results. Arguments are Values or Numbers."""
        names = dict(zip(jaxpr.constvars, constants)) | dict(zip(jaxpr.invars, arguments))

        def read(atom):
            return self.constant(atom.val, atom.aval.dtype) if isinstance(atom, compat.Literal) else names[atom]

        is_of_user = compat.is_of_user(jaxpr)
        for eqn in jaxpr.eqns:
            around = self.writer.place or ()
            place = (eqn.source_info, *around) if is_of_user else (*around, eqn.source_info)
            results = self._place(eqn, [read(atom) for atom in eqn.invars], place)
            names.update(zip(eqn.outvars, results))
        return [read(atom) for atom in jaxpr.outvars]

    def run_closed(self, jaxpr, arguments: Sequence) -> list:
        """Returns the values of the results of a closed jaxpr. 64-bit NumPy constants get the dtype that JAX gives them."""
        jaxpr, constants = compat.open_jaxpr(jaxpr)
        return self.run(jaxpr, [self.constant(array, variable.aval.dtype) for array, variable in zip(constants, jaxpr.constvars)], arguments)

    def _place(self, eqn, operands, place: tuple) -> list:
        writer = self.writer
        equation = Equation(eqn.primitive.name, eqn.params, [v.aval for v in eqn.invars], [v.aval for v in eqn.outvars], place)
        folded = self._folded(eqn, operands)
        if folded is not None:
            return folded
        is_complex = equation.name not in {*compat.CALLS, *compat.CONTROL} and any(map(complex_values.is_complex, (*equation.inputs, *equation.outputs)))
        rule = complex_values.rule_of(equation) if is_complex else self.rules.get(equation.name) or self._decomposed(eqn)
        if rule is None:
            raise unknown(equation)
        outer = writer.scope, writer.is_cotangent, writer.place
        scopes, writer.is_cotangent = compat.scopes_of(eqn, writer.is_cotangent)
        writer.scope = "/".join([*filter(None, [writer.scope]), *scopes])
        writer.place = place
        try:
            return rule(self, equation, operands)
        finally:
            writer.scope, writer.is_cotangent, writer.place = outer

    @staticmethod
    def _decomposed(eqn):
        """Returns a rule for a primitive that JAX computes by other primitives, or None."""
        jaxpr = compat.decomposition_of(eqn)
        if jaxpr is None:
            return None

        def rule(walk, equation, operands):
            try:
                return walk.run_closed(jaxpr, operands)
            except TraceError as error:  # the user knows this primitive, not those that compute it
                raise unknown(equation) from error

        return rule

    def _folded(self, eqn, operands):
        """Returns the result if all operands are numbers, such as the counter of a loop: JAX computes it. Otherwise None."""
        if not operands or not all(isinstance(operand, Number) for operand in operands) or eqn.primitive.multiple_results:
            return None
        if eqn.outvars[0].aval.shape or eqn.primitive.name in compat.CALLS or str(eqn.outvars[0].aval.dtype) not in {*DTYPES, *NARROWED}:
            return None
        numbers = [np.asarray(operand.value, v.aval.dtype) for operand, v in zip(operands, eqn.invars)]
        try:
            with jax.ensure_compile_time_eval():
                return [self.constant(np.asarray(eqn.primitive.bind(*numbers, **eqn.params)))]
        except Exception:  # a primitive that JAX cannot run here has a rule, or reports its own error
            return None

    def constant(self, array, dtype=None):
        """Returns a known array as a value: a number, a broadcast number, or a hidden argument. Python numbers get the `dtype` that JAX gave
        them."""
        if hasattr(array, "dtype") and compat.is_key(array):
            array, dtype = jax.random.key_data(array), None
        array = np.asarray(array)
        array = array if dtype is None or array.dtype == dtype else array.astype(dtype)
        if str(array.dtype) in NARROWED:
            array = self._narrowed(array)
        if array.dtype.kind == "c":
            return complex_values.pair_of(self, array)
        name = str(array.dtype)
        if array.dtype == jax.dtypes.float0:
            raise TraceError("a gradient: must be of a float argument, got float0, the gradient of an integer or bool argument. "
                             "Differentiate with respect to float arguments only")  # fmt: skip
        if name not in DTYPES:
            place = f"{compat.place_of(self.writer.place)}: " if self.writer.place else ""
            raise TraceError(f"{place}a closed-over array: dtypes must be among {', '.join(DTYPES)}, got {name}. Convert it first")
        if array.ndim == 0:
            return Number(array.item() if array.dtype.kind in "iub" else float(array), DTYPES[name])
        number = _number_of(array)
        key = id(array), number is not None and id(self.writer)  # a region has broadcast numbers of its own
        if key not in self._known:
            value = self._filled(array, number, DTYPES[name]) if number is not None else self._hidden_argument(array, DTYPES[name])
            self._known[key] = (array, self.writer, value)  # keeps both alive, so that no others get their ids
        return self._known[key][2]

    def _narrowed(self, array):
        """Returns an integer array of 64 bits in 32 bits."""
        narrow = array.astype(NARROWED[str(array.dtype)])
        if (narrow != array).any():
            place = f"{compat.place_of(self.writer.place)}: " if self.writer.place else ""
            limits = np.iinfo(narrow.dtype)
            raise TraceError(f"{place}integers must be from {limits.min} to {limits.max}, got {array.max() if (array > limits.max).any() else array.min()}. "
                             "Use integers of 32 bits")  # fmt: skip
        return narrow

    def _filled(self, array, number, dtype: str) -> Value:
        shape = list(array.shape)
        return self.emit("broadcast_in_dim", [self.constant(number)], {"shape": shape, "dims": []}, [(dtype, shape)])[0]

    def _hidden_argument(self, array, dtype: str) -> Value:
        name = self.writer.take_name(f"constant.{len(self.constants)}")
        self.constants[name] = array
        return Value(name, dtype, array.shape)

    # Functions for rules.

    def emit(self, op: str, operands: Sequence, attributes: dict, types: Sequence[tuple]) -> list[Value]:
        """Appends a node and returns its results. `types` has (dtype, shape) for each result."""
        return self.writer.emit(op, operands, attributes, types)

    def types(self, equation: Equation) -> list[tuple]:
        """Returns (dtype, shape) for each result of the primitive."""
        return [(dtype_of(aval, equation.fail), shape_of(aval, equation.fail)) for aval in equation.outputs]

    def broadcast(self, operand, shape: Sequence):
        """Broadcasts an operand of an elementwise operator. A scalar stays a scalar: nodes accept it together with any shape."""
        if not operand.shape or tuple(operand.shape) == tuple(shape):
            return operand
        attributes = {"shape": list(shape), "dims": list(range(len(shape)))}
        return self.emit("broadcast_in_dim", [operand], attributes, [(operand.dtype, shape)])[0]

    def convert(self, operand, dtype: str):
        """Casts an operand if it has another dtype."""
        if operand.dtype == dtype:
            return operand
        return self.emit("convert_element_type", [self.writer.value(operand)], {"dtype": dtype}, [(dtype, operand.shape)])[0]

    def reshape(self, operand, shape: Sequence):
        """Reshapes an operand if it has another shape."""
        if tuple(operand.shape) == tuple(shape):
            return operand
        return self.emit("reshape", [operand], {"shape": list(shape)}, [(operand.dtype, shape)])[0]

    def subprogram(self, name: str, jaxpr, dtypes: Sequence[str]) -> str:
        """Adds a sub-program of scalars. Returns its name, which nodes use to call it."""
        name = f"{name}{len(self.programs)}"
        arguments = [Value(f"x{i}", dtype, ()) for i, dtype in enumerate(dtypes)]
        walk = Walk(Writer({v.name for v in arguments}), self.rules)
        results = [walk.writer.value(value) for value in walk.run_closed(jaxpr, arguments)]
        walk.writer.drop_unused(results)
        if walk.constants:
            raise TraceError(f"{name}: a computation must not use closed-over arrays, got {len(walk.constants)}. Pass them as operands")
        heads = ", ".join(f"{v.name}: {v.dtype}[]" for v in arguments), ", ".join(f"r{i}: {v.dtype}[] = {v.name}" for i, v in enumerate(results))
        body, _ = walk.writer.body()
        self.programs += walk.programs + ["\n".join([f"program {name}({heads[0]}) -> ({heads[1]}) {{", *body, "}"])]
        return name


    def region(self, name: str, arguments: Sequence[tuple[Value, str]], results: Callable[[], Sequence]) -> Region:
        """Writes a region of a node. `results` writes its nodes and returns the values of its results. It may use values of the program around it."""
        outer = self.writer
        self.writer = Writer(around=outer)
        try:
            values = [self.writer.value(result) for result in results()]
        finally:
            inner, self.writer = self.writer, outer
        return Region(name, inner, arguments, values)


def _number_of(array: np.ndarray):
    """Returns the number that all elements of an array are, bit by bit, or None."""
    words = array.reshape(-1)
    is_one = words.size and array.dtype.kind in "iubf" and (words.view(f"u{words.itemsize}") == words[:1].view(f"u{words.itemsize}")).all()
    return words[0] if is_one else None


def unknown(equation: Equation) -> TraceError:
    """Returns the error for a primitive without a rule."""
    shown = ", ".join(f"{name}={value}" for name, value in sorted(equation.params.items()) if "jaxpr" not in name)
    operands = ", ".join(aval.str_short() for aval in equation.inputs)
    call = f"{equation.name}({operands}){f' {{{shown[:300]}}}' if shown else ''}"
    return TraceError(f"{compat.place_of(equation.place)}: JAX primitive '{equation.name}' is not supported: {call}. Rewrite the function without it, "
                      f"or add a rule: @scalide.jax.add_rule('{equation.name}') (see help(scalide.jax.add_rule))")  # fmt: skip


def warn_dropped(walk: Walk, equation: Equation) -> None:
    """Warns that a primitive with a side effect is ignored."""
    reason = "a program has no side effects" if walk.writer.around is None else "callbacks are not supported inside of loops and branches"
    warnings.warn(f"{compat.place_of(equation.place)}: {equation.name} is ignored, because {reason}", stacklevel=2)
