"""Reads the fenced blocks of a Markdown page."""
import pathlib
import re
import shlex
import textwrap
from typing import NamedTuple, Optional

FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<info>[^`\n]*)$")


class Block(NamedTuple):
    language: str
    attributes: dict  #: of the fence's line: title, from, status
    line: int  #: of the opening fence, from 1
    end: int  #: of the closing fence
    indent: int
    text: str  #: without the indentation of the fence


class PageError(Exception):
    """A block of the page is wrong. `line` is its line in the page."""

    def __init__(self, line: int, message: str):
        super().__init__(message)
        self.line = line


class Command(NamedTuple):
    line: int
    text: str
    first_output: int  #: the line of the page at which the output starts
    output: Optional[str]  #: None: the page shows no output


def blocks(text: str) -> list:
    """All fenced blocks of the page's text, in order."""
    found, lines = [], text.split("\n")
    number = 0
    while number < len(lines):
        fence = FENCE.match(lines[number])
        if fence:
            closing = " " * len(fence["indent"]) + fence["ticks"]
            end = next((n for n in range(number + 1, len(lines)) if lines[n].rstrip() == closing), None)
            if end is None:
                raise PageError(number + 1, "the block has no closing fence")
            found.append(_block(fence, number + 1, end + 1, lines[number + 1 : end]))
            number = end
        number += 1
    return found


def _block(fence, line, end, lines) -> Block:
    indent = len(fence["indent"])
    language, *words = shlex.split(fence["info"]) or [""]
    attributes = dict(word.split("=", 1) for word in words if "=" in word)
    unknown = [word for word in words if word.split("=")[0] not in ("title", "from", "status") or "=" not in word]
    if unknown:
        raise PageError(line, f"unknown word {unknown[0]!r} after the fence. Use title=, from= or status=")
    if any(text[:indent].strip() for text in lines):
        raise PageError(line, "the block is indented less than its fence")
    return Block(language, attributes, line, end, indent, "".join(text[indent:] + "\n" for text in lines))


def commands(block: Block) -> list:
    """The `$ command` lines of a console block, each with the output below it. A line that ends with a backslash goes on in the next line."""
    found, lines, number = [], block.text.splitlines(), 0
    if lines and not lines[0].startswith("$ "):
        raise PageError(block.line, "a console block must start with `$ COMMAND`")
    while number < len(lines):
        start = number
        while lines[number].endswith("\\") and number + 1 < len(lines):
            number += 1
        command = "\n".join(lines[start : number + 1])[2:]
        number += 1
        first = number
        while number < len(lines) and not lines[number].startswith("$ "):
            number += 1
        output = "\n".join(lines[first:number]) + "\n" if number > first else None
        found.append(Command(block.line + 1 + start, command, block.line + 1 + first, output))
    return found


def follows(block: Block, next_block: Block, text: str) -> bool:
    """True if only empty lines stand between the blocks."""
    return not "".join(text.split("\n")[block.end : next_block.line - 1]).strip()


def root_of(page: pathlib.Path) -> pathlib.Path:
    """The repository that the page is in."""
    return next(folder for folder in page.resolve().parents if (folder / "pyproject.toml").exists())


def is_excerpt(block: Block, file: pathlib.Path) -> bool:
    """True if the lines of the block stand in the file one after the other. The indentation of the whole block may differ."""
    wanted = textwrap.dedent(block.text).strip("\n").split("\n")
    lines = file.read_text().split("\n")
    for start in range(len(lines) - len(wanted) + 1):
        part = lines[start : start + len(wanted)]
        if part[0].strip() == wanted[0].strip() and textwrap.dedent("\n".join(part)).split("\n") == wanted:
            return True
    return False
