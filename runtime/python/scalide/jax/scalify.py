"""scalify: turns a function of plain arrays into a function of ScaledArrays, which a generated library runs."""
from __future__ import annotations

import functools
import pathlib
import re
import threading
import warnings
import weakref
from typing import Any, Callable, Sequence

import jax
import jax.numpy as jnp

from ..build import build
from ..owned_folder import OwnedFolder
from ..scaled_array import ScaledArray
from . import compat, scaling_primitives
from .call import Operation
from .config import Pow2RoundMode, get_scalify_config
from .debug import expose_callbacks
from .drift import describe_drift
from .trace import trace

_local = threading.local()
_scalified: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # scalified function -> scalify with the same options
_POLICY_FILE = "scalify.yaml"
_WITHOUT_SCALES = ("f32", "bf16")  # policies that give no array a scale of its own


def scalify(fn: Callable | None = None, *, static_argnums: int | Sequence[int] = (), static_argnames: str | Sequence[str] = (),
            numerics: str | None = None) -> Callable[..., Any]:  # fmt: skip
    """Returns fn for arguments that may be ScaledArrays. A float result that depends on a scaled argument is a ScaledArray.

    If no argument is scaled and fn calls no `set_scaling`, it is fn itself. The first call with new shapes, dtypes or static values builds a
    library. The function works inside and outside of `jax.jit`. Gradients belong inside: `scalify(jax.grad(fn))`, which is the same as
    `scalide.jax.grad(scalify(fn))`.

    Args:
        fn: A function that `jax.jit` accepts. Without it, scalify(...) is a decorator.
        static_argnums, static_argnames: Arguments that are not arrays, as in `jax.jit`.
        numerics: A precision policy for the library. Default: no rounding other than in fn; scales are rounded as ScalifyConfig says. Then
            scalify warns if the scales of a deep network can leave the range of f16 or f8 data. A policy with scales avoids this.
    """
    if fn is None:
        return functools.partial(scalify, static_argnums=static_argnums, static_argnames=static_argnames, numerics=numerics)
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    operations = {}

    def with_function(derived):
        """Scalifies another function with the same arguments and options."""
        return scalify(derived, static_argnums=static_argnums, static_argnames=static_argnames, numerics=numerics)

    @functools.wraps(fn, updated=())
    def scalified(*args, **kwargs):
        static = {i % len(args) for i in numbers if -len(args) <= i < len(args)}
        fixed = {i: args[i] for i in static}
        fixed_named = {name: kwargs[name] for name in names if name in kwargs}

        def dynamic_fn(*dynamic, **named):
            rest = iter(dynamic)
            return fn(*(fixed[i] if i in fixed else next(rest) for i in range(len(args))), **named, **fixed_named)

        dynamic = tuple(arg for i, arg in enumerate(args) if i not in static)
        named = {name: value for name, value in kwargs.items() if name not in fixed_named}
        if getattr(_local, "tracing", False):
            return dynamic_fn(*_plain(dynamic), **_plain(named))
        leaves, structure = jax.tree_util.tree_flatten((dynamic, named), is_leaf=_is_scaled)
        config = get_scalify_config()
        key = (structure, tuple(map(_type_of, leaves)), tuple(sorted(fixed.items())), tuple(sorted(fixed_named.items())), config.rounding_mode)
        if key not in operations:
            operations[key] = _operation(fn, dynamic_fn, dynamic, named, numerics, config.rounding_mode)
        if operations[key]:
            return operations[key](dynamic, named)
        dynamic, named = jax.tree_util.tree_map(lambda leaf: leaf if isinstance(leaf, (bool, int, float)) else jnp.asarray(leaf), (dynamic, named))
        return dynamic_fn(*dynamic, **named)

    _scalified[scalified] = with_function
    return scalified


