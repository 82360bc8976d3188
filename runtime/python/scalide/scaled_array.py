"""ScaledArray: an array stored as data and one scale."""
from __future__ import annotations

import sys
from typing import Any

import numpy as np


def _as_array(value, name):
    if isinstance(value, np.generic):
        return np.asarray(value)
    if hasattr(value, "dtype"):
        return value
    if isinstance(value, (bool, int, float)):
        return np.asarray(value, np.float32)
    raise TypeError(f"ScaledArray.{name}: must be an array, got {type(value).__name__}. Use numpy.asarray or jax.numpy.asarray.")


def _is_known(array):
    """Whether it has a value: not a tracer of JAX."""
    jax = sys.modules.get("jax")
    return isinstance(array, np.ndarray) or jax is not None and isinstance(array, jax.Array) and not isinstance(array, jax.core.Tracer)


class ScaledArray:
    """The array `data * scale`.

    data: a NumPy or JAX array (inside of `jax.jit`: a tracer) of a float dtype.
    scale: an array of rank 0, or a number (then f32); not negative, finite, best a power of two. A library takes it as f32.

    `dtype`, `shape`, `size` and `ndim` are those of the data. `scalide.jax` makes it a pytree of data and scale.
    """

    __slots__ = ("data", "scale")

    def __init__(self, data: Any, scale: Any):
        self.data, self.scale = _as_array(data, "data"), _as_array(scale, "scale")
        if self.scale.shape != ():
            raise ValueError(f"ScaledArray.scale: must have rank 0, got the shape {tuple(self.scale.shape)}. One scale belongs to a whole array.")
        if _is_known(self.scale) and np.asarray(self.scale) < 0:
            raise ValueError(f"ScaledArray.scale: must not be negative, got {self.scale}. The sign belongs to the data.")

    @classmethod
    def _of(cls, data, scale):
        """Without checks: JAX puts other things than arrays into a pytree."""
        array = object.__new__(cls)
        array.data, array.scale = data, scale
        return array

    dtype = property(lambda self: self.data.dtype, doc="That of the data.")
    shape = property(lambda self: self.data.shape, doc="That of the data.")
    size = property(lambda self: self.data.size, doc="Elements.")
    ndim = property(lambda self: self.data.ndim, doc="Rank.")

    @property
    def aval(self) -> Any:
        """JAX's abstract value of the data."""
        from jax.core import ShapedArray

        return ShapedArray(self.shape, self.dtype)

    def to_array(self, dtype: Any = None) -> Any:
        """data * scale as a plain array of `dtype` (default: that of the data), computed in f32 or wider and rounded once."""
        wide = np.float64 if self.dtype == np.float64 else np.float32
        return (self.data.astype(wide) * self.scale.astype(wide)).astype(dtype or self.dtype)

    def astype(self, dtype: Any) -> ScaledArray:
        """The data in another dtype; the scale stays as it is."""
        return ScaledArray(self.data.astype(dtype), self.scale)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.to_array(dtype))

    def __repr__(self):
        return f"ScaledArray(data={self.data!r}, scale={self.scale!r})"
