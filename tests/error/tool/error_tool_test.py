"""Runs one case of cases.toml: the built `scalide`, a bad input, the exact words on stderr and the exit status.

Usage: error_tool_test.py SCALIDE SOURCE_FOLDER CASE. A case has `command` and `stderr`; `status` (1 when left out); `warm`, a command
that succeeds before; `tiles`, the file that SCALIDE_TILES names; `host_target`, the value of SCALIDE_HOST_TARGET; `largest_file` in bytes, which
stands in for a full disk; `stdout`, a file it prints to.
Nothing but compiled kernels may have come into the folder afterwards.
"""
import re
import shutil
import struct
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "support"))
from tool import Scratch, floats, safetensors  # noqa: E402


def binary(recipe):
    """A safetensors file: `tensors` (name -> [dtype, shape, floats or zero bytes]) or `header` text, `length` said of it, `cut`, `add`."""
    if "header" in recipe:
        text = recipe["header"].encode()
        content = struct.pack("<Q", recipe.get("length", len(text))) + text + bytes(recipe.get("data", 0))
    else:
        content = safetensors({n: (d, s, floats(*v) if isinstance(v, list) else bytes(v)) for n, (d, s, v) in recipe["tensors"].items()})
    return content[: len(content) - recipe.get("cut", 0)] + bytes(recipe.get("add", 0))


def normal(text, source, scratch):
    """Process numbers and folders have names, so that the text can be compared."""
    return re.sub(r"part-\d+", "part-PID", text).replace(source, "SOURCE").replace(str(scratch.path), "SCRATCH").strip("\n")


def outside_cache(files):
    return {file for file in files if not file.startswith("cache/") or file.endswith(".part")}


def main(tool, source, name):
    cases = tomllib.loads((HERE / "cases.toml").read_text())
    case = cases["case"][name]
    with Scratch(tool) as scratch:
        shutil.copytree(HERE / "files", scratch.path, dirs_exist_ok=True)
        for file, recipe in cases["binaries"].items():
            scratch.write(f"{file}.safetensors", binary(recipe))
        if "warm" in case:
            scratch.succeed(*case["warm"].split())
        for key, variable in (("tiles", "SCALIDE_TILES"), ("host_target", "SCALIDE_HOST_TARGET")):
            if key in case:
                scratch.environment[variable] = case[key]
        before = scratch.files()
        result = scratch.run(*case["command"].split(), largest_file=case.get("largest_file"),
                             stdout=open(case["stdout"], "w") if "stdout" in case else subprocess.PIPE)
        problems = []
        expected = case["stderr"].strip("\n")
        got = normal(result.stderr, str(Path(source).resolve()), scratch)
        if got != expected:
            problems.append(f"stderr:\n{got}\nexpected:\n{expected}")
        if result.returncode != case.get("status", 1):
            problems.append(f"status {result.returncode}, expected {case.get('status', 1)}")
        if result.stdout:
            problems.append(f"stdout: {result.stdout}")
        if changed := sorted(outside_cache(before ^ scratch.files())):
            problems.append(f"files made or lost: {changed}")
    print("\n".join(problems) or "ok")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
