"""jax_scalify.lax: operators on scales. In plain functions they do nothing. In scalified functions they act on data and scale. Outside of a
scalified function, a call with a ScaledArray is scalified. `scaled_add` and similar functions are in scaled_ops.py."""
import functools

import jax
import jax.numpy as jnp
import numpy as np

from ..scaled_array import ScaledArray
from .config import get_scalify_config
from .scaled_ops import scaled_function
from .scalify import scalify
from .scaling_primitives import dynamic_rescale_p, get_data_scale_p, rebalance_p, set_scaling_p, stop_scaling_p  # noqa: F401

def on_scaled_arrays(fn):
    """Returns fn, which is scalified for calls with a ScaledArray."""

    @functools.wraps(fn)
    def choose(*args, **kwargs):
        if any(isinstance(value, ScaledArray) for value in (*args, *kwargs.values())):
            return scalified(fn)(*args, **kwargs)
        return fn(*args, **kwargs)

    return choose


@functools.cache
def scalified(fn):
    return scalify(fn)


def _number(scale):
    """Converts a scale to a scalar operand. Raises ValueError if it has axes."""
    scale = jnp.asarray(scale, None if hasattr(scale, "dtype") else np.float32)
    if scale.shape != ():
        raise ValueError(f"scale: must be a scalar, got the shape {scale.shape}. A whole array has one scale.")
    return scale.astype(np.float32)


def set_scaling(x, scale):
    """Stores x with this scale, a scalar. Scale 0 stores zeros. In a scalified function, a plain x becomes scaled."""
    return x if is_plain(x) else _set_scaling(x, scale)


def is_plain(x):
    return not isinstance(x, (jax.core.Tracer, ScaledArray))


@on_scaled_arrays
def _set_scaling(x, scale):
    return set_scaling_p.bind(x, _number(scale))[0]


def stop_scaling(x, dtype=None):
    """Returns x as a plain array, data * scale, in `dtype` if it is given."""
    if is_plain(x):
        return x if dtype is None else x.astype(dtype)
    return _stop_scaling(x) if dtype is None else _stop_scaling(x).astype(dtype)


@on_scaled_arrays
def _stop_scaling(x):
    return stop_scaling_p.bind(x)[0]


def get_data_scale(x):
    """Returns (data, scale) as plain arrays, and (x, 1) for a plain array."""
    if isinstance(x, ScaledArray):
        return x.data, x.scale
    if is_plain(x):
        return x, np.ones((), get_scalify_config().scale_dtype or x.dtype)
    return tuple(get_data_scale_p.bind(x))


def rebalance(x, factor):
    """Moves a factor, a scalar, from the data of x to its scale."""
    return x if is_plain(x) else _rebalance(x, factor)


@on_scaled_arrays
def _rebalance(x, factor):
    return rebalance_p.bind(x, _number(factor))[0]


def check_scalar_scales(*arrays):
    """Raises ValueError if a scale is no scalar."""
    for array in arrays:
        _number(array.scale)


def promote_types(*dtypes):
    """Returns the dtype to which JAX promotes these dtypes."""
    return functools.reduce(jnp.promote_types, dtypes)


def promote_scale_types(*arrays):
    """Returns the ScaledArrays with scales of one dtype."""
    dtype = promote_types(*(array.scale.dtype for array in arrays))
    return [ScaledArray(array.data, array.scale.astype(dtype)) for array in arrays]


#: Helpers of jax_scalify's rules, which Scalide does not offer.
NOT_OFFERED = {
    "scaled_add_sub": "lax.scaled_add and lax.scaled_sub", "scaled_boolean_binary_op": "lax.scaled_eq, scaled_lt and so on",
    "scaled_minmax": "lax.scaled_min and lax.scaled_max", "scaled_op_default_translation": "scalify(function), which has a rule for every operator",
}  # fmt: skip


def __getattr__(name):
    if name in NOT_OFFERED:
        raise AttributeError(f"scalide.jax.lax.{name} is not supported, because the rules of Scalide are YAML files. Use {NOT_OFFERED[name]}.")
    found = scaled_function(name.removeprefix("scaled_")) if name.startswith("scaled_") else None
    if found is None:
        raise AttributeError(f"module 'scalide.jax.lax' has no attribute '{name}'")
    return found
