"""ScaledArray: an array that is stored as data and one scale."""
from __future__ import annotations

import sys
import warnings
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
    """Returns True if the array has a value, that is, if it is no JAX tracer."""
    jax = sys.modules.get("jax")
    return isinstance(array, np.ndarray) or jax is not None and isinstance(array, jax.Array) and not isinstance(array, jax.core.Tracer)


def _no_array(use):
    """Returns the error for a use that needs a plain array."""
    return TypeError(f"a ScaledArray cannot be used with {use}. Use its to_array(), or write the function for plain arrays "
                     "and call scalide.jax.scalify(function) on ScaledArrays.")  # fmt: skip


def _has_numbers(array) -> bool:
    """Returns True if an element is not 0. Elements that a broadcast repeats are read once."""
    once = tuple(slice(None, 1) if stride == 0 else slice(None) for stride in array.strides)
    return bool(np.any(array[once]))


def _check_scale(scale, data):
    if scale < 0:
        raise ValueError(f"ScaledArray.scale: must not be negative, got {scale}. The sign belongs to the data.")
    with np.errstate(over="ignore"):
        as_used = scale.astype(np.float32)
    if not np.isfinite(as_used):
        raise ValueError(f"ScaledArray.scale: must be finite in f32, got {scale}. Put infinities and NaN into the data.")
    if as_used == 0 and _is_known(data) and _has_numbers(np.asarray(data)):
        warnings.warn("ScaledArray.scale: is 0, so the value of the array is 0, but the data is not. Use a positive scale.", stacklevel=3)


class ScaledArray:
    """The array `data * scale`: low-precision data, and one scale for the whole array.

    `dtype`, `shape`, `size` and `ndim` are properties of the data. After `import scalide.jax`, a ScaledArray is a pytree of data and scale.

    Args:
        data: A NumPy or JAX array with a float dtype. Inside of `jax.jit` it is a tracer.
        scale: A scalar array, or a number (then f32). It must be finite and not negative. A power of two is best. Libraries use it as f32.

    Raises:
        TypeError: data or scale is no array and no number.
        ValueError: scale has axes, is negative, infinite or NaN.

    Warns:
        UserWarning: The scale is 0, but the data has other numbers than 0. The value of such an array is 0.
    """

    __slots__ = ("data", "scale")

    def __init__(self, data: Any, scale: Any):
        self.data, self.scale = _as_array(data, "data"), _as_array(scale, "scale")
        if self.scale.shape != ():
            raise ValueError(f"ScaledArray.scale: must be a scalar, got the shape {tuple(self.scale.shape)}. A whole array has one scale.")
        if _is_known(self.scale):
            _check_scale(np.asarray(self.scale), self.data)

    @classmethod
    def _of(cls, data, scale):
        """Makes a ScaledArray without checks, because JAX also puts other objects into pytrees."""
        array = object.__new__(cls)
        array.data, array.scale = data, scale
        return array

    dtype = property(lambda self: self.data.dtype, doc="The dtype of the data.")
    shape = property(lambda self: self.data.shape, doc="The shape of the data.")
    size = property(lambda self: self.data.size, doc="The number of elements.")
    ndim = property(lambda self: self.data.ndim, doc="The number of axes.")

    @property
    def aval(self) -> Any:
        """The abstract value of the data in JAX."""
        from jax.core import ShapedArray

        return ShapedArray(self.shape, self.dtype)

    def to_array(self, dtype: Any = None) -> Any:
        """Returns `data * scale` as a plain array, computed in f32 or wider and rounded once. Default dtype: the dtype of the data."""
        wide = np.float64 if self.dtype == np.float64 else np.float32
        return (self.data.astype(wide) * self.scale.astype(wide)).astype(dtype or self.dtype)

    def astype(self, dtype: Any) -> ScaledArray:
        """Returns a ScaledArray with the data cast to another dtype and the same scale."""
        return ScaledArray._of(self.data.astype(dtype), self.scale)

    def __array__(self, dtype=None, copy=None):
        if not (_is_known(self.data) and _is_known(self.scale)):
            raise _no_array("numpy.asarray in jax.jit")
        return np.asarray(self.to_array(dtype))

    def __jax_array__(self):  # called by functions of jax.numpy; without it they report that this is no array
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
