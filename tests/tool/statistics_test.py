"""Programs in C and C++ collect statistics, and compare them with their definitions in double. Usage:
statistics_test.py SCALIDE SOURCE LIBSCALIDE_RUNTIME LANGUAGE"""
import os
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from tool import Scratch  # noqa: E402

HERE = Path(__file__).parent
WARNINGS = ["-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
COMPILERS = {"c": [os.environ.get("CC", "cc"), "-std=c11"], "cpp": [os.environ.get("CXX", "c++"), "-std=c++17"]}
#: No row, one row, and odd numbers of rows around a vector or a block.
BATCHES = (0, 1, 65, 127)


def main(tool, source, runtime, language):
    with Scratch(tool) as scratch:
        for name in ("statistics.scl", "statistics.yaml"):
            shutil.copy(HERE / name, scratch.path)
        scratch.succeed("build", "statistics.scl", "-n", "statistics.yaml", "--name", "counted", "-o", "out")
        scratch.succeed("build", "statistics.scl", "--name", "plain", "-o", "out")
        command = [*COMPILERS[language], *WARNINGS, str(HERE / f"statistics.{language}"), "-o", "statistics", f"-I{source}/runtime/include", "-Iout",
                   "out/libcounted.a", "out/libplain.a", runtime, "-lpthread", "-ldl", "-lm"]  # fmt: skip
        subprocess.run(command, cwd=scratch.path, check=True)
        for batch in BATCHES:
            ran = subprocess.run([scratch.path / "statistics", str(batch)], capture_output=True, text=True)
            assert ran.returncode == 0, f"batch {batch}: status {ran.returncode}\n{ran.stderr}"
    print("ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
