"""ScaledArrays in flax.serialization, so that `to_bytes` and `from_bytes` take trees that have them.

Flax asks a table for the classes that it does not know, and has no other hook; Scalide shall not import Flax. So this waits until somebody does."""
from __future__ import annotations

import importlib.abc
import importlib.util
import sys

from .scaled_array import ScaledArray

_MODULE = "flax.serialization"


def register() -> None:
    """Puts ScaledArray into Flax's table, now or as soon as Flax is imported."""
    if _MODULE in sys.modules:
        _register(sys.modules[_MODULE])
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    """Finds nothing: lets the other finders find Flax's module, and registers when that has run."""

    def find_spec(self, name, path=None, target=None):
        if name != _MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_register(module):
                run(module)
                _register(module)

            spec.loader.exec_module = run_and_register
        return spec


def _register(serialization) -> None:
    def state_of(array):
        return {part: serialization.to_state_dict(getattr(array, part)) for part in ("data", "scale")}

    def of_state(target, state):
        missing = {"data", "scale"} ^ set(state)
        if missing:
            raise ValueError(f"the state of a ScaledArray must have the keys data and scale, got {', '.join(sorted(map(str, state)))}.")
        return ScaledArray(*(serialization.from_state_dict(getattr(target, part), state[part], name=part) for part in ("data", "scale")))

    serialization.register_serialization_state(ScaledArray, state_of, of_state, override=True)
