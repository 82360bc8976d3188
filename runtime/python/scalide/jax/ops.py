"""jax_scalify.ops: rescaling by norms, casts in one direction, debugging. Casts on the forward pass also act under `grad`, unlike in jax_scalify."""
import functools

import jax
import jax.numpy as jnp

from ..scaled_array import ScaledArray
from . import lax
from .lax import on_scaled_arrays


def on_forward(fn, doc):
    """Returns the function x -> fn(x). The gradient passes through it unchanged."""
    operation = jax.custom_vjp(fn)
    operation.defvjp(lambda x: (fn(x), jnp.zeros((0,), x.dtype)), lambda empty, cotangent: (cotangent.astype(empty.dtype),))
    operation.__doc__ = doc
    return operation


def on_backward(fn, doc):
    """Returns the function x -> x. It applies fn to the gradient."""
    operation = jax.custom_vjp(lambda x: x)
    operation.defvjp(lambda x: (x, None), lambda _, cotangent: (fn(cotangent).astype(cotangent.dtype),))
    operation.__doc__ = doc
    return operation


def map_on_forward(fn, x):
    """Returns fn(x). The gradient passes unchanged."""
    return on_forward(fn, "")(x)


def map_on_backward(fn, x):
    """Returns x. Applies fn to the gradient."""
    return on_backward(fn, "")(x)


def _rescales(norm, words):
    def rescale(x):
        return lax.dynamic_rescale_p[norm].bind(x)[0]

    forward = on_scaled_arrays(rescale)

    def on_value(x):
        return x if lax.is_plain(x) else forward(x)

    on_value.__doc__ = f"Moves a power of two from the data of x to its scale, so that {words} of the data is in [1, 2). Returns plain arrays unchanged."
    backward = on_backward(rescale, "")

    def on_cotangent(x):
        return backward(x) if isinstance(x, jax.core.Tracer) else x

    on_cotangent.__doc__ = f"Returns x. Rescales its gradient, so that {words} of the data is in [1, 2)."
    return on_value, on_cotangent


dynamic_rescale_max, dynamic_rescale_max_grad = _rescales("max", "the largest magnitude")
dynamic_rescale_l1, dynamic_rescale_l1_grad = _rescales("l1", "the mean magnitude")
dynamic_rescale_l2, dynamic_rescale_l2_grad = _rescales("l2", "the root of the mean square")


@functools.cache
def _cast(kind, dtype):
    dtype = jnp.dtype(dtype)
    info = jnp.finfo(dtype)
    return {
        "cast_on_forward": lambda: on_forward(lambda x: x.astype(dtype), "Casts x."),
        "cast_on_backward": lambda: on_backward(lambda ct: ct.astype(dtype), "Rounds the gradient."),
        "reduce_precision_on_forward": lambda: on_forward(lambda x: jax.lax.reduce_precision(x, info.nexp, info.nmant), "Reduces the precision of x."),
        "reduce_precision_on_backward": lambda: on_backward(lambda ct: jax.lax.reduce_precision(ct, info.nexp, info.nmant), ""),
    }[kind]()


def _casts(kind, doc):
    def cast(x, dtype):
        operation = _cast(kind, jnp.dtype(dtype))
        return lax.scalified(operation)(x) if isinstance(x, ScaledArray) else operation(x)

    cast.__name__, cast.__doc__ = kind, doc
    return cast


cast_on_forward = _casts("cast_on_forward", "Casts x (the data of a ScaledArray) to a dtype. The gradient passes unchanged.")
cast_on_backward = _casts("cast_on_backward", "Returns x. Rounds its gradient to a dtype.")
reduce_precision_on_forward = _casts("reduce_precision_on_forward", "Rounds x to the exponent and mantissa bits of a dtype, as `jax.lax.reduce_precision` does.")
reduce_precision_on_backward = _casts("reduce_precision_on_backward", "Returns x. Rounds its gradient to the exponent and mantissa bits of a dtype.")

cast_ml_dtype, cast_ml_dtype_grad = reduce_precision_on_forward, reduce_precision_on_backward  # their names in the first versions of jax_scalify


def debug_callback(callback, *args):
    """Calls a host function with the arrays, as jax.debug.callback does, in order. Outside of scalified functions it gets ScaledArrays."""
    return jax.debug.callback(callback, *args, ordered=True)


def debug_print(fmt, *args):
    """Prints `fmt.format(*args)`."""
    return debug_callback(lambda *values: print(fmt.format(*values)), *args)


def debug_callback_grad(callback, *args):
    """Returns args. Calls a host function with their gradients."""

    def show(cotangents):
        debug_callback(callback, *cotangents)
        return cotangents

    operation = jax.custom_vjp(lambda *args: args)
    operation.defvjp(lambda *args: (args, None), lambda _, cotangents: tuple(show(cotangents)))
    return operation(*args)


def debug_print_grad(fmt, *args):
    """Returns args. Prints `fmt.format(*gradients)`."""
    return debug_callback_grad(lambda *values: print(fmt.format(*values)), *args)
