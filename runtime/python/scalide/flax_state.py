"""Support for ScaledArrays in flax.serialization: `to_bytes` and `from_bytes` accept them.

Flax looks up unknown classes in a table. Scalide must not import Flax, so it adds ScaledArray to the table when the user imports Flax."""
from __future__ import annotations

import importlib.abc
import importlib.util
import sys

from .scaled_array import ScaledArray

_MODULE = "flax.serialization"


def register() -> None:
    """Adds ScaledArray to the table of Flax, now or when Flax is imported."""
    if _MODULE in sys.modules:
        _register(sys.modules[_MODULE])
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


class _Finder(importlib.abc.MetaPathFinder):
    """An import hook. The other finders find the module of Flax; the hook adds ScaledArray after the module was executed."""

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
