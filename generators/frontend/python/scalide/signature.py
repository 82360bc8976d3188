"""Reads the head of a program's text: its name, symbols, arguments and results."""
from __future__ import annotations

import dataclasses
import re

from .words import name_text, unquoted


@dataclasses.dataclass(frozen=True)
class Spec:
    """An argument or a result of a program."""

    name: str
    dtype: str  #: "f32", "f8_e4m3fn", ...
    shape: tuple[int | str, ...]  #: a symbolic extent is text, such as "2*b"
    scaled: bool = False  #: a scaled array
    inout: bool = False  #: an argument that is updated in place, or the result that updates it
    constant: bool = False  #: an argument that `Library.prepare` reads once

    def is_float(self) -> bool:
        return self.dtype[0] in "fb" and self.dtype != "bool"

    def __str__(self):
        words = " scaled" * self.scaled + " inout" * self.inout + " constant" * self.constant
        return f"{name_text(self.name)}: {self.dtype}[{', '.join(map(str, self.shape))}]{words}"


@dataclasses.dataclass(frozen=True)
class Signature:
    """The head of the last program of a text. The other programs of the text are its sub-programs."""

    name: str
    inputs: tuple[Spec, ...]
    outputs: tuple[Spec, ...]
    symbols: str  #: "[b in 1..64]" as in the text, or ""
    arguments: str  #: "x: f32[b], ..." as in the text
    constants: tuple[tuple[int, int], ...]  #: the positions of the words `constant` in the text
    types: tuple[tuple[Spec, int], ...]  #: everything declared with a type, and the position in the text where the type ends


_START = re.compile(r'^[ \t]*program\s+(?=[\w$"])', re.M)  # after a result named `program` comes = or a comma
_TOKEN = re.compile(r'(?:\s|#[^\n]*)*("(?:\\.|[^"\\\n])*"|->|[\w.$/]+|[^\s#]|\Z)')


def read_signature(text: str) -> Signature:
    """Returns the head of the last program of a text. Raises ValueError if the text has no program."""
    starts = [found.end() for found in _START.finditer(text)]
    if not starts:
        raise _refusal(text)
    return _Reader(text, starts[-1]).signature()


def _refusal(text: str) -> ValueError:
    return ValueError("program: must be text of the form 'program name(x: f32[2]) -> (y: f32[2]) { ... }', got " + repr(text[:40]))


class _Reader:
    """Reads the tokens of a text from a position on."""

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
        """Returns `[...]` as in the text. Returns "" if another token follows."""
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
        """Reads the type after `name:`."""
        dtype, extents = self.take(), self.group("[", "]")[1:-1]
        self.ends.append(self.place)
        words = []
        while self.peek() not in (",", ")", "=", ""):
            words.append(self.take())
            if words[-1] == "constant":
                self.constants.append((self.place - len("constant"), self.place))
            if words[-1] == "of":  # the name of the scaled array may be any token
                self.take()
        shape = tuple(int(extent) if extent.strip().isdigit() else extent.strip() for extent in extents.split(",") if extent.strip())
        return Spec(name, dtype, shape, "scaled" in words, "inout" in words, "constant" in words)

    def sequence(self, item) -> tuple:
        """Reads `(item, item)`."""
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
        self.ends: list[int] = []  #: the end positions of types, in order
        self.constants: list[tuple[int, int]] = []
        program = self.name()
        self.group("{", "}")
        symbols = self.group("[", "]")
        start = _TOKEN.match(self.text, self.place).end()  # after the parenthesis
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
        return Signature(program, inputs, outputs, symbols, arguments, tuple(self.constants), tuple(zip(declared, self.ends)))
