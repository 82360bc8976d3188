#!/usr/bin/env python3
"""What .ci/run_tests.py prints of a run of ctest, and its status. Usage: progress_test.py CTEST"""
import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path

RUN_TESTS = Path(__file__).resolve().parents[2] / ".ci/run_tests.py"
#: Without `bad`, the tests pass.
TESTS = """add_test(quick "true")
add_test("quick/one  # GetParam() = one" "true")
add_test(rule.bad "sh" "-c" "echo why it failed; exit 1")
add_test(left_out "sh" "-c" "exit 77")
set_tests_properties(left_out PROPERTIES SKIP_RETURN_CODE 77)
"""


def run(folder, *arguments):
    done = subprocess.run([sys.executable, RUN_TESTS, folder, "2", "--output-on-failure", *arguments], capture_output=True, text=True,
                          env={**os.environ, "PATH": f"{Path(sys.argv[1]).parent}:{os.environ['PATH']}"})
    return done.returncode, done.stdout.splitlines()


def check_text():
    specification = importlib.util.spec_from_file_location("run_tests", RUN_TESTS)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    progress = module.Progress({"a": 600, "b": 200, "c": 1200}, 2)
    progress.finish("b", "***Failed")
    progress.start -= 100  # two jobs did 200 s of tests in 100 s
    assert progress.text() == "  tests: 1 of 3, 1 failed, 100 s so far, about 15 min left", progress.text()
    progress.begin("a")
    progress.running["a"] -= 100  # and 100 s of a test that runs
    assert progress.text() == "  tests: 1 of 3, 1 failed, 100 s so far, about 9 min left", progress.text()


def main():
    check_text()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "CTestTestfile.cmake").write_text(TESTS)
        status, lines = run(folder)
        assert status == 8, status  # of ctest
        assert "why it failed" in lines and any("left_out" in line and "Skipped" in line for line in lines), lines
        assert not any("quick" in line for line in lines), "tests that pass have no line"
        assert lines[-1] == "\t  3 - rule.bad (Failed)", lines
        status, lines = run(folder, "-E", "bad")
        assert status == 0 and any(line.startswith("100% tests passed") for line in lines), lines
        status, lines = run(folder, "-R", "nothing", "--no-tests=error")
        assert status != 0, "ctest's own errors stay errors"
    print("ok")


if __name__ == "__main__":
    main()
