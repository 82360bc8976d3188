"""pip and ./demo compile the tool and the runtime once. Usage: shared_build_test.py BUILD HALIDE PYTHON WORK
BUILD is a build of Scalide. PYTHON has what the Python package needs. The test configures the build of pip in folders of WORK, as pip does, and
compiles nothing: BUILD has everything, and in other folders a false Ninja builds nothing."""
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ("scalide", "scalide_runtime", "scalide_runtime_shared")
NINJA = shutil.which("ninja") or shutil.which("ninja-build")


def run(*command, shared=None):
    environment = {**os.environ, **({"SCALIDE_BUILD_DIR": str(shared)} if shared else {})}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT)
    assert done.returncode == 0, f"{' '.join(map(str, command))}:\n{done.stdout}"
    return done.stdout


def cached(build, name):
    found = re.search(rf"^{re.escape(name)}:\w+=(.+)$", (build / "CMakeCache.txt").read_text(), re.M)
    return found[1] if found else ""


def configure(folder, shared, *options):
    """Configures the build of pip beside the shared one. Returns what CMake says."""
    defines = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]["cmake"]["define"]
    same = [f"-D{name}={value}" for name in ("CMAKE_BUILD_TYPE", "CMAKE_C_FLAGS", "CMAKE_CXX_FLAGS", "CMAKE_C_COMPILER", "CMAKE_CXX_COMPILER",
                                             "SCALIDE_HALIDE_ROOT") if (value := cached(BUILD, name))]  # fmt: skip
    return run("cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", f"-DPython_EXECUTABLE={PYTHON}", *(f"-D{name}={value}" for name, value in defines.items()),
               *same, *options, shared=shared)  # fmt: skip


def lend_halide(folder):
    version = re.search(r"set\(SCALIDE_HALIDE_VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    (folder / f"halide-{version}").mkdir(parents=True)
    (folder / f"halide-{version}/halide").symlink_to(HALIDE)
    for plotly in BUILD.glob("plotly-*"):
        (folder / plotly.name).symlink_to(plotly)


def false_ninja(file):
    """A Ninja that does not build the tool. It stands for one of a temporary environment."""
    file.parent.mkdir(exist_ok=True)
    file.write_text(f'#!/bin/sh\ncase "$*" in *{TARGETS[-1]}*) exit 0 ;; esac\nexec {NINJA} "$@"\n')
    file.chmod(0o755)
    return f"-DCMAKE_MAKE_PROGRAM={file}"


def commands(folder):
    return run(NINJA, "-C", folder, "-t", "commands", *TARGETS)


def pip_after_check():
    """pip compiles nothing that BUILD has, and the wheel has the tool of BUILD."""
    folder = WORK / "after"
    assert f"The tool and the runtime are compiled in {BUILD}" in configure(folder, BUILD)
    printed = run("cmake", "--build", folder, "--target", "scalide_shared_build")
    assert "Building the tool" in printed and "Building C" not in printed, printed
    objects = set(re.findall(r"-o (\S+\.o) ", run(NINJA, "-C", folder, "-t", "commands", "scalide_wheel")))
    others = [name for name in objects if not re.search(r"scalide_python\.dir|nanobind", name)]
    assert objects and not others, f"the build of pip compiles {others}"
    run("cmake", "--install", folder, "--component", "python_tool", "--prefix", WORK / "site", "--strip")
    (library,) = (WORK / "site").glob("scalide/_install/lib*/libscalide_runtime.a")
    assert library.read_bytes() == (BUILD / "runtime/libscalide_runtime.a").read_bytes()
    assert "f8_scaled" in run(WORK / "site/scalide/_install/bin/scalide", "policies")


def demo_after_pip():
    """./demo compiles nothing that pip has compiled, though the Ninja of pip is gone."""
    shared, ninja = WORK / "first", WORK / "programs/ninja"
    lend_halide(shared)
    assert f"The tool and the runtime are compiled in {shared}" in configure(WORK / "before", shared, false_ninja(ninja))
    run("cmake", "--build", WORK / "before", "--target", "scalide_shared_build")
    by_pip = commands(shared)
    ninja.unlink()
    setup = ". .ci/setup.sh; install_packages() { :; }; scalide_setup demo"
    assert "configuring with CMake" in run("bash", "-c", setup, shared=shared)
    assert commands(shared) == by_pip and by_pip.count(".cpp") > 100, "./demo compiles with other commands than pip"
    assert run("bash", "-c", setup, shared=shared) == "", "./demo configures twice"
    # Both configure a folder whose Ninja is gone.
    run("cmake", false_ninja(ninja), shared)
    ninja.unlink()
    assert "configuring with CMake" in run("bash", "-c", setup, shared=shared)
    run("cmake", false_ninja(ninja), shared)
    ninja.unlink()
    configure(WORK / "before", shared, false_ninja(ninja.with_name("other")))
    assert "Configuring done" in run("cmake", "--build", WORK / "before", "--target", "scalide_shared_build")
    assert Path(cached(shared, "CMAKE_MAKE_PROGRAM")).is_file()


def other_settings():
    """A folder of another configuration is not shared: pip compiles what it was told to compile."""
    lend_halide(WORK / "other")
    assert "has other settings" in configure(WORK / "other", WORK / "first", "-DCMAKE_CXX_FLAGS=-g1")
    assert "generators/CMakeFiles/scalide_tool.dir" in run(NINJA, "-C", WORK / "other", "-t", "commands", "scalide_wheel")


if __name__ == "__main__":
    BUILD, HALIDE, PYTHON, WORK = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve(), sys.argv[3], Path(sys.argv[4]).resolve()
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    for test in (pip_after_check, demo_after_pip, other_settings):
        test()
    print("ok")
