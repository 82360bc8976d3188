"""scalify: a function on plain arrays becomes one on ScaledArrays, run by a generated library."""
from __future__ import annotations

import functools
import pathlib
import re
import tempfile
import threading
import warnings
import weakref
from typing import Any, Callable, Sequence

import jax
import jax.numpy as jnp

from ..build import build
from ..scaled_array import ScaledArray
from . import compat, lax
from .call import Operation
from .config import Pow2RoundMode, get_scalify_config
from .debug import expose_callbacks
from .drift import describe_drift
from .trace import trace

_local = threading.local()
_scalified: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # scalified function -> scalify with the same options
_WITHOUT_SCALES = ("f32", "bf16")  # policies that give no array a scale of its own


def scalify(fn: Callable | None = None, *, static_argnums: int | Sequence[int] = (), static_argnames: str | Sequence[str] = (),
            numerics: str | None = None) -> Callable[..., Any]:  # fmt: skip
    """fn for arguments of which some are ScaledArrays: scales go through all operators, float results that depend on a scaled argument are
    ScaledArrays of the same value. Without ScaledArrays (and `set_scaling` in fn) it is fn itself.

    The first call with arguments of new shapes, dtypes or static values traces fn and builds a library (a second or so; its kernels come
    from a cache on disk later). It works inside of `jax.jit` and without it; gradients are taken inside: scalify(jax.grad(fn)), which is what
    `scalide.jax.grad(scalify(fn))` does.

    fn: what `jax.jit` takes, of positional and keyword arguments in any pytrees. Left out: a decorator.
    static_argnums, static_argnames: arguments that are no arrays, as in jax.jit.
    numerics: a policy for the library (`scalide.build`); default: everything as fn says, scales rounded as ScalifyConfig says. Then a warning
        says where the scales of a deep network can leave the range of f16 or f8 data. A policy with scales avoids that.
    """
    if fn is None:
        return functools.partial(scalify, static_argnums=static_argnums, static_argnames=static_argnames, numerics=numerics)
    numbers = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
    names = (static_argnames,) if isinstance(static_argnames, str) else tuple(static_argnames)
    operations = {}

    def with_function(derived):
        """scalify of another function of the same arguments."""
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
    """The gradient of a function of ScaledArrays: for each ScaledArray in the arguments a ScaledArray of its shape and dtype, for plain arrays plain
    ones. It is `scalify(jax.grad(fn))`, so scales go through forward and backward; `jax.grad` would take data and scale for two variables.

    fn: scalified, or any function that calls scalified ones; its result has rank 0. argnums, has_aux: as in `jax.grad`.
    Works inside of `jax.jit` and without it. Raises what jax.grad raises, and TraceError.
    """
    return _derived(jax.grad, fn, argnums, has_aux)


def value_and_grad(fn: Callable, argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The value of fn beside its gradient (`grad`): `scalify(jax.value_and_grad(fn))`."""
    return _derived(jax.value_and_grad, fn, argnums, has_aux)


def _derived(transformation, fn, argnums, has_aux):
    if isinstance(fn, compat.JITTED) and fn.__wrapped__ in _scalified:  # JAX keeps what it traced, in which libraries may stand
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
    """ScaledArrays that a traced function made, as the arrays that the trace knows."""
    return jax.tree_util.tree_map(lambda leaf: lax.joined(leaf) if _is_scaled(leaf) else leaf, tree, is_leaf=_is_scaled)


def _operation(fn, dynamic_fn, args, kwargs, numerics, rounding):
    """A library for a function of arguments like these, as a function; None when nothing in it is scaled."""
    shapes = jax.tree_util.tree_map(_shape_of, (args, kwargs), is_leaf=_is_scaled)
    plain = jax.tree_util.tree_map(lambda leaf: leaf.data if _is_scaled(leaf) else leaf, shapes, is_leaf=_is_scaled)
    name = re.sub(r"\W", "_", getattr(getattr(fn, "func", fn), "__name__", "")).strip("_") or "scalified"
    _local.tracing = True
    try:
        jaxpr, results = jax.make_jaxpr(dynamic_fn, return_shape=True)(*plain[0], **plain[1])
        leaves, names = jax.tree_util.tree_leaves(shapes, is_leaf=_is_scaled), compat.primitives_of(jaxpr)
        if not any(map(_is_scaled, leaves)) and lax.set_scaling_p.name not in names:
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
def _policy(rounding):
    """A policy file that leaves a program as it is and rounds its scales so."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="scalide-"))
    file = folder / "scalify.yaml"
    file.write_text(f"policy: scalify\ndoc: As the program says.\nrounding: {Pow2RoundMode(rounding).name.lower()}\nrules: []\n")
    return str(file)
