"""jax_scalify.ops: rescaling by norms, casts in one direction, debugging. Those on one direction differ from Scalify's in that the forward
ones act under `grad` too."""
import functools

import jax
import jax.numpy as jnp

from ..scaled_array import ScaledArray
from . import lax
from .lax import on_scaled_arrays


def on_forward(fn, doc):
    """x -> fn(x), through which cotangents pass as they are."""
    operation = jax.custom_vjp(fn)
    operation.defvjp(lambda x: (fn(x), jnp.zeros((0,), x.dtype)), lambda empty, cotangent: (cotangent.astype(empty.dtype),))
    operation.__doc__ = doc
    return operation


def on_backward(fn, doc):
    """x -> x, with fn on the cotangent."""
    operation = jax.custom_vjp(lambda x: x)
    operation.defvjp(lambda x: (x, None), lambda _, cotangent: (fn(cotangent).astype(cotangent.dtype),))
    operation.__doc__ = doc
    return operation


def map_on_forward(fn, x):
    """fn(x), through which cotangents pass as they are. jax_scalify.ops.utils has it."""
    return on_forward(fn, "")(x)


def map_on_backward(fn, x):
    """x, with fn on the cotangent."""
    return on_backward(fn, "")(x)


def _rescales(norm, words):
    def rescale(x):
        return lax.dynamic_rescale_p[norm].bind(x)[0]

    forward = on_scaled_arrays(rescale)

    def on_value(x):
        return x if lax._is_plain(x) else forward(x)

    on_value.__doc__ = f"x, with a power of two moved from its data to its scale so that {words} of the data lands in [1, 2). Plain arrays stay."
    backward = on_backward(rescale, "")

    def on_cotangent(x):
        return backward(x) if isinstance(x, jax.core.Tracer) else x

    on_cotangent.__doc__ = f"x; its cotangent is rescaled so that {words} of the data lands in [1, 2)."
    return on_value, on_cotangent


dynamic_rescale_max, dynamic_rescale_max_grad = _rescales("max", "the largest magnitude")
dynamic_rescale_l1, dynamic_rescale_l1_grad = _rescales("l1", "the mean magnitude")
dynamic_rescale_l2, dynamic_rescale_l2_grad = _rescales("l2", "the root of the mean square")


@functools.cache
def _cast(kind, dtype):
    dtype = jnp.dtype(dtype)
    info = jnp.finfo(dtype)
    return {
        "cast_on_forward": lambda: on_forward(lambda x: x.astype(dtype), "x cast to a dtype"),
        "cast_on_backward": lambda: on_backward(lambda ct: ct.astype(dtype), "x; its cotangent is rounded through a dtype"),
        "reduce_precision_on_forward": lambda: on_forward(lambda x: jax.lax.reduce_precision(x, info.nexp, info.nmant), "x with reduced precision"),
        "reduce_precision_on_backward": lambda: on_backward(lambda ct: jax.lax.reduce_precision(ct, info.nexp, info.nmant), ""),
    }[kind]()


def _casts(kind, doc):
    def cast(x, dtype):
        operation = _cast(kind, jnp.dtype(dtype))
        return lax._scalified(operation)(x) if isinstance(x, ScaledArray) else operation(x)

    cast.__name__, cast.__doc__ = kind, doc
    return cast


cast_on_forward = _casts("cast_on_forward", "x in this dtype (of a ScaledArray, the data); the cotangent passes.")
cast_on_backward = _casts("cast_on_backward", "x; its cotangent is rounded through this dtype.")
reduce_precision_on_forward = _casts("reduce_precision_on_forward", "x with the exponent and mantissa bits of this dtype, as `jax.lax.reduce_precision`.")
reduce_precision_on_backward = _casts("reduce_precision_on_backward", "x; its cotangent gets the exponent and mantissa bits of this dtype.")

cast_ml_dtype, cast_ml_dtype_grad = reduce_precision_on_forward, reduce_precision_on_backward  # their names in Scalify's first versions


def debug_callback(callback, *args):
    """jax.debug.callback: calls it on the host with the arrays (ScaledArrays outside of scalified functions), in order."""
    return jax.debug.callback(callback, *args, ordered=True)


def debug_print(fmt, *args):
    """Prints `fmt.format(*args)`."""
    return debug_callback(lambda *values: print(fmt.format(*values)), *args)


def debug_callback_grad(callback, *args):
    """args; the callback is called with their cotangents."""

    def show(cotangents):
        debug_callback(callback, *cotangents)
        return cotangents

    operation = jax.custom_vjp(lambda *args: args)
    operation.defvjp(lambda *args: (args, None), lambda _, cotangents: tuple(show(cotangents)))
    return operation(*args)


def debug_print_grad(fmt, *args):
    """args; prints `fmt.format(*cotangents)`."""
    return debug_callback_grad(lambda *values: print(fmt.format(*values)), *args)
