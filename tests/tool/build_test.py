"""`scalide build` in surroundings that are not as usual: a C compiler with options, entries of the cache that are no files, arrays of many axes
between kernels.

Usage: build_test.py SCALIDE
"""
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "support"))
from tool import Scratch, floats, read_safetensors, safetensors, unpack_floats  # noqa: E402

PROGRAM = "program p(x: f32[b, 4]) -> (y: f32[b, 4]) {\n  y = neg(x)\n}\n"
#: Every kernel between x and y has nine axes that cannot be merged.
MANY_AXES = """program many(x: f32[512]) -> (y: f32[512], s: f32[]) {
  a = reshape(x) {shape: [2, 2, 2, 2, 2, 2, 2, 2, 2]}
  b = transpose(a) {permutation: [8, 7, 6, 5, 4, 3, 2, 1, 0]}
  c = cumsum(b) {axis: 3, reverse: false}
  d = transpose(c) {permutation: [8, 6, 4, 2, 0, 1, 3, 5, 7]}
  e = cumsum(d) {axis: 5, reverse: false}
  y = reshape(e) {shape: [512]}
  s = reduce_max(c) {axes: [0, 1, 2, 3, 4, 5, 6, 7, 8]}
}
"""


LAYERS = """program layers(x: f32[8, 16], v: f32[16, 16], w: f32[16, 16]) -> (s: f32[8]) {
  a = dot_general(x, v) {contract: [[1], [0]]}
  b = tanh(a)
  c = dot_general(b, w) {contract: [[1], [0]]}
  d = tanh(c)
  s = reduce_sum(d) {axes: [1]}
}
"""


def compilers_have_options(scratch):
    for name, works in (("cc -O0 -g", True), ("  cc  ", True), ("a compiler/cc", True), ("cc --no-such-option", False)):
        scratch.environment["CC"] = name
        result = scratch.run("build", "p.scl", "--shared", "-o", "out", "--cache", f"cache_{len(name)}")
        assert (result.returncode == 0) == works, f"CC={name}: {result.stderr}"
    assert "error: cannot make the plan with 'cc': exit status 1: cc: error: unrecognized" in result.stderr, result.stderr
    del scratch.environment["CC"]


def entries_that_are_no_files(scratch):
    """A pipe or an empty folder in the place of an entry is removed, a folder with files is not."""
    scratch.succeed("build", "p.scl", "-o", "out", "--cache", "c")
    entries = sorted((scratch.path / "c").iterdir())
    for make in (os.mkfifo, os.mkdir):
        for entry in entries:
            entry.unlink()
            make(entry)
        scratch.succeed("build", "p.scl", "-o", "out", "--cache", "c")
        assert sorted((scratch.path / "c").iterdir()) == entries and all(entry.is_file() for entry in entries)
    for entry in entries:
        entry.unlink()
        entry.mkdir()
        (entry / "mine").write_text("mine")
    result = scratch.run("build", "p.scl", "-o", "out", "--cache", "c")
    assert result.returncode == 1 and result.stderr.endswith(
        " in the cache: it is a folder, not a compiled kernel. Remove it, or choose another folder with --cache\n"), result.stderr
    assert all((entry / "mine").is_file() for entry in entries)


def kernels_with_their_steps_and_lines(scratch):
    """Two layers of equal extents share a kernel, which has the line of the first."""
    arguments = ["build", "layers.scl", "-v", "-o", "out", "--cache", "layers"]
    for word in "compiled", "cached  ":
        lines = scratch.run(*arguments).stderr.splitlines()
        assert sorted(line.split("] ")[1] for line in lines if line.startswith("[")) == [
            f"{word} contract_1: 2 steps, first b (layers.scl:3)", f"{word} row_1: 1 step, first s (layers.scl:6)"], lines  # fmt: skip


def many_axes_between_kernels(scratch):
    scratch.write("many.safetensors", safetensors({"x": ("F32", [512], floats(*range(512)))}))
    results = []
    for mode in ((), ("--interpret", "real")):
        scratch.succeed("run", "many.scl", "-i", "many.safetensors", "-o", "o.safetensors", *mode)
        results.append({name: unpack_floats(content) for name, (_, _, content) in read_safetensors(scratch.path / "o.safetensors").items()})
    assert results[0] == results[1], "sums of integers are exact"


def main(tool):
    with Scratch(tool) as scratch:
        scratch.write("p.scl", PROGRAM)
        scratch.write("many.scl", MANY_AXES)
        scratch.write("layers.scl", LAYERS)
        (scratch.path / "a compiler").mkdir()
        (scratch.path / "a compiler" / "cc").write_text('#!/bin/sh\nexec cc "$@"\n')
        (scratch.path / "a compiler" / "cc").chmod(0o755)
        compilers_have_options(scratch)
        entries_that_are_no_files(scratch)
        kernels_with_their_steps_and_lines(scratch)
        many_axes_between_kernels(scratch)


if __name__ == "__main__":
    main(*sys.argv[1:])
