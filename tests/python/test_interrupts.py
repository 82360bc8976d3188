"""Ctrl-C in Python, as a signal to its process alone. It ends a build with its compilers, or takes effect after a run."""
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from conftest import edited_library

PROGRAM = """program long(x: f32[n, n]) -> (y: f32[n, n]) {
  y = dot_general(x, x) {contract: [[1], [0]]}
}
"""
BUILD = """
import os, scalide
try:
    scalide.build("long.scl", output="out", cache="cache")
except KeyboardInterrupt:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        print("no child", flush=True)
"""
RUN = """
import sys, numpy, scalide
library = scalide.Library(sys.argv[1])
x = numpy.eye(512, dtype=numpy.float32)
try:
    for i in range(1_000_000):
        library(x)
        if i == 3:
            open("started", "w").write("\\n")
except KeyboardInterrupt:
    print((library(x) == x).all(), flush=True)
"""
LOOP = """program loop(x: f32[4]) -> (y: f32[4]) {
  y = add(x, x)
}
"""
# The plan with its step in a loop of 2000000000 steps.
IN_A_LOOP = {
    "\nstatic const scalide_program loop_plan = {": """
static const scalide_term steps_term[] = {{2000000000, {-1, -1, -1, -1}}};
static const scalide_extent steps[] = {{steps_term, 1}};
static const scalide_block loop_blocks[] = {{"fori y", "loop.scl:2", 0, -1, 0, 1, steps, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}};
static const scalide_program loop_plan = {""",
    ", 0, 0, 0};\n\nconst scalide_program": ", 1, loop_blocks, 0};\n\nconst scalide_program",
}
RUN_LOOP = """
import signal, sys, threading, numpy, scalide
library = scalide.Library(sys.argv[1])
seen = []
def see(*_):
    try:
        library(numpy.ones(4, numpy.float32))
    except RuntimeError as error:
        seen.append(str(error))
signal.signal(signal.SIGUSR1, see)
threading.Timer(0.3, signal.raise_signal, [signal.SIGUSR1]).start()
threading.Timer(0.6, lambda: library._running().state).start()  # waits for the context without the GIL
def write(): open("started", "w").write("\\n")
threading.Timer(1, write).start()
try:
    library(numpy.ones(4, numpy.float32))
except KeyboardInterrupt:
    print("interrupted", *seen, flush=True)
"""


def wait_for(file):
    end = time.monotonic() + 120
    while not (file.exists() and file.read_text().endswith("\n")):
        assert time.monotonic() < end, file
        time.sleep(0.01)
    return file.read_text()


def ends(process):
    """A process that was killed ends soon, not at once."""
    for _ in range(1000):
        try:
            if pathlib.Path(f"/proc/{process}/stat").read_text().split()[2] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


def interrupt(folder, script, file, *arguments):
    """Sends the signal to the script as soon as the file exists. Returns the script's output and the file's text."""
    process = subprocess.Popen([sys.executable, "-c", script, *arguments], cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        text = wait_for(folder / file)
        process.send_signal(signal.SIGINT)
        return process.communicate(timeout=120)[0].strip(), text
    finally:
        process.kill()


@pytest.fixture
def hanging_compiler(tmp_path, monkeypatch):
    compiler = tmp_path / "compiler"
    compiler.write_text("#!/bin/sh\nsleep 1000 &\necho $! > sleeper\nwait\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))


def test_build(tmp_path, hanging_compiler):
    (tmp_path / "long.scl").write_text(PROGRAM)
    printed, process = interrupt(tmp_path, BUILD, "sleeper")
    assert printed == "no child"
    assert list((tmp_path / "out").iterdir()) == []
    assert not list((tmp_path / "cache").glob("*.part"))
    assert ends(int(process)), "what the compiler had started goes too"


def test_run(tmp_path, libraries):
    assert interrupt(tmp_path, RUN, "started", str(libraries(PROGRAM)))[0] == "True"


def test_run_in_a_loop(tmp_path):
    library = edited_library(tmp_path / "library", LOOP, IN_A_LOOP)
    printed = interrupt(tmp_path, RUN_LOOP, "started", str(library))[0]
    assert printed == ("interrupted loop: a handler of a signal cannot run a program while a run of the same thread is in a loop. "
                       "Let the handler set a flag.")
