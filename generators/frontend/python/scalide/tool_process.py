"""The tool `scalide`, which is part of the package, as a process."""
from __future__ import annotations

import os
import subprocess
from pathlib import Path


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


def run_process(command: str, *arguments) -> tuple[int, str, str]:
    """Runs `scalide COMMAND ARGUMENTS`. Returns its status, its output and its messages."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8", "errors": "replace"}
    with subprocess.Popen([tool_path(), command, *map(str, arguments)], **pipes) as tool:
        try:
            output, errors = tool.communicate()
        except BaseException:  # KeyboardInterrupt, for example: the tool then removes partial files and stops its compilers
            _stop(tool)
            raise
    return tool.returncode, output, errors.strip() or f"scalide {command} failed with status {tool.returncode}"


def _stop(tool: subprocess.Popen) -> None:
    tool.terminate()
    try:
        tool.wait(10)
    except subprocess.TimeoutExpired:
        tool.kill()
