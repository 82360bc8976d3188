"""What stands before the nodes of a program: its name, arguments and results, out of the text."""
from __future__ import annotations

import dataclasses
import re

from .words import name_text, unquoted


@dataclasses.dataclass(frozen=True)
class Spec:
    """An argument or a result of a program."""

    name: str
    dtype: str  #: "f32", "f8_e4m3fn", ...
    shape: tuple[int | str, ...]  #: symbolic extents are text, "2*b"
    scaled: bool = False  #: carries its own scale
    inout: bool = False  #: an argument that is overwritten, a result that overwrites the argument of its name

    def is_float(self) -> bool:
        return self.dtype[0] in "fb" and self.dtype != "bool"

    def __str__(self):
        return f"{name_text(self.name)}: {self.dtype}[{', '.join(map(str, self.shape))}]" + " scaled" * self.scaled + " inout" * self.inout


@dataclasses.dataclass(frozen=True)
class Signature:
    """Of the last program of a text, whose other programs it calls."""

    name: str
    inputs: tuple[Spec, ...]
    outputs: tuple[Spec, ...]
    symbols: str  #: "[b in 1..64]" as it stands, or ""
    arguments: str  #: "x: f32[b], ..." as they stand
    types: tuple[tuple[Spec, int], ...]  #: what is declared with a type, and where in the text that ends


_START = re.compile(r'^[ \t]*program\s+(?=[\w$"])', re.M)  # a node that makes a value `program` goes on with = or a comma
_TOKEN = re.compile(r'(?:\s|#[^\n]*)*("(?:\\.|[^"\\\n])*"|->|[\w.$/]+|[^\s#]|\Z)')


def read_signature(text: str) -> Signature:
    """Throws ValueError for text that has no program."""
    starts = [found.end() for found in _START.finditer(text)]
    if not starts:
        raise _refusal(text)
    return _Reader(text, starts[-1]).signature()


def _refusal(text: str) -> ValueError:
    return ValueError("program: must be text of the form 'program name(x: f32[2]) -> (y: f32[2]) { ... }', got " + repr(text[:40]))


class _Reader:
    """The tokens of a text from a place on."""

    def __init__(self, text: str, place: int):
        self.text, self.place = text, place

    def peek(self) -> str:
        return _TOKEN.match(self.text, self.place)[1]

    def take(self) -> str:
        found = _TOKEN.match(self.text, self.place)
        self.place = found.end()
        return found[1]

    def accept(self, token: str) -> bool:
        found = self.peek() == token
        if found:
            self.take()
        return found

    def expect(self, token: str) -> None:
        if self.take() != token:
            raise _refusal(self.text)

    def name(self) -> str:
        token = self.take()
        if not re.match(r'[\w$"]', token):
            raise _refusal(self.text)
        return unquoted(token) if token[0] == '"' else token

    def group(self, opening: str, closing: str) -> str:
        """`[...]` as it stands; nothing when something else comes."""
        if self.peek() != opening:
            return ""
        self.take()
        start, depth = self.place - 1, 1
        while depth:
            token = self.take()
            if not token:
                raise _refusal(self.text)
            depth += (token == opening) - (token == closing)
        return self.text[start : self.place]

    def typed(self, name: str) -> Spec:
        """What stands behind `name:`."""
        dtype, extents = self.take(), self.group("[", "]")[1:-1]
        self.ends.append(self.place)
        words = []
        while self.peek() not in (",", ")", "=", ""):
            words.append(self.take())
            if words[-1] == "of":  # a part, of an array that may have any name
                self.take()
        shape = tuple(int(extent) if extent.strip().isdigit() else extent.strip() for extent in extents.split(",") if extent.strip())
        return Spec(name, dtype, shape, "scaled" in words, "inout" in words)

    def sequence(self, item) -> tuple:
        """`(item, item)`"""
        self.expect("(")
        items = []
        while not self.accept(")"):
            items.append(item())
            if self.peek() != ")":
                self.expect(",")
        return tuple(items)

    def argument(self) -> Spec:
        name = self.name()
        self.expect(":")
        return self.typed(name)

    def signature(self) -> Signature:
        self.ends: list[int] = []  #: of types, in their order
        program = self.name()
        self.group("{", "}")
        symbols = self.group("[", "]")
        start = _TOKEN.match(self.text, self.place).end()  # behind the parenthesis
        inputs = self.sequence(self.argument)
        arguments = self.text[start : self.place - 1]
        by_name, declared = {spec.name: spec for spec in inputs}, list(inputs)

        def result() -> Spec:
            name = self.name()
            if self.accept(":"):
                spec = self.typed(name)
                declared.append(spec)
            elif name in by_name:
                spec = by_name[name]
            else:
                raise ValueError(f"program: {program}.{name}: must be a result 'name: dtype[extents]', or 'argument = value', got {name_text(name)!r}")
            if self.accept("="):
                self.name()
            return spec

        self.expect("->")
        outputs = self.sequence(result)
        return Signature(program, inputs, outputs, symbols, arguments, tuple(zip(declared, self.ends)))
