"""`scalide tune` and the tables that it writes, with small works: an interrupted run continues, builds use the numbers. Times decide, so the test
checks no choice.

Usage: tune_test.py SCALIDE
"""
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "support"))
from tool import Scratch  # noqa: E402

WORKS = """- kind: contract
  form: vectors
  extents: {n: [65]}
  tiles: {rows: [4, 6], block_columns: [32, 64]}
  works:
    matmul: |
      program p(a: f32[64, 64], b: f32[64, 128]) -> (y: f32[64, 128]) {
        y = dot_general(a, b) {contract: [[1], [0]]}
      }
    longer: |
      program p(a: f32[128, 64], b: f32[64, 128]) -> (y: f32[128, 128]) {
        y = dot_general(a, b) {contract: [[1], [0]]}
      }
- kind: contract
  form: vectors
  features: [avx512_no_such_cpu]
  extents: {n: [0, 16]}
  tiles: {rows: [4]}
  works: {none: "program p(a: f32[64, 64]) -> (y: f32[64, 64]) {\\n y = tanh(a)\\n}\\n"}
- kind: map
  tiles: {task: [16384, 65536]}
  works: {cubes: "program p(x: f32[3000]) -> (y: f32[3000]) {\\n s = mul(x, x)\\n y = mul(s, x)\\n}\\n"}
"""
PROGRAM = "program cubes(x: f32[n]) -> (y: f32[n]) {\n  s = mul(x, x)\n  y = mul(s, x)\n}\n"
TUNE = ("tune", "-o", "here.yaml", "--works", "works.yaml", "--quick")
NAMES = ["contract vectors {n: [65]}", "contract vectors {n: [0, 16]}", "map"]


def entries(scratch):
    return re.findall(r"^- kind: (\w+)", (scratch.path / "here.yaml").read_text(), re.M)


def whole_runs(scratch):
    lines = scratch.succeed(*TUNE).splitlines()
    assert [line for line in lines if not line.startswith("  ")] == [
        f"{NAMES[0]} (1 of 3)", f"{NAMES[1]} (2 of 3): the target host has no avx512_no_such_cpu", f"{NAMES[2]} (3 of 3)",
        "here.yaml: for 'scalide build --tiles here.yaml' or SCALIDE_TUNED_TILES"], lines
    assert re.fullmatch(r"  rows, relative times: \d+ 1\.00(, \d+ \d+\.\d\d)+", lines[1]), lines
    text = (scratch.path / "here.yaml").read_text()
    assert entries(scratch) == ["contract", "map"], text
    for line in (r"  features: \[\w+(, \w+)*\]", r"  extents: \{n: \[65\]\}", r"  tiles: \{block_columns: (32|64), block_rows: \d+, rows: \d\}",
                 r'  device: ".+"', r"  date: 20\d\d-\d\d-\d\d", r"    ms with rows \d / \d( / \d)?\.", r"    matmul: [\d.]+ / [\d.]+( / [\d.]+)?\."):
        assert re.search(rf"^{line}$", text, re.M), (line, text)
    assert "longer" not in text, "--quick measures the first work"
    again = scratch.succeed(*TUNE).splitlines()
    assert [line.partition(": already in ")[2] for line in again[:3]] == ["here.yaml:2", "", f"here.yaml:{1 + text[: text.index('- kind: map')].count(chr(10))}"], again
    assert (scratch.path / "here.yaml").read_text() == text


