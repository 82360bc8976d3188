"""Fixtures of the tests of the Python package."""
import os
import pathlib
import socket
import subprocess

import pytest

TOOL = os.environ["SCALIDE_TOOL"]


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: a case that only ./check --slow runs (python.<name>.slow)")


def slow_unless(is_fast, cases):
    """Parameters of the cases; those for which `is_fast` is false are marked slow. They repeat what other cases test, in other dtypes or policies."""
    return [pytest.param(*case, marks=() if is_fast(*case) else pytest.mark.slow) for case in cases]


def why_no_gloo():
    """Why processes of JAX cannot exchange data over the loopback here, or None. Gloo listens at the address of the machine's name."""
    try:
        address = socket.gethostbyname(socket.gethostname())
    except OSError:
        return f"the name of this machine, {socket.gethostname()}, has no address"
    return None if address.startswith("127.") else f"the name of this machine, {socket.gethostname()}, is not the loopback"


def golden_folder(suite):
    """The folder of a suite of reference data: the whole suite if the machine has it, otherwise the part in this project."""
    shared = os.environ.get("SCALIDE_SHARED_DIR")
    whole = pathlib.Path(shared or ".", "golden")
    return whole if shared and (whole / f"{suite}.json").exists() else pathlib.Path(__file__).parents[1] / "golden/data"


def compile_text(folder, text, numerics="f32", *options):
    """The shared library of the last program in a `.scl` text, in a folder; its path. The kernels come from the user's cache."""
    source = folder / "source.scl"
    source.write_text(text)
    subprocess.run([TOOL, "build", source, "-n", numerics, "--shared", "-o", folder, *options], check=True, stdout=subprocess.DEVNULL)
    return next(folder.glob("lib*.so"))


@pytest.fixture(scope="session")
def libraries(tmp_path_factory):
    """compile(text, numerics) -> path, each once a session."""
    known = {}

    def compile(text, numerics="f32", *options):
        key = text, numerics, options
        if key not in known:
            known[key] = compile_text(tmp_path_factory.mktemp("library"), text, numerics, *options)
        return known[key]

    return compile


@pytest.fixture
def partitionable():
    """Random bits of JAX in the order that later versions have by default; programs know no other."""
    import jax

    before = jax.config.jax_threefry_partitionable
    jax.config.update("jax_threefry_partitionable", True)
    yield
    jax.config.update("jax_threefry_partitionable", before)


def edited_library(folder, text, edits):
    """The library of a program whose plan, as C source, was edited: each text of `edits` is replaced by its value."""
    folder.mkdir()
    library = compile_text(folder, text)
    name = library.stem.removeprefix("lib")
    plan, archive, root = folder / f"{name}.plan.c", folder / f"lib{name}.a", pathlib.Path(__file__).parents[2]
    source = plan.read_text()
    for old, new in edits.items():
        assert old in source
        source = source.replace(old, new)
    plan.write_text(source)
    runtime = pathlib.Path(TOOL).parents[1] / "runtime/libscalide_runtime.a"
    for command in (["cc", "-c", "-fPIC", "-I", root / "runtime/include", plan, "-o", folder / f"{name}.plan.o"],
                    ["ar", "r", archive, folder / f"{name}.plan.o"],
                    ["cc", "-shared", "-o", library, "-Wl,--whole-archive", archive, "-Wl,--no-whole-archive", runtime]):
        subprocess.run(command, check=True, capture_output=True)
    return library
