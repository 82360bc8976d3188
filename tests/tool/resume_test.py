"""A C++ application that is killed and resumed from its checkpoint has all bits of a training without a break. A checkpoint of another policy is
refused, and names all differences. Usage: resume_test.py SCALIDE SOURCE LIBSCALIDE_RUNTIME POLICY OTHER_POLICY"""
import os
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from tool import Scratch  # noqa: E402

HERE = Path(__file__).parent


def application(scratch, source, runtime, policy):
    scratch.succeed("build", str(HERE / "resume.scl"), "-n", policy, "-o", policy)
    command = [os.environ.get("CXX", "c++"), "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", str(HERE / "resume.cpp"), "-o", f"{policy}/resume",
               f"-I{source}/runtime/include", f"-I{policy}", f"{policy}/libstep.a", runtime, "-lpthread", "-ldl"]  # fmt: skip
    subprocess.run(command, cwd=scratch.path, check=True)
    return str(scratch.path / policy / "resume")


def run(scratch, executable, folder, killed=0):
    return subprocess.run([executable, folder, f"{folder}.safetensors", str(killed)], cwd=scratch.path, capture_output=True, text=True)


def main(tool, source, runtime, policy, other):
    with Scratch(tool) as scratch:
        executable = application(scratch, source, runtime, policy)
        whole = run(scratch, executable, "whole")
        assert (whole.returncode, whole.stdout) == (0, "0\n"), whole
        killed = run(scratch, executable, "broken", 13)
        assert killed.returncode == -signal.SIGKILL and not (scratch.path / "broken.safetensors").exists(), killed
        resumed = run(scratch, executable, "broken")
        assert (resumed.returncode, resumed.stdout) == (0, "10\n"), resumed
        assert (scratch.path / "broken.safetensors").read_bytes() == (scratch.path / "whole.safetensors").read_bytes()
        refused = run(scratch, application(scratch, source, runtime, other), "broken")
        assert refused.returncode == 1, refused
        message = refused.stderr
        assert message.startswith(f"broken, step 10: the file must have the arrays of the program for policy {other}, but it is for policy {policy}."), message
        assert "Convert the file with 'scalide convert'" in message and "Different: " in message, message
    print("ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
