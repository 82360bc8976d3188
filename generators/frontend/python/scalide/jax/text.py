"""Writes the text form of a program (`.scl`), node by node."""
from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, Mapping, Sequence

from ..words import is_name, name_text, quoted

#: Operators that accept a number as an operand. The number gets the dtype of the other operand.
TAKE_NUMBERS = frozenset("add sub mul div rem max min pow eq ne lt le gt ge and or xor shift_left shift_right_logical "
                         "shift_right_arithmetic atan2 nextafter".split())
BARE_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_./]*\Z")


@dataclass(frozen=True)
class Value:
    """An array of the program: an argument, or the result of a node. An extent is an int, or text such as `2*b`."""

    name: str
    dtype: str
    shape: tuple
    scaled: bool = False


@dataclass(frozen=True)
class Number:
    """A scalar that is known while JAX traces."""

    value: Any
    dtype: str
    shape: tuple = ()
    scaled: bool = False


def number_text(value) -> str:
    """Returns the text of a number, which reads back as the same number: 2, 0.1, -inf, nan."""
    return str(int(value)) if isinstance(value, (bool, int)) or getattr(value, "dtype", None) is not None and value.dtype.kind in "iub" else repr(float(value))


def attribute_text(value) -> str:
    """Returns the text of an attribute of a node: integers, extents and words, in nested lists."""
    if isinstance(value, Extent):
        return str(value)
    if isinstance(value, str):
        return value if BARE_WORD.match(value) else quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(attribute_text, value)) + "]"
    return number_text(value)


class Extent(str):
    """The text of a symbolic extent, `2*b + 1`."""


def type_text(dtype: str, shape: Sequence) -> str:
    return f"{dtype}[{', '.join(map(str, shape))}]"


def typed(value: Value, name: str) -> str:
    """Returns a declaration with the type of a value, `name: f32[2]`."""
    return f"{name_text(name)}: {type_text(value.dtype, value.shape)}"


@dataclass
class Line:
    """A node."""

    scope: str
    place: Any  #: the source location, for messages
    is_cotangent: bool = False
    makes: Sequence[Value] = ()
    op: str = ""
    operands: Sequence = ()
    attributes: Mapping[str, Any] = field(default_factory=dict)
    regions: Sequence[Region] = ()  #: the programs that the node owns
    captures: Sequence[Value] = ()  #: what these programs read besides their own arguments: the operands after the `leading` ones
    leading: int = 0

    @property
    def reads(self) -> list[Value]:
        return [*self.captures, *(operand for operand in self.operands if isinstance(operand, Value))]

    def head(self) -> str:
        """Returns the text up to the regions."""
        operands = [*self.operands[: self.leading], *self.captures, *self.operands[self.leading :]]
        texts = [name_text(operand.name) if isinstance(operand, Value) else number_text(operand.value) for operand in operands]
        text = f"{', '.join(name_text(v.name) for v in self.makes)} = {self.op}({', '.join(texts)})"
        if self.attributes:
            text += " {" + ", ".join(f"{name}: {attribute_text(value)}" for name, value in self.attributes.items()) + "}"
        return text + " : " + ", ".join(type_text(v.dtype, v.shape) for v in self.makes) + " cotangent" * self.is_cotangent + " with" * bool(self.regions)


@dataclass
class Region:
    """A program that a node owns: the body of a loop, its test, or a branch. It may read values of the program around it, by their names."""

    name: str
    writer: Writer
    arguments: Sequence[tuple[Value, str]]  #: with the word after the type: "inout", "each", "step" or ""
    results: Sequence[Value]  #: first the new values of the inout arguments, in their order

    def captures(self) -> list[Value]:
        """Returns the values of the program around it that it reads, each once."""
        own = {argument.name for argument, _ in self.arguments} | {value.name for line in self.writer.lines for value in line.makes}
        read = {value.name: value for line in self.writer.lines for value in line.reads} | {value.name: value for value in self.results}
        return [value for name, value in read.items() if name not in own]

    def head(self, captures: Sequence[Value]) -> str:
        """Returns the text up to the body. All regions of a node have the same arguments, so `captures` may have more than this one reads."""
        declared = [*((value, "") for value in captures), *self.arguments]
        arguments = [" ".join(filter(None, [typed(value, value.name), word])) for value, word in declared]
        carries = [argument.name for argument, word in self.arguments if word == "inout"]
        results = [f"{name_text(name)} = {name_text(value.name)}" for name, value in zip(carries, self.results)]
        results += [f"{typed(value, self.writer.fresh_name())} = {name_text(value.name)}" for value in self.results[len(carries) :]]
        return f"{self.name}({', '.join(arguments)}) -> ({', '.join(results)}) {{"


