"""jax_scalify.core: ScaledArrays out of arrays and back, and powers of two. NumPy arrays stay NumPy's, others become JAX's."""
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
    """Whether it is a ScaledArray (or has no parts): for `is_leaf` of JAX's tree functions."""
    return isinstance(value, (ScaledArray, np.ndarray, jax.Array)) or jax.tree_util.all_leaves([value])


def get_numpy_api(value):
    """numpy for NumPy's arrays and Python's numbers, jax.numpy for JAX's."""
    return np if isinstance(value, (np.ndarray, np.generic, bool, int, float)) else jnp


def _is_float(value):
    return isinstance(value, float) or hasattr(value, "dtype") and jnp.issubdtype(value.dtype, jnp.floating)


def _wide(dtype):
    return np.float64 if dtype == np.float64 else np.float32


def make_scaled_scalar(value: Any, scale_dtype: Any = None) -> ScaledArray:
    """A float number as data in +-[1, 2) and a power of two: 0 is 0 * 0, infinities and NaN are x * inf. The scale has the dtype that
    `scale_dtype` or the configuration says, else that of the number (f32 of Python's)."""
    api = get_numpy_api(value)
    value = api.asarray(value, None if hasattr(value, "dtype") else np.float32)
    dtype = scale_dtype or get_scalify_config().scale_dtype or value.dtype
    scale, data = pow2_decompose(value, dtype)
    return ScaledArray(data, scale)


def as_scaled_array(tree: Any, scale: Any = None) -> Any:
    """The arrays of a pytree as ScaledArrays of the same value: data = value / scale, of the value's dtype. Integers, bools and
    ScaledArrays stay as they are. Without a scale it is 1; a single float is split into mantissa and power of two."""

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
    """A ScaledArray of these parts as they are; `dtype` is that of the data, `npapi` numpy or jax.numpy."""
    return ScaledArray(npapi.asarray(data, dtype), npapi.asarray(scale))


def asarray(tree: Any, dtype: Any = None) -> Any:
    """The ScaledArrays of a pytree as plain arrays, data * scale; other arrays pass. All are cast to `dtype` where it is given."""

    def convert(value):
        if isinstance(value, ScaledArray):
            return value.to_array(dtype)
        return value if dtype is None else get_numpy_api(value).asarray(value, dtype)

    return jax.tree_util.tree_map(convert, tree, is_leaf=lambda value: isinstance(value, ScaledArray))


def get_scale_dtype(value):
    """Of a ScaledArray the scale's dtype, else that which a scale for it would have."""
    return value.scale.dtype if isinstance(value, ScaledArray) else jnp.result_type(value)


def _is_static(value):
    return isinstance(value, (np.ndarray, np.generic, bool, int, float))


def _elementwise(value, judge):
    """judge on a NumPy array; no for one that is not known when tracing. A ScaledArray is judged by both of its parts."""
    if isinstance(value, ScaledArray):
        return _elementwise(value.data, judge) | _elementwise(value.scale, judge)
    return judge(np.asarray(value)) if _is_static(value) else np.zeros(np.shape(value), np.bool_)


def is_static_zero(value):
    """Elementwise, whether it is known when tracing to be zero."""
    return _elementwise(value, lambda array: array == 0)


def is_static_anyscale(value):
    """Elementwise, whether it is known when tracing to be zero or infinite: a value that any scale represents."""
    return _elementwise(value, lambda array: (array == 0) | np.isinf(array))


def is_static_one_scalar(value):
    """Whether it is known when tracing to be the number 1."""
    if isinstance(value, ScaledArray):
        return value.size == 1 and _is_static(value.data) and _is_static(value.scale) and bool(np.all(np.asarray(value) == 1))
    return _is_static(value) and np.size(value) == 1 and bool(np.all(np.asarray(value) == 1))


def pow2_decompose(value, scale_dtype=None, mode=Pow2RoundMode.DOWN):
    """(scale, mantissa): |value| rounded down to a power of two (at least 2^-126) and value / scale. Zero is 0, 0; infinities and NaN
    have the scale inf."""
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
    """Magnitudes rounded down to a power of two; zero and infinity stay, NaN becomes infinity (there is no scale for it)."""
    value = get_numpy_api(value).asarray(value)
    return pow2_decompose(value, _wide(value.dtype))[0].astype(value.dtype)


def pow2_round_up(value):
    """Magnitudes rounded up to a power of two; powers of two stay."""
    down = pow2_round_down(value)
    return get_numpy_api(value).where(down == abs(value), down, 2 * down)


def pow2_round(value, mode=Pow2RoundMode.DOWN):
    """Magnitudes rounded to a power of two; NONE leaves the value. Raises NotImplementedError for STOCHASTIC."""
    api = get_numpy_api(value)
    if mode == Pow2RoundMode.NEAREST:
        down = pow2_round_down(value)
        return api.where(abs(value) >= 1.5 * down, pow2_round_up(value), down)
    if mode == Pow2RoundMode.STOCHASTIC:
        raise NotImplementedError("pow2_round.mode: must be NONE, DOWN, UP or NEAREST, got STOCHASTIC.")
    return {Pow2RoundMode.NONE: api.asarray, Pow2RoundMode.DOWN: pow2_round_down, Pow2RoundMode.UP: pow2_round_up}[mode](value)


def get_mantissa(value):
    """value over its magnitude rounded down to a power of two; zero, infinities and NaN stay."""
    return pow2_decompose(value)[1]


def safe_div(x, y):
    """x / y, zero where y is zero."""
    api = jnp if isinstance(x, jax.Array) or isinstance(y, jax.Array) else np
    return api.where(api.equal(y, 0), api.zeros_like(x), api.divide(x, api.where(api.equal(y, 0), api.ones_like(y), y)))


def safe_reciprocal(x):
    """1 / x, zero where x is zero."""
    return safe_div(get_numpy_api(x).ones_like(x), x)
