"""jax_scalify.core: conversions between arrays and ScaledArrays, and powers of two. NumPy arrays give NumPy arrays, others JAX arrays."""
from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..scaled_array import ScaledArray
from .config import Pow2RoundMode, ScalifyConfig, get_scalify_config
from .ops import debug_callback
from .registry import ScaledPrimitiveType, find_registered_scaled_op, register_scaled_lax_op, register_scaled_op
from .scalify import scalify

Array = jax.Array
ArrayTypes = (jax.Array, jax.core.Tracer)  # for isinstance
DTypeLike = Any
Shape = tuple[int, ...]
Sharding = Any

__all__ = ["Array", "ArrayTypes", "DTypeLike", "Pow2RoundMode", "ScaledArray", "ScaledPrimitiveType", "ScalifyConfig", "Shape",
           "Sharding", "as_scaled_array", "asarray", "debug_callback", "find_registered_scaled_op", "get_mantissa", "get_numpy_api",
           "get_scale_dtype", "get_scalify_config", "is_scaled_leaf", "is_static_anyscale", "is_static_one_scalar", "is_static_zero",
           "make_scaled_scalar", "pow2_decompose", "pow2_round", "pow2_round_down", "pow2_round_up", "register_scaled_lax_op",
           "register_scaled_op", "safe_div", "safe_reciprocal", "scaled_array", "scalify"]


def is_scaled_leaf(value: Any) -> bool:
    """Returns True for a ScaledArray, an array or another leaf. Use it for `is_leaf` of JAX's tree functions."""
    return isinstance(value, (ScaledArray, np.ndarray, jax.Array)) or jax.tree_util.all_leaves([value])


def get_numpy_api(value):
    """Returns numpy for NumPy arrays and Python numbers, and jax.numpy for JAX arrays."""
    return np if isinstance(value, (np.ndarray, np.generic, bool, int, float)) else jnp


def _is_float(value):
    return isinstance(value, float) or hasattr(value, "dtype") and jnp.issubdtype(value.dtype, jnp.floating)


def _wide(dtype):
    return np.float64 if dtype == np.float64 else np.float32


def make_scaled_scalar(value: Any, scale_dtype: Any = None) -> ScaledArray:
    """Splits a float number into data in +-[1, 2) and a power of two as the scale. 0 becomes 0 * 0; infinities and NaN become x * inf.

    Args:
        value: The number.
        scale_dtype: The dtype of the scale. Default: the dtype in ScalifyConfig, else the dtype of the number (f32 for a Python number).
    """
    api = get_numpy_api(value)
    value = api.asarray(value, None if hasattr(value, "dtype") else np.float32)
    dtype = scale_dtype or get_scalify_config().scale_dtype or value.dtype
    scale, data = pow2_decompose(value, dtype)
    return ScaledArray._of(data, scale)  # the scale may be infinite


def as_scaled_array(tree: Any, scale: Any = None) -> Any:
    """Converts the float arrays of a pytree to ScaledArrays of the same value: data = value / scale. The dtype does not change.

    Integers, bools and ScaledArrays stay unchanged. Without `scale`, the scale is 1, and a single float is split into mantissa and power of two.
    """

    def convert(value):
        if isinstance(value, ScaledArray) or not _is_float(value):
            return value
        if scale is None or is_static_one_scalar(scale):
            if scale is None and np.ndim(value) == 0 and not isinstance(value, jax.Array):
                return make_scaled_scalar(value)
            array = get_numpy_api(value).asarray(value)
            return ScaledArray(array, np.ones((), array.dtype if scale is None else getattr(scale, "dtype", np.float32)))
        api = jnp if isinstance(value, jax.Array) or isinstance(scale, jax.Array) else np
        array, one = api.asarray(value), api.asarray(scale, None if hasattr(scale, "dtype") else np.float32)
        wide = _wide(array.dtype)
        return ScaledArray((array.astype(wide) / one.astype(wide)).astype(array.dtype), one)

    return jax.tree_util.tree_map(convert, tree, is_leaf=lambda value: isinstance(value, ScaledArray))


def scaled_array(data: Any, scale: Any, dtype: Any = None, npapi: Any = jnp) -> ScaledArray:
    """Makes a ScaledArray from its parts. `dtype` is the dtype of the data. `npapi` is numpy or jax.numpy."""
    return ScaledArray(npapi.asarray(data, dtype), npapi.asarray(scale))


def asarray(tree: Any, dtype: Any = None) -> Any:
    """Converts the ScaledArrays of a pytree to plain arrays. Casts all arrays to `dtype` if it is given."""

    def convert(value):
        if isinstance(value, ScaledArray):
            return value.to_array(dtype)
        return value if dtype is None else get_numpy_api(value).asarray(value, dtype)

    return jax.tree_util.tree_map(convert, tree, is_leaf=lambda value: isinstance(value, ScaledArray))


