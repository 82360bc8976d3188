"""Tries packages in an empty folder, as their user would. Usage: packages_test.py BUILD DIST deb|tar|wheel"""
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import install_test
from install_test import FIRST, NO_DEPENDENCIES, SUM, configure, project, run

PYTHON_CODE = """
import numpy as np, scalide
library = scalide.build(scalide.Program("program twice(x: f32[n]) -> (y: f32[n]) {\\n  y = add(x, x)\\n}\\n"))
print(library(np.array([1, 2, 3], np.float32)))
"""


def package(pattern):
    """Returns the newest package in DIST whose name matches."""
    found = sorted(DIST.glob(pattern), key=lambda path: path.stat().st_mtime)
    assert found, f"no {pattern} in {DIST}"
    return found[-1]


def uses(full, runtime):
    """A project with a kernel library uses the prefix `full`, and one that only links the runtime uses the prefix `runtime`."""
    kernels = project("kernels", "find_package(Scalide REQUIRED)\nadd_scalide_library(sum PROGRAM sum.scl)\nadd_executable(a a.c)\n"
                      "target_link_libraries(a PRIVATE sum)\ninstall(TARGETS sum EXPORT app)\n"
                      "install(EXPORT app DESTINATION lib/cmake/app FILE appConfig.cmake)\n", sum_dot_scl=SUM, a_dot_c=FIRST)  # fmt: skip
    configure(kernels, full)
    run("cmake", "--build", kernels / "build")
    assert run(kernels / "build/a") == "sum 6\n"
    run("cmake", "--install", kernels / "build", "--prefix", kernels / "prefix")
    application = project("application", "find_package(Scalide REQUIRED)\nfind_package(app REQUIRED)\nadd_executable(a a.c)\n"
                          "target_link_libraries(a PRIVATE sum)\n", a_dot_c=FIRST)  # fmt: skip
    configure(application, runtime, f"-Dapp_DIR={kernels / 'prefix/lib/cmake/app'}", *NO_DEPENDENCIES)
    run("cmake", "--build", application / "build")
    assert run(application / "build/a") == "sum 6\n"


def loads(folder):
    """Python's ctypes loads the shared runtime."""
    (library,) = folder.glob("libscalide_runtime.so.*")
    assert run(sys.executable, "-c", "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).scalide_thread_count(None))", library) == "0\n"


def tar():
    for folder, pattern in (("full", "scalide-[0-9]*.tar.gz"), ("runtime", "scalide-runtime-*.tar.gz")):
        (WORK / folder).mkdir()
        run("tar", "-xzf", package(pattern), "-C", WORK / folder, "--strip-components", "1")
    assert not (WORK / "runtime/bin").exists()
    loads(WORK / "runtime/lib")
    uses("full", "runtime")


def deb():
    scalide, runtime = package("scalide_*.deb"), package("scalide-runtime_*.deb")
    for file in (scalide, runtime):
        run("dpkg-deb", "-x", file, WORK / "full")
    run("dpkg-deb", "-x", runtime, WORK / "runtime")
    depends = run("dpkg-deb", "-f", scalide, "Depends")
    assert all(name in depends for name in ("scalide-runtime (= ", "libyaml-cpp-dev", "libfmt-dev", "gcc", "libc6-dev")) and "libhalide" not in depends.lower(), depends
    assert re.fullmatch(r"libc6 \(>= [\d.]+\)\n", run("dpkg-deb", "-f", runtime, "Depends")), "applications need only the C library"
    run("dpkg-deb", "-e", runtime, WORK / "control")
    assert "ldconfig" in (WORK / "control/postinst").read_text(), "the loader finds the shared library after the installation"
    loads(WORK / "runtime/usr/lib")
    uses("full/usr", "runtime/usr")


def wheel():
    python = WORK / "venv/bin/python"
    run(os.environ.get("PYTHON", "python3"), "-m", "venv", WORK / "venv")
    tag = run(python, "-c", "import sys; print('cp%d%d' % sys.version_info[:2])").strip()
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package(f"scalide-*-{tag}-*manylinux*.whl"))
    assert run(python, "-c", PYTHON_CODE, cwd=WORK) == "[2. 4. 6.]\n"
    (WORK / "sum.scl").write_text(SUM)
    assert "1 kernels in 1 steps" in run(WORK / "venv/bin/scalide", "build", "sum.scl", "-o", "sum", cwd=WORK)
    (tool,) = (WORK / "venv/lib").glob("python*/site-packages/scalide/_install/bin/scalide")
    loads(tool.parents[1] / "lib")
    outside = [line for line in run("ldd", tool).splitlines() if any(name in line for name in ("Halide", "yaml", "fmt")) and str(WORK) not in line]
    assert not outside, outside


if __name__ == "__main__":
    BUILD, DIST = (Path(path).resolve() for path in sys.argv[1:3])
    WORK = install_test.WORK = Path(tempfile.mkdtemp(prefix="scalide-package-"))
    try:
        {t.__name__: t for t in (deb, tar, wheel)}[sys.argv[3]]()
    finally:
        shutil.rmtree(WORK)
    print("ok")
