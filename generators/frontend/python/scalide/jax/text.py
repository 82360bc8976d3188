"""Writes the text form of a program (`.scl`), node by node."""
from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Sequence

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


@dataclass
class Line:
    text: str
    scope: str
    place: Any  #: the source location, for messages
    is_cotangent: bool = False
    makes: Sequence[Value] = ()
    reads: Sequence[Value] = ()


class Writer:
    """Collects the nodes of one program. Results get the names `v0`, `v1`, ... that no argument has."""

    def __init__(self, taken=()):
        self.lines: list[Line] = []
        self.scope, self.is_cotangent, self.place = "", False, None
        self._taken, self._count, self._constants = set(taken), 0, {}
        self.nodes: dict[str, tuple] = {}  #: (op, operands, attributes) by the name of a result

    def _fresh(self) -> str:
        while True:
            name = f"v{self._count}"
            self._count += 1
            if name not in self._taken:
                return name

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
        results = [Value(self.take_name(name) if name and is_name(name) else self._fresh(), dtype, tuple(shape), scaled and is_float(dtype)) for dtype, shape in types]
        self.lines.append(Line("", self.scope, self.place, self.is_cotangent, results))
        self._write(self.lines[-1], op, operands, attributes)
        return results

    def _write(self, line: Line, op: str, operands: Sequence, attributes: dict) -> None:
        texts = [name_text(operand.name) if isinstance(operand, Value) else number_text(operand.value) for operand in operands]
        text = f"{', '.join(name_text(v.name) for v in line.makes)} = {op}({', '.join(texts)})"
        if attributes:
            text += " {" + ", ".join(f"{name}: {attribute_text(value)}" for name, value in attributes.items()) + "}"
        line.text = text + " : " + ", ".join(type_text(v.dtype, v.shape) for v in line.makes) + " cotangent" * line.is_cotangent
        line.reads = [operand for operand in operands if isinstance(operand, Value)]
        self.nodes.update((v.name, (op, operands, attributes)) for v in line.makes)

    def rewrite(self, line: Line, op: str, operands: Sequence, attributes: dict | None = None) -> None:
        """Replaces the node of a line by another node with the same result."""
        self._write(line, op, operands, attributes or {})

    def drop_unused(self, results: Sequence[Value]) -> None:
        """Removes the nodes that these results do not need."""
        used, kept = {value.name for value in results}, []
        for line in reversed(self.lines):
            if not line.makes or any(value.name in used for value in line.makes):
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
        for line in [*self.lines, Line("", "", None)]:
            if line.scope != scope:
                if scope:
                    texts.append(indent + "}")
                    places.append(None)
                if line.scope:
                    texts.append(f"{indent}scope {quoted(line.scope)} {{")
                    places.append(None)
                scope = line.scope
            texts.append(indent * (2 if scope else 1) + line.text)
            places.append(line.place)
        return texts[:-1], places[:-1]


def is_float(dtype: str) -> bool:
    return dtype[0] in "fb" and dtype != "bool"