class Writer:
    """Collects the nodes of one program. Results get the names `v0`, `v1`, ... that no argument has.

    The writer of a region shares the names with the writer around it. A name then says which value it is, also in a region that reads it."""

    def __init__(self, taken=(), around: Writer | None = None):
        self.lines: list[Line] = []
        self.scope, self.is_cotangent, self.place = "", around is not None and around.is_cotangent, around and around.place
        self.around = around
        self._constants: dict[tuple, Value] = {}
        self._taken: set[str] = around._taken if around else set(taken)
        self._numbers: Iterator[int] = around._numbers if around else itertools.count()
        self.nodes: dict[str, tuple] = around.nodes if around else {}  #: (op, operands, attributes) by the name of a result

    def fresh_name(self) -> str:
        return next(name for name in map("v{}".format, self._numbers) if name not in self._taken)

    def take_name(self, name: str) -> str:
        """Reserves a name and returns it. It gets a numeric suffix if another value has the name."""
        fresh, count = name, 1
        while fresh in self._taken:
            fresh, count = f"{name}_{count}", count + 1
        self._taken.add(fresh)
        return fresh

    def emit(self, op: str, operands: Sequence, attributes: dict, types: Sequence[tuple], name: str | None = None) -> list[Value]:
        """Appends a node and returns its results. `types` has (dtype, shape) for each result. `name` is the wish for their names."""
        operands = [self._operand(op, operand, operands) for operand in operands]
        scaled = any(operand.scaled for operand in operands)
        results = [Value(self.take_name(name) if name and is_name(name) else self.fresh_name(), dtype, tuple(shape), scaled and is_float(dtype)) for dtype, shape in types]
        self.lines.append(Line(self.scope, self.place, self.is_cotangent, results))
        self.rewrite(self.lines[-1], op, operands, attributes)
        return results

    def emit_regions(self, op: str, operands: Sequence[Value], attributes: dict, results: Sequence[tuple], regions: Sequence[Region], leading: int = 0) -> list[Value]:
        """Appends a node that owns programs, and returns its results.

        Args:
            op: The operator.
            operands: The first `leading` ones decide about steps or branches. The others are for the arguments of the regions, without `step`.
            attributes: The attributes.
            results: (dtype, shape, scaled) for each result.
            regions: The programs.
            leading: A number of operands.
        """
        makes = [Value(self.fresh_name(), dtype, tuple(shape), scaled and is_float(dtype)) for dtype, shape, scaled in results]
        self.lines.append(Line(self.scope, self.place, self.is_cotangent, makes, op, operands, attributes, regions, leading=leading))
        return makes

    def rewrite(self, line: Line, op: str, operands: Sequence, attributes: dict | None = None) -> None:
        """Replaces the node of a line by another node with the same result."""
        line.op, line.operands, line.attributes = op, operands, attributes or {}
        self.nodes.update((v.name, (op, operands, line.attributes)) for v in line.makes)

    def all_writers(self) -> Iterator[Writer]:
        """Returns the writers of all regions, inner ones first, and this writer."""
        for line in self.lines:
            for region in line.regions:
                yield from region.writer.all_writers()
        yield self

    def drop_unused(self, results: Sequence[Value]) -> None:
        """Removes the nodes that these results do not need, also in regions. Finds what regions read of the program around them."""
        used, kept = {value.name for value in results}, []
        for line in reversed(self.lines):
            if not line.makes or any(value.name in used for value in line.makes):
                for region in line.regions:
                    region.writer.drop_unused(region.results)
                line.captures = list({value.name: value for region in line.regions for value in region.captures()}.values())
                used.update(value.name for value in line.reads)
                kept.append(line)
        self.lines = kept[::-1]

    def value(self, operand) -> Value:
        """Returns the operand. A number becomes a constant node."""
        if isinstance(operand, Value):
            return operand
        key = (number_text(operand.value), operand.dtype)
        if key not in self._constants:
            number = int(operand.value) if operand.dtype == "bool" else operand.value
            attributes = {"value": number} if operand.dtype == "f32" else {"value": number, "dtype": operand.dtype}
            (self._constants[key],) = self.emit("constant", (), attributes, [(operand.dtype, ())])
        return self._constants[key]

    def _operand(self, op, operand, operands):
        """Returns the operand as the node needs it: a number if the operator accepts one, otherwise a value."""
        if isinstance(operand, Number) and op in TAKE_NUMBERS:
            beside = [o.dtype for o in operands if isinstance(o, Value)]
            if beside and beside[0] == operand.dtype and operand.dtype != "bool":
                return operand
        return self.value(operand)

    def body(self, indent: str = "  ") -> tuple[list[str], list]:
        """Returns the lines of the body, and the source location of each line."""
        texts, places, scope = [], [], ""

        def write(text: str, depth: int, place=None) -> None:
            texts.append("  " * depth + indent + text)
            places.append(place)

        for line in [*self.lines, None]:
            if (line.scope if line else "") != scope:
                if scope:
                    write("}", 0)
                scope = line.scope if line else ""
                if scope:
                    write(f"scope {quoted(scope)} {{", 0)
            if line:
                write(line.head(), bool(scope), line.place)
                self._write_regions(line, write)
        return texts, places

    @staticmethod
    def _write_regions(line: Line, write: Callable) -> None:
        depth = 2 if line.scope else 1
        for number, region in enumerate(line.regions, 1):
            write(region.head(line.captures), depth, line.place)
            for text, place in zip(*region.writer.body("")):
                write(text, depth + 1, place)
            write("}" + "," * (number < len(line.regions)), depth)


def is_float(dtype: str) -> bool:
    return dtype[0] in "fb" and dtype != "bool"