def interrupted_runs_continue(scratch):
    (scratch.path / "here.yaml").unlink()
    with subprocess.Popen([scratch.tool, *TUNE], cwd=scratch.path, env=scratch.environment, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if line.startswith("map"):
                break
        os.kill(process.pid, signal.SIGKILL)
    # Each entry is written when it is measured. The second one is there, too, if the signal came late.
    assert entries(scratch) in (["contract"], ["contract", "map"])
    first = (scratch.path / "here.yaml").read_text()
    (line,) = [line for line in scratch.succeed(*TUNE, "contract").splitlines() if line.startswith(NAMES[0])]
    assert line == f"{NAMES[0]} (1 of 2): already in here.yaml:2", line
    scratch.succeed(*TUNE)
    assert entries(scratch) == ["contract", "map"] and (scratch.path / "here.yaml").read_text().startswith(first)


def compiled(scratch, *options):
    return int(re.search(r" (\d+) compiled", scratch.succeed("build", "cubes.scl", "-o", "out", *options))[1])


def builds_use_tables(scratch):
    scratch.write("cubes.scl", PROGRAM)
    assert compiled(scratch) == 1 and compiled(scratch) == 0
    scratch.write("same.yaml", "- {kind: sort, tiles: {task: 7, lanes: 8}}\n")
    assert compiled(scratch, "--tiles", "same.yaml") == 0, "kernels of other kinds are the same"
    scratch.write("other.yaml", "- {kind: map, tiles: {task: 5555, lanes: 8, line: 16}}\n")
    assert compiled(scratch, "--tiles", "other.yaml") == 1, "the numbers are part of the key"
    scratch.environment["SCALIDE_TUNED_TILES"] = "other.yaml"
    assert compiled(scratch) == 0, "the same numbers"
    assert compiled(scratch, "--tiles", "same.yaml") == 0, "the option has priority, and its kernel is in the cache"
    scratch.environment["SCALIDE_TUNED_TILES"] = ""
    scratch.write("caches.yaml", "- {kind: map, caches: {l2: [1, 2]}, tiles: {task: 4444, lanes: 8, line: 16}}\n")
    assert compiled(scratch, "--tiles", "caches.yaml") == 0, "no CPU with AVX has such a cache"
    scratch.write("caches.yaml", "- {kind: map, caches: {l2: [3]}, tiles: {task: 4444, lanes: 8, line: 16}}\n")
    if "caches unknown" not in scratch.succeed("devices", "cpu"):
        assert compiled(scratch, "--tiles", "caches.yaml") == 1
        scratch.succeed("build", "cubes.scl", "-o", "out", "--target", "x86-64-v2")
        assert compiled(scratch, "--tiles", "caches.yaml", "--target", "x86-64-v2") == 0, "caches of other machines are unknown"


def refused(scratch, *command):
    result = scratch.run(*command)
    assert result.returncode == 1 and not result.stdout, result
    return result.stderr.strip()


def mistakes_have_lines(scratch):
    scratch.write("other.yaml", "- kind: map\n  tiles: {task: 1, lanes: 8, lines: 16}\n")
    scratch.write("empty.yaml", "")
    for command, message in (
            ("build cubes.scl --tiles other.yaml", "other.yaml:2: unknown key 'map.tiles.lines'. Did you mean 'lanes'?"),
            ("build cubes.scl --tiles none.yaml", "cannot read none.yaml: No such file or directory"),
            ("build cubes.scl --tiles empty.yaml", "empty.yaml: rows: the file must contain a list, got an empty file"),
            ("tune maps -o here.yaml", "unknown kernel class 'maps'. Did you mean 'map'?"),
            ("tune map -o other.yaml --quick", "other.yaml:2: unknown key 'map.tiles.lines'. Did you mean 'lanes'?")):
        said = refused(scratch, *command.split())
        assert said == f"error: {message}", said
    for old, new, message in (
            ("form: vectors\n  extents", "extents", "the form of kernels of kind contract must be vectors or tiles, got no form"),
            ("rows: [4, 6]", "row: [4, 6]", "contract.tiles.row: must be one of rows, block_columns, block_rows, got 'row'"),
            ("rows: [4, 6]", "rows: [0, 6]", "contract.tiles.rows: must be in [1, 1048576], got 0"),
            ("{n: [65]}", "{x: [65]}", "unknown key 'contract.extents.x'. One of: batch, m, n, k"),
            ("kind: map", "kind: maps", "maps.kind: must be one of "),
            ("y = dot_general(a, b)", "y = dot_genera(a, b)", "unknown operator 'dot_genera'"),
            ("y = mul(s, x)", "y = mul(s, z)", "work 'cubes':3"), # found before the first entry is measured
            ("s = mul(x, x)", "s = rsqrt(x) {axis: 3}", "work 'cubes':2")):
        scratch.write("wrong.yaml", WORKS.replace(old, new, 1))
        said = refused_tuning(scratch)
        assert said.startswith("error: wrong.yaml:") and message in said, (new, said)
    for old, new, message in (
            ("{n: [65]}", "{n: [300]}", "wrong.yaml:1: matmul: must match the conditions of its entry, got contract vectors {n: [300]}"),
            ("y = dot_general(a, b) {contract: [[1], [0]]}", "c = reshape(b) {shape: [128, 64]}\n        y = reduce_sum(c) {axes: [1]}\n        z = tanh(a)",
             "wrong.yaml:1: matmul: must have a kernel of kind contract"),
            ("a: f32[64, 64], b", "a: f32[m, 64], b", "a: must have static extents in a work of 'scalide tune', got f32[m, 64]")):
        text = WORKS.replace(old, new, 1)
        text = text.replace("-> (y: f32[64, 128])", "-> (y: f32[128], z: f32[64, 64])", 1) if "tanh(a)" in new else text
        text = text.replace("-> (y: f32[64, 128])", "-> (y: f32[m, 128])", 1) if "[m, 64]" in new else text
        scratch.write("wrong.yaml", text)
        said = scratch.run("tune", "contract", "-o", "wrong_out.yaml", "--works", "wrong.yaml", "--quick")
        assert said.returncode == 1 and message in said.stderr and not (scratch.path / "wrong_out.yaml").exists(), (new, said)


def hosts_may_have_another_name(scratch):
    scratch.environment["SCALIDE_HOST_TARGET"] = "x86-64-v2"
    scratch.succeed("tune", "map", "-o", "v2.yaml", "--works", "works.yaml", "--quick")
    text = (scratch.path / "v2.yaml").read_text()
    assert "  features: [sse41]\n" in text and ("caches" not in text or "avx" not in Path("/proc/cpuinfo").read_text()), text
    del scratch.environment["SCALIDE_HOST_TARGET"]


def refused_tuning(scratch):
    result = scratch.run("tune", "-o", "wrong_out.yaml", "--works", "wrong.yaml", "--quick")
    assert result.returncode == 1 and not (scratch.path / "wrong_out.yaml").exists(), result
    return result.stderr.strip()


if __name__ == "__main__":
    with Scratch(sys.argv[1]) as scratch:
        for variable in ("SCALIDE_TILES", "SCALIDE_TUNED_TILES", "SCALIDE_HOST_TARGET"):
            scratch.environment.pop(variable, None)
        scratch.write("works.yaml", WORKS)
        for test in (whole_runs, interrupted_runs_continue, builds_use_tables, mistakes_have_lines, hosts_may_have_another_name):
            start = time.monotonic()
            test(scratch)
            print(f"{test.__name__}: {time.monotonic() - start:.1f} s")
