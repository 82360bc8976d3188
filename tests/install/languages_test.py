"""The shared runtime, and the examples in other languages. Usage: languages_test.py BUILD SOURCE WORK TEST. It uses the prefix of install_test.py."""
import re
import shutil
import sys
from pathlib import Path

import install_test
from install_test import FIRST, NO_DEPENDENCIES, SKIPPED, SUM, configure, install_runtime, project, run

#: What the shared library may need: the C library, and its parts in older versions.
C_LIBRARY = r"(libc|libm|libdl|libpthread|ld-linux-[\w-]+)\.so\.\d"


def declared():
    """The functions of the public headers."""
    names = set()
    for header in ("scalide.h", "safetensors.h", "checkpoints.h", "msgpack.h", "metrics.h", "statistics.h", "groups.h"):
        text = re.sub(r"/\*.*?\*/|^#[^\n]*", "", (install_test.SOURCE / "runtime/include/scalide" / header).read_text(), flags=re.S | re.M)
        names |= set(re.findall(r"\b(scalide_\w+)\([^;{}]*\);", text))
    return names


def defined(library):
    """The functions and variables that a shared library or an executable exports."""
    printed = run("nm", "-D", "--defined-only", library)
    return {name.partition("@")[0] for kind, name in re.findall(r"^\w+ (\w) (\S+)$", printed, re.M) if kind != "A"}


def needed(library):
    return re.findall(r"\(NEEDED\).*\[(.+)\]", run("readelf", "-d", library))


def shared_runtime():
    """The shared library exports the functions of the public headers, and needs the C library alone."""
    folder = install_test.WORK / "prefix/lib"
    version = re.search(r"^project\(Scalide VERSION (\d+)", (install_test.SOURCE / "CMakeLists.txt").read_text(), re.M)[1]
    library = folder / f"libscalide_runtime.so.{version}"
    functions = declared()
    print(f"{len(functions)} functions")
    assert len(functions) >= 65 and defined(library) == functions, defined(library) ^ functions
    assert re.findall(r"\(SONAME\).*\[(.+)\]", run("readelf", "-d", library)) == [library.name]
    assert all(re.fullmatch(C_LIBRARY, name) for name in needed(library)), needed(library)
    assert (folder / "scalide/libscalide_runtime.so").resolve() == library.resolve()
    assert not (folder / "libscalide_runtime.so").exists(), "-lscalide_runtime must link the static library"


PLUGIN = """#include <scalide/scalide.h>
scalide_status plugin(scalide_context **context) { return scalide_context_create(0, context); }
"""


def static_runtime():
    """A plug-in that contains the static runtime exports no function of it, and uses its own also if the process has another one."""
    prefix = install_test.WORK / "prefix"
    folder = project("plugin", "", plugin_dot_c=PLUGIN)
    run("cc", "-shared", "-fPIC", "plugin.c", f"-I{prefix}/include", f"-L{prefix}/lib", "-lscalide_runtime", "-o", "libplugin.so", cwd=folder)
    assert defined(folder / "libplugin.so") == {"plugin"}, defined(folder / "libplugin.so")


#: Runs `first_sum` and `second_sum` of two libraries at once.
TWO_LIBRARIES = """
import sys
from ctypes import c_float
from scalide_runtime import Error, Runtime
runtime = Runtime()
first, second = (runtime.load(path) for path in sys.argv[1:])
programs = runtime.program(first, "first"), runtime.program(second, "second")
n = 1 << 20  # enough for several threads
x, s = (c_float * n)(*[1] * n), c_float()
for program in (*programs, *programs):
    runtime.call(program, x=runtime.array(x, n), s=runtime.array((c_float * 1).from_buffer(s)))
    print(s.value)
try:
    runtime.program(first, "second")
except Error as error:
    print(error)
"""


