"""Settings of `scalify`: how scales are rounded."""
from __future__ import annotations

import enum
import threading
from typing import Any


class Pow2RoundMode(enum.IntEnum):
    """How a scale is rounded to a power of two. NONE: not at all. UP keeps exact powers of two (jax_scalify doubles them)."""

    NONE = 0
    DOWN = 1
    UP = 2
    STOCHASTIC = 3
    NEAREST = 4


class ScalifyConfig:
    """Settings for scalified functions that are traced inside of a `with` block.

    Args:
        rounding_mode: How scales are rounded to powers of two.
        scale_dtype: The dtype of scales from `as_scaled_array` of a number, and from `get_data_scale` in plain functions. Libraries always
            take and return f32 scales.

    Raises:
        NotImplementedError: rounding_mode is STOCHASTIC.
    """

    def __init__(self, rounding_mode: Pow2RoundMode = Pow2RoundMode.DOWN, scale_dtype: Any = None):
        if rounding_mode == Pow2RoundMode.STOCHASTIC:
            raise NotImplementedError("ScalifyConfig.rounding_mode: must be NONE, DOWN, UP or NEAREST, got STOCHASTIC. "
                                      "A policy can round stochastically ('rounding: stochastic', see docs/reference/policies.md).")
        self.rounding_mode, self.scale_dtype = Pow2RoundMode(rounding_mode), scale_dtype

    def __enter__(self):
        _configs().append(self)
        return self

    def __exit__(self, *_):
        _configs().pop()

    def __repr__(self):
        return f"ScalifyConfig(rounding_mode={self.rounding_mode!r}, scale_dtype={self.scale_dtype!r})"


_local = threading.local()


def _configs():
    if not hasattr(_local, "configs"):
        _local.configs = [ScalifyConfig()]
    return _local.configs


def get_scalify_config() -> ScalifyConfig:
    """Returns the ScalifyConfig of the innermost `with` block of this thread."""
    return _configs()[-1]
