"""Runs the tool `scalide` on a program."""
from __future__ import annotations

import re
import tempfile
from pathlib import Path

from .program import Program
from .tool_process import BuildError, run_process
from .words import identifier


def run_tool(program: Program, command: str, *arguments) -> str:
    """Runs `scalide COMMAND program.scl ARGUMENTS` and returns its output. Raises BuildError if the tool fails."""
    with tempfile.TemporaryDirectory(prefix="scalide-") as folder:
        file = Path(folder) / f"{identifier(program.name)[:100]}.scl"
        file.write_text(program.text, encoding="utf-8")
        status, output, errors = run_process(command, file, *arguments)
        if status == 0:
            return output
        raise BuildError(_located(errors, program, file))


def with_places(text: str, program: Program) -> str:
    """Returns a text of the tool, in which Python source lines replace the lines of the program."""

    def place_of(found):
        number = int(found[1])
        place = program.places[number - 1] if number <= len(program.places) else None
        return found[0] if place is None else re.sub(r"^.*[/\\]", "", str(place))

    return re.sub(re.escape(f"{identifier(program.name)[:100]}.scl") + r":(\d+)", place_of, text)


def _located(message: str, program: Program, file: Path) -> str:
    """Returns a message of the tool, with the Python source line that the line of the program came from."""
    message = message.replace(str(file), file.name)
    found = re.search(re.escape(file.name) + r":(\d+)", message)
    place = program.places[int(found[1]) - 1] if found and int(found[1]) <= len(program.places) else None
    if place is None:
        return message
    return f"{message}\n  from {str(place)}"