def two_shared_libraries():
    """Two libraries of `scalide build --shared` in one process, with the shared runtime."""
    work = install_test.WORK
    folder = project("two_shared", "", two_dot_py=TWO_LIBRARIES, first_dot_scl=SUM.replace("program sum", "program first"),
                     second_dot_scl=SUM.replace("program sum", "program second").replace("reduce_sum(x)", "reduce_max(x)"))  # fmt: skip
    shutil.copy(install_test.SOURCE / "examples/ctypes/scalide_runtime.py", folder)
    for name in ("first", "second"):
        run(work / "prefix/bin/scalide", "build", f"{name}.scl", "--shared", "-o", ".", cwd=folder)
    printed = run(sys.executable, "two.py", "./libfirst.so", "./libsecond.so", cwd=folder, variables={"LD_LIBRARY_PATH": str(work / "prefix/lib")})
    assert printed == "1048576.0\n1.0\n1048576.0\n1.0\nthe library has no program 'second' (function second_program). Check the name.\n", printed


def shared_target():
    """Scalide::runtime_shared with a static and with a shared kernel library, and by pkg-config. The application contains no second runtime."""
    work = install_test.WORK
    for kind in ("", "SHARED "):
        calls = (f"find_package(Scalide REQUIRED)\nadd_scalide_library(sum {kind}PROGRAM sum.scl)\nadd_executable(a a.c)\n"
                 "target_link_libraries(a PRIVATE Scalide::runtime_shared sum)\n")  # fmt: skip
        folder = project("shared_target", calls, sum_dot_scl=SUM, a_dot_c=FIRST)
        configure(folder)
        run("cmake", "--build", folder / "build")
        uses_shared_runtime(folder / "build/a")
        assert run(folder / "build/a") == "sum 6\n"
    runtime = install_runtime(work / "shared_only")
    use = "find_package(Scalide REQUIRED COMPONENTS runtime)\nadd_executable(a a.c)\ntarget_link_libraries(a PRIVATE Scalide::runtime_shared)\n"
    folder = project("shared_only_use", use, a_dot_c="#include <scalide/scalide.h>\nint main(void) { return scalide_device_name(0)[0] != 'c'; }\n")
    configure(folder, "shared_only", *NO_DEPENDENCIES)
    run("cmake", "--build", folder / "build")
    run(folder / "build/a")
    flags = run("pkg-config", "--cflags", "--libs", "scalide-runtime-shared", variables={"PKG_CONFIG_PATH": str(runtime / "lib/pkgconfig")}).split()
    run("cc", "a.c", *flags, "-o", "a", cwd=folder)
    uses_shared_runtime(folder / "a")


def uses_shared_runtime(program):
    assert "libscalide_runtime.so.0" in needed(program), needed(program)
    printed = run("nm", program)
    runtime = {kind for kind, name in re.findall(r" (\w) (scalide_\w+)", printed) if name in declared()}
    assert runtime == {"U"}, printed


def example(name, *programs):
    """Runs the commands of the README of an example line by line. The example prints what its README shows."""
    missing = [program for program in programs if not shutil.which(program)]
    if missing:
        print(f"cannot test the example {name}: no {', '.join(missing)}. Install the Debian package of this name.")
        sys.exit(SKIPPED)
    folder = install_test.WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(install_test.SOURCE / "examples", folder / "examples")
    readme = (folder / "examples" / name / "README.md").read_text()
    (commands,) = re.findall(r"^```sh\n(.*?)^```$", readme, re.S | re.M)
    (shown,) = re.findall(r"^```text\n(.*?)^```$", readme, re.S | re.M)
    for line in commands.splitlines():
        printed = run("sh", "-c", line.replace("PREFIX", str(install_test.WORK / "prefix")), cwd=folder)
    assert printed == shown, printed
    listed = set(re.findall(r"^\| `([\w.]+)` \|", readme, re.M)) | {"README.md"}
    assert listed == {path.name for path in (install_test.SOURCE / "examples" / name).iterdir() if path.is_file()}, listed


def ctypes():
    example("ctypes")


def rust():
    example("rust", "rustc")


def fortran():
    example("fortran", "gfortran")


TESTS = [shared_runtime, static_runtime, two_shared_libraries, shared_target, ctypes, rust, fortran]

if __name__ == "__main__":
    install_test.BUILD, install_test.SOURCE, install_test.WORK = (Path(path).resolve() for path in sys.argv[1:4])
    {t.__name__: t for t in TESTS}[sys.argv[4]]()
    print("ok")