def grad(fn: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Returns the gradient of a function of ScaledArrays. It is `scalify(jax.grad(fn))`.

    The gradient for a ScaledArray argument is a ScaledArray of its shape and dtype; for a plain array it is a plain array. `jax.grad` itself
    would differentiate data and scale as two variables. The function works inside and outside of `jax.jit`.

    Args:
        fn: A scalified function, or a function that calls scalified functions. Its result is a scalar.
        argnums, has_aux: As in `jax.grad`.

    Raises:
        TraceError: fn uses a JAX primitive without a rule.
        The exceptions of `jax.grad`.
    """
    return _derived(jax.grad, fn, argnums, has_aux)


def value_and_grad(fn: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Returns the value and the gradient of fn. It is `scalify(jax.value_and_grad(fn))`. See `grad`."""
    return _derived(jax.value_and_grad, fn, argnums, has_aux)


def _derived(transformation, fn, argnums, has_aux):
    if isinstance(fn, compat.JITTED) and fn.__wrapped__ in _scalified:  # JAX caches traced functions, which may contain libraries
        fn = fn.__wrapped__
    again, inner = (_scalified[fn], fn.__wrapped__) if fn in _scalified else (scalify, fn)
    return again(transformation(inner, argnums=argnums, has_aux=has_aux))


def _is_scaled(value):
    return isinstance(value, ScaledArray)


def _type_of(leaf):
    if _is_scaled(leaf):
        return "scaled", leaf.shape, jnp.dtype(leaf.dtype)
    return type(leaf) if isinstance(leaf, (bool, int, float)) else (tuple(leaf.shape), jnp.dtype(leaf.dtype), getattr(leaf, "weak_type", False))


def _plain(tree):
    """Converts ScaledArrays that a traced function made to arrays that the trace knows."""
    return jax.tree_util.tree_map(lambda leaf: scaling_primitives.joined(leaf) if _is_scaled(leaf) else leaf, tree, is_leaf=_is_scaled)


def _operation(fn, dynamic_fn, args, kwargs, numerics, rounding):
    """Builds a library for arguments like these and returns it as a function. Returns None if nothing is scaled."""
    shapes = jax.tree_util.tree_map(_shape_of, (args, kwargs), is_leaf=_is_scaled)
    plain = jax.tree_util.tree_map(lambda leaf: leaf.data if _is_scaled(leaf) else leaf, shapes, is_leaf=_is_scaled)
    name = re.sub(r"\W", "_", getattr(getattr(fn, "func", fn), "__name__", "")).strip("_") or "scalified"
    _local.tracing = True
    try:
        jaxpr, results = jax.make_jaxpr(dynamic_fn, return_shape=True)(*plain[0], **plain[1])
        leaves, names = jax.tree_util.tree_leaves(shapes, is_leaf=_is_scaled), compat.primitives_of(jaxpr)
        if not any(map(_is_scaled, leaves)) and scaling_primitives.set_scaling_p.name not in names:
            return None
        drift = describe_drift(name, jaxpr, names, leaves) if numerics in (None, *_WITHOUT_SCALES) else ""
        if drift and numerics is not None:
            raise ValueError(f"scalify: numerics={numerics!r} gives no array a scale. {drift}")
        if drift:
            warnings.warn(f"scalify: {drift}", stacklevel=3)
        exposed, callbacks = expose_callbacks(dynamic_fn, jaxpr, results)
        program = trace(exposed, *shapes[0], name=name, **shapes[1])
    finally:
        _local.tracing = False
    operation = Operation(build(program, numerics=numerics or _policy(rounding)))

    @jax.jit
    def run(args, kwargs):
        result, values = operation(args, kwargs)
        for callback, operands in zip(callbacks, values):
            jax.debug.callback(callback, *operands, ordered=True)
        return result

    return run


def _shape_of(leaf):
    if _is_scaled(leaf):
        return ScaledArray._of(_shape_of(leaf.data), _shape_of(leaf.scale))
    if isinstance(leaf, (bool, int, float)):
        return leaf
    leaf = leaf if isinstance(leaf, jax.Array) else jax.eval_shape(jnp.asarray, leaf)
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=getattr(leaf, "weak_type", False))


@functools.cache
def _policy_folder(rounding):
    """Returns a folder with a policy file that changes nothing in a program except the rounding of scales."""
    folder = OwnedFolder()
    text = f"policy: scalify\ndoc: As the program says.\nrounding: {Pow2RoundMode(rounding).name.lower()}\nrules: []\n"
    pathlib.Path(folder.name, _POLICY_FILE).write_text(text)
    return folder


def _policy(rounding):
    return str(pathlib.Path(_policy_folder(rounding).name, _POLICY_FILE))
