"""Builds a program with the tool `scalide`, which is part of the package."""
from __future__ import annotations

import logging
import operator
import os
from pathlib import Path

from .library import Library
from .owned_folder import OwnedFolder
from .program import Program
from .run_tool import run_tool, with_places
from .words import identifier


def build(program: Program, target: str = "host", numerics: str | None = None, cache=None, name: str | None = None, output=None, jobs: int = 0,
          cuda_arch=(), rules=(), traceable=False, time_limit: int = 600, require_libraries=False,
          statistics: bool | int = False):
    """Compiles a program into a shared library and opens it.

    Args:
        program: A Program, or the path of a `.scl` file.
        target: "host", "opencl", "cuda", or a Halide target for this machine such as "x86-64-linux-avx2-fma-f16c".
        numerics: The precision policy: a built-in name such as "f8_master", or a YAML file. Default: the policy of the program.
        cache: The folder of the kernel cache. Default: $XDG_CACHE_HOME/scalide.
        name: The name of the library and of its C function. Default: the name of the program.
        output: The folder for the files. Default: a temporary folder that lives as long as the Library.
        jobs: The number of kernels to compile at the same time. 0: one for each core.
        cuda_arch: With target "cuda": compute capabilities such as [90, 100]. Default: all that Scalide knows.
        rules: YAML files, or folders of YAML files, with operators of your own.
        traceable: Store every rounded operand and every scale, so that traces can show them. Slower on CPUs.
        time_limit: Stop if one kernel or one run of the C compiler takes longer than this many seconds. 0: no limit.
        statistics: True or a number N: collect statistics of all stored and rounded tensors in the calls 0, N, 2 * N, ... (True: each tenth).
            `Library.statistics` returns them. Rows `statistics` of the policy come first. The library then has two forms of the program.
        require_libraries: With target "cuda": a matmul that cuBLASLt cannot compute is an error, when the program is built or first called.

    Returns:
        A Library. Its `summary` is the last line of the build. The logger "scalide" gets this line, too, and before it
        each note of the build, such as number formats that are no faster than f32 on the target.

    Raises:
        BuildError: The tool reports an error.
        FileNotFoundError: The tool does not exist.
    """
    if not isinstance(program, Program):
        program = Program.load(program)
    scratch = None
    if output is None:
        scratch = OwnedFolder()
        output = scratch.name
    name = name or program.name
    arguments = ["--target", target, "--numerics", numerics or program.policy, f"--name={name}", "--output", output, "--shared"]
    arguments += ["--cache", cache] if cache is not None else []
    arguments += ["--jobs", jobs] if jobs else []
    arguments += ["--time-limit", time_limit]
    arguments += ["--cuda-arch", ",".join(map(str, cuda_arch))] if cuda_arch else []
    arguments += ["--traceable"] if traceable else []
    arguments += [f"--statistics={10 if statistics is True else operator.index(statistics)}"] if statistics else []
    arguments += ["--require-libraries"] if require_libraries else []
    rules = [rules] if isinstance(rules, (str, os.PathLike)) else list(rules)
    for path in rules:
        arguments += ["--rules", path]
    printed = run_tool(program, "build", *arguments)
    library = Library(Path(output) / f"lib{identifier(name)}.so", program)
    library._options = {"numerics": numerics or program.policy, "target": target, "rules": rules}
    library.summary = with_places(printed.strip().splitlines()[-1], program)
    for note in printed.strip().splitlines()[1:-2]:  # between the counts of kernels and the machine
        logging.getLogger("scalide").info("%s: %s", name, note)
    logging.getLogger("scalide").log(logging.WARNING if "warning: " in library.summary else logging.INFO, "%s: %s", name, library.summary)
    if scratch is not None:
        library._scratch = scratch  # lives as long as the library
    return library
