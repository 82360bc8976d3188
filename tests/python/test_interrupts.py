"""Ctrl-C in Python, as a signal to its process alone. It ends a build with its compilers, or takes effect after a run."""
import pathlib
import signal
import subprocess
import sys
import time

import pytest

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
