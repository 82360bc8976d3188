"""Compiles a program by the tool `scalide`, which comes with the package."""
from __future__ import annotations

import logging
import os
import re
import subprocess
import tempfile
from pathlib import Path

from .program import Program
from .words import identifier


class BuildError(RuntimeError):
    """The tool refused a program; the message is the tool's, with the line of the user's Python file where it is known."""


def tool_path() -> Path:
    """The tool: what SCALIDE_TOOL says, else that of this package."""
    given = os.environ.get("SCALIDE_TOOL")
    path = Path(given) if given else Path(__file__).parent / "_install" / "bin" / "scalide"
    if not path.exists():
        raise FileNotFoundError(f"cannot find the tool scalide at {path}. Install the package with 'pip install .', or set SCALIDE_TOOL to the tool")
    return path


def build(program: Program, target: str = "host", numerics: str | None = None, cache=None, name: str | None = None, output=None, jobs: int = 0,
          cuda_arch=(), rules=(), traceable=False, time_limit: int = 600):
    """Compiles a program into a shared library and opens it.

    program:  from `scalide.jax.trace`, or the path of a `.scl` file
    target:   "host", "opencl", "cuda", or a target of Halide such as "x86-64-linux-avx2-fma-f16c"
    numerics: a policy by name ("f32", "bf16", "f16_scaled", "f8_scaled") or a YAML file; the program's own when left out
    cache:    folder of compiled kernels ($XDG_CACHE_HOME/scalide when left out); what it has is not compiled again
    output:   folder for the library, its C header and its plan, kept; left out, they last as long as the Library
    jobs:     kernels compiled at a time, 0: one a core
    cuda_arch: for target "cuda", the cards to compile for by compute capability, such as [90, 100]; all that are known when left out
    rules:    YAML files of operators of your own, or folders of them, which the program and the policy may use beside ours (`rules/README.md`)
    traceable: store each rounded operand and each scale, so that traces show them; slower on CPUs
    time_limit: seconds for each kernel, and for each run of the C compiler: what has not ended then is ended; 0: no limit
    Returns a `Library`, whose `summary` is the line that ends a build: what the numerics reach. It is logged too (logger "scalide"), as a warning
    where it warns. Throws BuildError with the tool's words.
    """
    from .library import Library

    if not isinstance(program, Program):
        program = Program.load(program)
    scratch = None
    if output is None:
        scratch = tempfile.TemporaryDirectory(prefix="scalide-")
        output = scratch.name
    name = name or program.name
    arguments = ["--target", target, "--numerics", numerics or program.policy, f"--name={name}", "--output", output, "--shared"]
    arguments += ["--cache", cache] if cache is not None else []
    arguments += ["--jobs", jobs] if jobs else []
    arguments += ["--time-limit", time_limit]
    arguments += ["--cuda-arch", ",".join(map(str, cuda_arch))] if cuda_arch else []
    arguments += ["--traceable"] if traceable else []
    rules = [rules] if isinstance(rules, (str, os.PathLike)) else list(rules)
    for path in rules:
        arguments += ["--rules", path]
    printed = run_tool(program, "build", *arguments)
    library = Library(Path(output) / f"lib{identifier(name)}.so", program)
    library._options = {"numerics": numerics or program.policy, "target": target, "rules": rules}
    library.summary = printed.strip().splitlines()[-1]
    logging.getLogger("scalide").log(logging.WARNING if "warning: " in library.summary else logging.INFO, "%s: %s", name, library.summary)
    if scratch is not None:
        library._scratch = scratch  # goes with the library
    return library


def run_tool(program: Program, command: str, *arguments) -> str:
    """Runs `scalide COMMAND program.scl ARGUMENTS` and returns what it prints."""
    with tempfile.TemporaryDirectory(prefix="scalide-") as folder:
        file = Path(folder) / f"{identifier(program.name)[:100]}.scl"
        file.write_text(program.text, encoding="utf-8")
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "encoding": "utf-8", "errors": "replace"}
        with subprocess.Popen([tool_path(), command, file, *map(str, arguments)], **pipes) as tool:
            try:
                output, errors = tool.communicate()
            except BaseException:  # KeyboardInterrupt: the tool removes what it has begun, and ends its compilers
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
    """`file:line: words` with the place in Python that the line came from."""
    message = message.replace(str(file), file.name)
    found = re.search(re.escape(file.name) + r":(\d+)", message)
    place = program.places[int(found[1]) - 1] if found and int(found[1]) <= len(program.places) else None
    if place is None:
        return message
    from .jax.compat import place_of

    return f"{message}\n  from {place_of(place)}"