def get_scale_dtype(value):
    """Returns the dtype of the scale of a ScaledArray. For a plain array: the dtype that a scale would have."""
    return value.scale.dtype if isinstance(value, ScaledArray) else jnp.result_type(value)


def _is_static(value):
    return isinstance(value, (np.ndarray, np.generic, bool, int, float))


def _elementwise(value, judge):
    """Applies `judge` to a NumPy array. Returns False for an array that is unknown while JAX traces. A ScaledArray: data or scale is enough."""
    if isinstance(value, ScaledArray):
        return _elementwise(value.data, judge) | _elementwise(value.scale, judge)
    return judge(np.asarray(value)) if _is_static(value) else np.zeros(np.shape(value), np.bool_)


def is_static_zero(value):
    """Returns elementwise whether the value is known to be zero while JAX traces."""
    return _elementwise(value, lambda array: array == 0)


def is_static_anyscale(value):
    """Returns elementwise whether the value is known to be zero or infinite while JAX traces. Any scale can represent such a value."""
    return _elementwise(value, lambda array: (array == 0) | np.isinf(array))


def is_static_one_scalar(value):
    """Returns whether the value is known to be the number 1 while JAX traces."""
    if isinstance(value, ScaledArray):
        return value.size == 1 and _is_static(value.data) and _is_static(value.scale) and bool(np.all(np.asarray(value) == 1))
    return _is_static(value) and np.size(value) == 1 and bool(np.all(np.asarray(value) == 1))


def pow2_decompose(value, scale_dtype=None, mode=Pow2RoundMode.DOWN):
    """Returns (scale, mantissa): |value| rounded down to a power of two of at least 2^-126, and value / scale.

    Zero gives (0, 0). Infinities and NaN have the scale inf.

    Raises:
        NotImplementedError: mode is not DOWN.
    """
    if mode != Pow2RoundMode.DOWN:
        raise NotImplementedError(f"pow2_decompose.mode: must be DOWN, got {Pow2RoundMode(mode).name}.")
    api = get_numpy_api(value)
    value = api.asarray(value)
    wide = value.astype(_wide(value.dtype))
    _, exponent = api.frexp(wide)
    exponent = api.maximum(exponent - 1, -126)
    finite = api.isfinite(wide)
    scale = api.ldexp(api.ones_like(wide), api.where(finite, exponent, 0))
    mantissa = api.where(finite, wide / scale, wide)
    scale = api.where(finite, api.where(wide == 0, 0, scale), np.inf)
    return scale.astype(scale_dtype or value.dtype), mantissa.astype(value.dtype)


def pow2_round_down(value):
    """Rounds magnitudes down to a power of two. Zero and infinity stay; NaN becomes infinity, because NaN is no scale."""
    value = get_numpy_api(value).asarray(value)
    return pow2_decompose(value, _wide(value.dtype))[0].astype(value.dtype)


def pow2_round_up(value):
    """Rounds magnitudes up to a power of two. Exact powers of two stay."""
    down = pow2_round_down(value)
    return get_numpy_api(value).where(down == abs(value), down, 2 * down)


def pow2_round(value, mode=Pow2RoundMode.DOWN):
    """Rounds magnitudes to a power of two. NONE returns the value. Raises NotImplementedError for STOCHASTIC."""
    api = get_numpy_api(value)
    if mode == Pow2RoundMode.NEAREST:
        down = pow2_round_down(value)
        return api.where(abs(value) >= 1.5 * down, pow2_round_up(value), down)
    if mode == Pow2RoundMode.STOCHASTIC:
        raise NotImplementedError("pow2_round.mode: must be NONE, DOWN, UP or NEAREST, got STOCHASTIC.")
    return {Pow2RoundMode.NONE: api.asarray, Pow2RoundMode.DOWN: pow2_round_down, Pow2RoundMode.UP: pow2_round_up}[mode](value)


def get_mantissa(value):
    """Returns value / |value| rounded down to a power of two. Zero, infinities and NaN stay."""
    return pow2_decompose(value)[1]


def safe_div(x, y):
    """Returns x / y, and zero where y is zero."""
    api = jnp if isinstance(x, jax.Array) or isinstance(y, jax.Array) else np
    return api.where(api.equal(y, 0), api.zeros_like(x), api.divide(x, api.where(api.equal(y, 0), api.ones_like(y), y)))


def safe_reciprocal(x):
    """Returns 1 / x, and zero where x is zero."""
    return safe_div(get_numpy_api(x).ones_like(x), x)
