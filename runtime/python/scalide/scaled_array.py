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


def _no_array(use):
    """What takes plain arrays alone is refused with what a user can do."""
    return TypeError(f"a ScaledArray cannot be used with {use}. Use its to_array(), or write the function for plain arrays "
                     "and call scalide.jax.scalify(function) on ScaledArrays.")  # fmt: skip


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
            raise ValueError(f"ScaledArray.scale: must be a scalar, got the shape {tuple(self.scale.shape)}. A whole array has one scale.")
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
        if not (_is_known(self.data) and _is_known(self.scale)):
            raise _no_array("numpy.asarray in jax.jit")
        return np.asarray(self.to_array(dtype))

    def __jax_array__(self):  # asked by functions of jax.numpy, which take it for no array without
        raise _no_array("functions of jax.numpy")

    def __getattr__(self, name):
        if name.startswith("_") or not hasattr(np.ndarray, name):
            raise AttributeError(f"'ScaledArray' object has no attribute '{name}'")
        raise AttributeError(str(_no_array(f"the attribute '{name}'")))

    def __repr__(self):
        return f"ScaledArray(data={self.data!r}, scale={self.scale!r})"


def _refuse(name, use):
    def refused(self, *operands):
        raise _no_array(use)

    refused.__name__ = name
    setattr(ScaledArray, name, refused)


_BINARY = {"add": "+", "sub": "-", "mul": "*", "matmul": "@", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "and": "&", "or": "|", "xor": "^",
           "lshift": "<<", "rshift": ">>"}  # fmt: skip
_USES = {"getitem": "indexing", "setitem": "indexing", "len": "len()", "bool": "a condition", "float": "float()", "int": "int()",
         "complex": "complex()", "round": "round()", "divmod": "divmod()", "rdivmod": "divmod()", "neg": "-", "pos": "+", "abs": "abs()",
         "invert": "~", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", **_BINARY, **{f"r{name}": sign for name, sign in _BINARY.items()}}  # fmt: skip
for _name, _use in _USES.items():
    _refuse(f"__{_name}__", _use)
