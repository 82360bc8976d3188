"""Runs the tool `scalide`, which is part of the package, on a program."""
from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

from .program import Program
from .words import identifier


class BuildError(RuntimeError):
    """The tool could not build a program. The message comes from the tool; it names the source line of the user if it is known."""


def tool_path() -> Path:
    """Returns the path of the tool `scalide`.

    The environment variable SCALIDE_TOOL replaces the tool of the package.

    Raises:
        FileNotFoundError: The tool does not exist.
    """
    given = os.environ.get("SCALIDE_TOOL")
    path = Path(given) if given else Path(__file__).parent / "_install" / "bin" / "scalide"
    if not path.exists():
        raise FileNotFoundError(f"cannot find the tool scalide at {path}. Install the package with 'pip install .', or set SCALIDE_TOOL to the tool")
    return path


def run_tool(program: Program, command: str, *arguments) -> str:
    """Runs `scalide COMMAND program.scl ARGUMENTS` and returns its output. Raises BuildError if the tool fails."""
    with tempfile.TemporaryDirectory(prefix="scalide-") as folder:
        file = Path(folder) / f"{identifier(program.name)[:100]}.scl"
        file.write_text(program.text, encoding="utf-8")
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8", "errors": "replace"}
        with subprocess.Popen([tool_path(), command, file, *map(str, arguments)], **pipes) as tool:
            try:
                output, errors = tool.communicate()
            except BaseException:  # KeyboardInterrupt, for example: the tool then removes partial files and stops its compilers
                _stop(tool)
                raise
        if tool.returncode == 0:
            return output
        raise BuildError(_located(errors.strip() or f"scalide {command} failed with status {tool.returncode}", program, file))


def _stop(tool: subprocess.Popen) -> None:
    tool.terminate()
    try:
        tool.wait(10)
    except subprocess.TimeoutExpired:
        tool.kill()


def _located(message: str, program: Program, file: Path) -> str:
    """Returns a message of the tool, with the Python source line that the line of the program came from."""
    message = message.replace(str(file), file.name)
    found = re.search(re.escape(file.name) + r":(\d+)", message)
    place = program.places[int(found[1]) - 1] if found and int(found[1]) <= len(program.places) else None
    if place is None:
        return message
    return f"{message}\n  from {str(place)}"
