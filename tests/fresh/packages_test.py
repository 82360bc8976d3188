"""The lists of packages in .ci/setup.sh are complete, and each package has a use. Usage: packages_test.py BUILD HALIDE WORK lists|uses
The test runs each command until it calls CMake, with an apt-get that only notes packages. Then CMake configures the same options in a folder
that has only the files of these packages and of their dependencies: what else this machine has is hidden. `uses` also configures without each
of the packages: the message must name it. BUILD lends its Python environment, so that nothing needs a network.
The script ends with status 77 on a system without dpkg, or if a package is not installed."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/docs"))
import installation  # noqa: E402

SKIPPED = 77  # an exit status
#: The table's names of a command line. `project` and `pip` have no script.
COMMANDS = {"package tar": "package_tar", "demo": "demo", "package deb": "package_deb", "package wheel": "package_wheel", "bench": "bench", "check": "check"}
#: Packages of programs that CMake does not look for: a file, and the text in it that uses the package.
USES = {
    "cmake": ("demo", "cmake --build"),
    "make": ("README.md", "$ cmake -B build && cmake --build build"),  # the default generator
    "python3-venv": (".ci/setup.sh", "-m venv"),
    "dpkg-dev": ("generators/tool/packages.cmake", "SHLIBDEPS ON"),
    "file": ("generators/tool/packages.cmake", "SHLIBDEPS ON"),
    "git": ("tests/structure/structure_test.py", '"git", "ls-files"'),
    "clang-format": ("tests/structure/structure_test.py", '"clang-format"'),
    "universal-ctags": ("tests/structure/structure_test.py", '"ctags"'),
    "pkg-config": ("tests/install/install_test.py", '"pkg-config"'),
    "rustc": ("examples/rust/README.md", "\nrustc "),
    "gfortran": ("examples/fortran/README.md", "\ngfortran "),
    "pocl-opencl-icd": ("docs/develop/testing.md", "PoCL"),
    "ocl-icd-libopencl1": ("runtime/src/devices/opencl.cpp", "libOpenCL.so.1"),
    "graphviz": ("generators/tool/report_graph.cpp", '"dot"'),
    "chromium": ("tests/support/browser.py", '"chromium"'),
    "qemu-user": ("tests/cpu/cpu_test.py", '"qemu-x86_64"'),
    "mmdebstrap": ("tests/fresh/root.py", '"mmdebstrap"'),
    "clang-19": ("check", "clang++-19"),
    "libclang-rt-19-dev": ("check", "fuzzer-no-link"),
    "llvm-19": ("tests/fuzz/run.sh", "llvm-symbolizer"),
}


class System:
    """What dpkg knows: the installed packages and what they need."""

    def __init__(self):
        fields = "${Package}\t${db:Status-Status}\t${Essential}\t${Priority}\t${Pre-Depends}, ${Depends}\t${Provides}\n"
        printed = subprocess.run(["dpkg-query", "-W", "-f", fields], stdout=subprocess.PIPE, text=True, check=True).stdout
        rows = [line.split("\t") for line in printed.splitlines()]
        self.needs = {row[0]: row[4] for row in rows if row[1] == "installed"}
        self.essential = {row[0] for row in rows if row[0] in self.needs and (row[2] == "yes" or row[3] == "required")}
        self.providers = {}
        for row in rows:
            for name in re.findall(r"[^\s,()]+(?=(?: \([^)]*\))?(?:,|$))", row[5]):
                self.providers.setdefault(name, row[0])

    def dependencies(self, package: str):
        for alternatives in filter(None, map(str.strip, self.needs[package].split(","))):
            names = [re.split(r"[ :(]", name.strip())[0] for name in alternatives.split("|")]
            names = [name if name in self.needs else self.providers.get(name) for name in names]
            yield next((name for name in names if name in self.needs), None)

    def with_dependencies(self, packages, removed=frozenset()) -> set:
        """The packages, their dependencies and the essential packages, without what is removed."""
        found, rest = set(), [*packages, *self.essential]
        while rest:
            package = rest.pop()
            if package in self.needs and package not in found and package not in removed:
                found.add(package)
                rest += filter(None, self.dependencies(package))
        return found

    def without(self, package: str, packages) -> set:
        """Like with_dependencies, without a package and without all that need it."""
        whole, removed = self.with_dependencies(packages), {package}
        while True:
            more = {other for other in whole - removed if not removed.isdisjoint(self.dependencies(other))}
            if not more:
                return self.with_dependencies(packages, removed)
            removed |= more

    def files(self, packages) -> list:
        return subprocess.run(["dpkg-query", "-L", *packages], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()


LINKED = re.compile(r"/usr/(s?bin|lib|include|share/(cmake|pkgconfig|[\w-]*/cmake))/(?!python3)|/usr/(bin|include)/python3")


class Root:
    """A folder with links to the programs, headers, libraries and CMake packages of Debian packages."""

    def __init__(self, folder: pathlib.Path, system: System):
        shutil.rmtree(folder, ignore_errors=True)
        self.folder, self.system, self.links = folder, system, {}

    def hold(self, packages):
        """Changes the packages in the folder."""
        wanted = {}
        for file in self.system.files(packages):
            file = re.sub(r"^/(bin|sbin|lib)/", r"/usr/\1/", file)
            if LINKED.match(file) and not os.path.isdir(file):
                wanted[file] = file
        for name, program in (("c++", "g++"), ("cc", "gcc"), ("awk", "mawk")):  # alternatives
            if f"/usr/bin/{program}" in wanted:
                wanted[f"/usr/bin/{name}"] = f"/usr/bin/{program}"
        if "python3" in packages and "python3-pip" not in packages:  # the Python of this machine has pip
            wanted = {link: file for link, file in wanted.items() if not link.startswith("/usr/bin/python3")}
            wanted["/usr/bin/python3"] = str(self.folder.with_name("python-without-pip"))
            write_program(self.folder.with_name("python-without-pip"), 'exec /usr/bin/python3 -S "$@"\n')
        for link in [link for link, file in self.links.items() if wanted.get(link) != file]:
            (self.folder / link[1:]).unlink()
        for link in [link for link, file in wanted.items() if self.links.get(link) != file]:
            path = self.folder / link[1:]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(wanted[link])
        self.links = wanted


def write_program(file: pathlib.Path, text: str):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("#!/bin/sh\n" + text)
    file.chmod(0o755)


def lend(build: pathlib.Path, work: pathlib.Path, halide: pathlib.Path, name: str) -> pathlib.Path:
    """A build folder with the wheels and the Python environments that exist already."""
    folder = work / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    version = re.search(r"set\(SCALIDE_HALIDE_VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    (folder / f"halide-{version}").mkdir()
    (folder / f"halide-{version}/halide").symlink_to(halide)
    for plotly in build.glob("plotly-*"):
        (folder / plotly.name).symlink_to(plotly)
    for environment in re.findall(r"install_python \S+ (\S+)$", (ROOT / ".ci/setup.sh").read_text(), re.M):
        # The interpreter is the one of Debian. What it cannot import comes from the environment of the build.
        write_program(folder / environment / "bin/python", f'case "$*" in *nanobind*|*numpy*|*jaxlib*) exec {build}/venv/bin/python "$@" ;; esac\nexec python3 "$@"\n')
        (folder / environment / "installed").touch()
    (folder / "venv/packages").symlink_to(next(build.glob("venv/lib/python*/site-packages"), "/nowhere"))  # nanobind has CMake files
    return folder


def ask(command: str, folder: pathlib.Path, work: pathlib.Path):
    """Runs the command until it builds. Returns the packages that it asks for, and the arguments with which it configures (None: it does not)."""
    programs, notes = work / "programs", work / "notes"
    shutil.rmtree(notes, ignore_errors=True)
    notes.mkdir()
    for name, text in {"dpkg-query": "exit 1", "sudo": 'exec "$@"', "env": 'case "$1" in DEBIAN_FRONTEND=*) shift ;; esac\nexec /usr/bin/env "$@"',
                       "apt-get": f'[ "$1" != install ] || printf "%s\\n" "$@" > {notes}/packages',
                       "cmake": f'[ "$1" != --build ] || exit 42\nprintf "%s\\n" "$@" > {notes}/arguments\ntouch {folder}/build.ninja'}.items():  # fmt: skip
        write_program(programs / name, text + "\n")
    write_program(folder / "cuda/bin/ptxas", "echo sm_120\n")  # else ./check fetches it
    write_program(folder / "cuda/bin/fatbinary", "")
    variables = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "SCALIDE_BUILD_DIR": str(folder), "CUDA_HOME": str(folder / "cuda")}
    ran = subprocess.run([ROOT / command.split()[0], *command.split()[1:]], env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert ran.returncode != 0 and (notes / "packages").exists(), f"./{command} does not build:\n{ran.stdout}"
    packages = [word for word in (notes / "packages").read_text().split() if not word.startswith("-") and word != "install"]
    return packages, (notes / "arguments").read_text().splitlines() if (notes / "arguments").exists() else None


def configure(arguments, folder: pathlib.Path, root: Root, keep_compiler=True):
    """Configures with what the root has. CMake and the Python environment of the build are outside of it."""
    (folder / "CMakeCache.txt").unlink(missing_ok=True)
    if not keep_compiler:
        shutil.rmtree(folder / "CMakeFiles", ignore_errors=True)
    only = [f"-DCMAKE_FIND_ROOT_PATH={root.folder};{(folder / 'venv/packages').resolve()}", *(f"-DCMAKE_FIND_ROOT_PATH_MODE_{kind}=ONLY" for kind in ("PROGRAM", "PACKAGE", "LIBRARY", "INCLUDE"))]
    variables = {"PATH": str(root.folder / "usr/bin"), "HOME": str(folder)}
    ran = subprocess.run(["/usr/bin/cmake", *arguments, *only], env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return ran.returncode, " ".join(ran.stdout.split())


def check_command(name, packages, arguments, folder, root, shown, configured, uses):
    """CMake finds what it needs in the packages of the command. With `uses` it names each package that is missing."""
    options = [word for word in arguments if word != str(folder)]
    if not any(options == before and set(packages) >= less for before, less in configured):
        configured.append((options, set(packages)))
        root.hold(root.system.with_dependencies(packages))
        status, printed = configure(arguments, folder, root)
        assert status == 0, f"{name}: CMake fails in a system with {' '.join(packages)}:\n{printed}"
        assert "jemalloc not found" not in printed, f"{name}: {printed}"
    for package in packages:
        if package in shown:
            continue
        shown.add(package)
        if package in USES:
            file, text = USES[package]
            assert text in (ROOT / file).read_text(), f"{package}: {file} does not contain {text!r}. If nothing uses the package, remove it from .ci/setup.sh"
            continue
        if not uses:
            continue
        root.hold(root.system.without(package, packages))
        fetched = [link for link in folder.glob("halide-*") if package in ("python3", "python3-pip")]
        for link in fetched:  # pip gets Halide only if it is not there
            link.rename(folder / "kept")
        status, printed = configure(arguments, folder, root, keep_compiler=package != "g++")
        for link in fetched:
            (folder / "kept").rename(link)
        named = "jemalloc not found (Debian: libjemalloc-dev)" in printed if package == "libjemalloc-dev" else status != 0 and re.search(
            rf"sudo apt-get install [^:]*(?<!\S){re.escape(package)}(?!\S)", printed)  # fmt: skip
        assert named, f"{name}: without {package}, CMake ends with status {status} and does not name it. If nothing uses the package, remove it from .ci/setup.sh:\n{printed}"


def main():
    build, halide, work = (pathlib.Path(path).resolve() for path in sys.argv[1:4])
    uses = {"lists": False, "uses": True}[sys.argv[4]]
    table = installation.debian_packages(ROOT)
    if not shutil.which("dpkg-query"):
        print("skipped: this system has no dpkg")
        sys.exit(SKIPPED)
    system = System()
    absent = {package for name in ("check", "pip", "project") for package in table[name]} - set(system.needs)
    if absent:
        print(f"skipped: packages are not installed: {' '.join(sorted(absent))}")
        sys.exit(SKIPPED)
    work.mkdir(parents=True, exist_ok=True)
    root, shown, configured = Root(work / "root", system), set(), []
    # scikit-build-core gets CMake and Ninja from PyPI if the system has none. `./package wheel` runs pip, too.
    folder = lend(build, work, halide, "pip")
    defines = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]["cmake"]["define"]
    arguments = ["-S", str(ROOT), "-B", str(folder), "-G", "Ninja", f"-DPython_EXECUTABLE={folder}/venv/bin/python", *(f"-D{key}={text}" for key, text in defines.items())]
    check_command("pip install .", [*table["pip"], "cmake", "ninja-build"], arguments, folder, root, shown, configured, uses)
    for command, row in COMMANDS.items():
        folder = lend(build, work, halide, command.replace(" ", "-"))
        packages, arguments = ask(command, folder, work)
        assert packages == list(dict.fromkeys(table[row])), f"./{command} asks for {packages}, its row in .ci/setup.sh has {table[row]}"
        check_command(f"./{command}", packages, arguments, folder, root, shown, configured, uses)
        if command == "check":
            assert ask("demo", folder, work)[1] is None and ask("bench", folder, work)[1] is None, "./demo or ./bench configures again after ./check"
    unused = {package for packages in table.values() for package in packages} - shown - set(USES)
    assert not unused, f"no command asks for {sorted(unused)}"
    print("ok")


if __name__ == "__main__":
    main()
