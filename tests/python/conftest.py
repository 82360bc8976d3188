"""Fixtures of the tests of the Python package."""
import os
import subprocess

import pytest

TOOL = os.environ["SCALIDE_TOOL"]


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: a case that only ./check --slow runs (python.<name>.slow)")


def slow_unless(is_fast, cases):
    """Parameters of the cases; those for which `is_fast` is false are marked slow. They repeat what other cases test, in other dtypes or policies."""
    return [pytest.param(*case, marks=() if is_fast(*case) else pytest.mark.slow) for case in cases]


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
