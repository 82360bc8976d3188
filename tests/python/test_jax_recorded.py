"""Jaxprs that later versions of JAX wrote, under the Python and the JAX of these tests (recorded_jaxprs.py)."""
import importlib
import json

import jax
import pytest
import recorded_jaxprs
from oracle import differs, errors

import scalide
import scalide.jax
from scalide.jax import compat

RECORDS = {path.stem: json.loads(path.read_text()) for path in sorted(recorded_jaxprs.FOLDER.glob("*.json"))}
trace_module = importlib.import_module("scalide.jax.trace")


def test_the_newest_version_is_recorded():
    assert list(RECORDS)[-1] == compat.TESTED[-1]
    for version, record in RECORDS.items():
        assert record.keys() == recorded_jaxprs.MODELS.keys(), f"{version}: run tests/python/recorded_jaxprs.py with this JAX"


@pytest.mark.parametrize("version", RECORDS)
@pytest.mark.parametrize("name", recorded_jaxprs.MODELS)
def test_results_are_those_of_jax(version, name, monkeypatch, partitionable):
    fn, *args = recorded_jaxprs.MODELS[name]
    whole = [recorded_jaxprs.read(RECORDS[version][name])]

    class Walk(trace_module.Walk):
        def run_closed(self, jaxpr, arguments):
            return super().run_closed(whole.pop() if whole else jaxpr, arguments)  # the first call is that of the whole function

    monkeypatch.setattr(trace_module, "Walk", Walk)
    got = scalide.build(scalide.jax.trace(fn, *args))(*args)
    want = jax.jit(fn)(*args)
    for (path, leaf), mine, allowed in zip(jax.tree_util.tree_leaves_with_path(want), jax.tree.leaves(got), errors(jax.jit(fn), args, want), strict=True):
        assert not differs(mine, leaf, allowed), f"{jax.tree_util.keystr(path)}: {differs(mine, leaf, allowed)}"
