"""The functions `scaled_<primitive>` of jax_scalify.lax: one LAX operator on ScaledArrays. Each function is the scalified operator, so its first
call with new shapes builds a library. Inside of a scalified function, use the operator itself."""
from __future__ import annotations

import functools
import inspect
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..scaled_array import ScaledArray
from .scalify import scalify


def _window(start: float, combine: Callable) -> Callable:
    return lambda x, window_dimensions, window_strides, padding, base_dilation, window_dilation: lax.reduce_window(
        x, start, combine, window_dimensions, window_strides, padding, base_dilation, window_dilation)  # fmt: skip


#: The functions by the name of the primitive. Arrays come first, then the parameters.
FUNCTIONS: dict[str, Callable] = {
    **{name: getattr(lax, name) for name in "abs add cos div eq exp ge gt is_finite le log lt max min mul ne neg sign sin sqrt stop_gradient sub".split()},
    "argmax": lambda x, axes, index_dtype: lax.argmax(x, axes[0], index_dtype),
    "argmin": lambda x, axes, index_dtype: lax.argmin(x, axes[0], index_dtype),
    "broadcast_in_dim": lambda x, shape, broadcast_dimensions: lax.broadcast_in_dim(x, shape, broadcast_dimensions),
    "concatenate": lambda operands, dimension: lax.concatenate(operands, dimension),
    "conv_general_dilated": lambda x, y, **params: lax.conv_general_dilated(x, y, **params),
    "convert_element_type": lambda x, new_dtype, weak_type=False, sharding=None: lax.convert_element_type(x, new_dtype),
    "dot_general": lambda x, y, dimension_numbers, precision=None, preferred_element_type=None: lax.dot_general(
        x, y, dimension_numbers, precision, preferred_element_type),
    "integer_pow": lambda x, y: lax.integer_pow(x, y),
    "pad": lambda x, padding_value, padding_config: lax.pad(x, jnp.asarray(padding_value, x.dtype), padding_config),
    "reduce_max": lambda x, axes: jnp.max(x, axes),
    "reduce_min": lambda x, axes: jnp.min(x, axes),
    "reduce_precision": lambda x, exponent_bits, mantissa_bits: lax.reduce_precision(x, exponent_bits, mantissa_bits),
    "reduce_prod": lambda x, axes: jnp.prod(x, axes),
    "reduce_sum": lambda x, axes: jnp.sum(x, axes),
    "reduce_window_max": _window(-jnp.inf, lax.max),
    "reduce_window_min": _window(jnp.inf, lax.min),
    "reduce_window_sum": _window(0.0, lax.add),
    "reshape": lambda x, new_sizes, dimensions=None: lax.reshape(x, new_sizes, dimensions),
    "rev": lambda x, dimensions: lax.rev(x, dimensions),
    "select_n": lambda which, *cases: lax.select_n(which, *cases),
    "slice": lambda x, start_indices, limit_indices, strides=None: lax.slice(x, start_indices, limit_indices, strides),
    "transpose": lambda x, permutation: lax.transpose(x, permutation),
}  # fmt: skip


def _is_array(value: Any) -> bool:
    parts = value if isinstance(value, (list, tuple)) else [value]
    return any(isinstance(part, (ScaledArray, np.ndarray, np.generic, jax.Array)) for part in parts)


def _fixed(value: Any) -> Any:
    """Returns a parameter as part of a hashable key."""
    return tuple(map(_fixed, value)) if type(value) in (list, tuple) else value


@functools.cache
def scaled_function(name: str) -> Callable | None:
    """Returns `scaled_<name>`, or None. It takes arrays and ScaledArrays, then the parameters of the primitive."""
    if name not in FUNCTIONS:
        return None
    fn = FUNCTIONS[name]
    names = list(inspect.signature(fn).parameters)

    @functools.cache
    def with_parameters(params: tuple) -> Callable:
        return scalify(functools.partial(fn, **dict(params)))

    def scaled(*args, **params):
        arrays = next((place for place, arg in enumerate(args) if not _is_array(arg)), len(args))
        params |= zip(names[arrays:], args[arrays:])
        return with_parameters(tuple((key, _fixed(value)) for key, value in sorted(params.items())))(*args[:arrays])

    scaled.__name__ = f"scaled_{name}"
    scaled.__doc__ = f"Applies lax.{name} to ScaledArrays and arrays. Builds its own library."
    return scaled
