"""The installation and the environment variables with which the blocks of pages run."""
import fcntl
import os
import pathlib
import re
import shutil
import subprocess


def install(build: pathlib.Path) -> pathlib.Path:
    """Installs the build into BUILD/tests/docs/prefix, again only after a newer build. Returns that folder."""
    folder = build / "tests/docs"
    folder.mkdir(parents=True, exist_ok=True)
    prefix, stamp = folder / "prefix", folder / "installed"
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.stat().st_mtime < (build / ".ninja_log").stat().st_mtime:
            shutil.rmtree(prefix, ignore_errors=True)
            subprocess.run(["cmake", "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
            stamp.touch()
    return prefix


def python_of(build: pathlib.Path) -> pathlib.Path:
    """The Python that the build was configured with."""
    found = re.search(r"^_?Python_EXECUTABLE:\w+=(.+)$", (build / "CMakeCache.txt").read_text(), re.M)
    return pathlib.Path(found[1] if found else shutil.which("python3"))


def environment(build: pathlib.Path, prefix: pathlib.Path, python: pathlib.Path, work: pathlib.Path) -> dict:
    """Variables for blocks that run in WORK/page. Makes WORK/bin, in which `python` is the given Python."""
    tools = work / "bin"
    tools.mkdir()
    for name in ("python", "python3"):
        (tools / name).write_text(f'#!/bin/sh\nexec {python} "$@"\n')
        (tools / name).chmod(0o755)
    variables = {name: text for name, text in os.environ.items() if not name.startswith("SCALIDE_") and name != "Scalide_DIR"}
    return variables | {
        "PATH": f"{tools}:{prefix / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(build / "python"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "SCALIDE_TOOL": str(prefix / "bin/scalide"),
        "CMAKE_PREFIX_PATH": str(prefix),
        "CMAKE_GENERATOR": "Ninja",
        "HOME": str(work / "home"),
        "XDG_CACHE_HOME": str(work / "cache"),
        "TMPDIR": str(work / "tmp"),
        "JAX_PLATFORMS": "cpu",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "120",
        "LC_ALL": "C.UTF-8",
    }
