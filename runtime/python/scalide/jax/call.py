"""Generated libraries as operations of jitted functions, through the FFI of XLA (CPU only)."""
from __future__ import annotations

import functools
import itertools
import secrets
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np

from .. import _runtime
from ..library import Library, register_operation
from ..marshal import DTYPES, check_scaled, to_numpy
from ..scaled_array import ScaledArray
from .sharding import Batch

try:
    import jax.ffi as ffi
except ImportError:  # before JAX 0.5
    import jax.extend.ffi as ffi

_TARGET = "scalide_run"


def call(library: Library, gradient: Library | None = None, *, batch: str | None = None) -> Callable[..., Any]:
    """Turns a library into a function of JAX arrays, which may stand inside of `jax.jit`. The function is one XLA custom call.

    `jax.vmap` runs the library once for each element. You can differentiate the function if you pass `gradient`:

        forward = scalide.build(trace(fn, x))
        backward = scalide.build(trace(vjp(fn), jax.eval_shape(fn, x), x))
        f = jax.jit(jax.grad(call(forward, backward)))

    Args:
        library: A Library. The function takes and returns the same pytrees; it returns the new values of inouts.
        gradient: The library of `scalide.jax.vjp(fn)`, for reverse-mode differentiation.
        batch: A symbol of the program, such as "b". The results for each part of this axis must not depend on the other parts. For sharded
            arrays, each device runs its part, and gradients of arrays without the axis are summed. Default: JAX gathers sharded arrays.

    Raises:
        TypeError: library is no Library; or, while tracing, an argument does not fit or there is no gradient.
        ValueError: batch does not fit the program, or a gradient is passed for a prepared library; or, while tracing, a shape is wrong.
        RuntimeError: The package was built without the headers of XLA.
    """
    forward = Operation(library, batch and Batch(library, batch))
    if gradient is None:
        return lambda *args, **kwargs: forward(args, kwargs)
    if library._constants or gradient._constants:
        raise ValueError(f"scalide.jax.call: 'gradient' cannot be used with a prepared library ({library.name}). Pass the libraries before prepare.")
    backward = Operation(gradient, batch and Batch(gradient, batch, sums=True))

    def differentiate(arguments, cotangents):
        args, kwargs = arguments
        gradients = iter(backward((cotangents, *args), kwargs))
        return jax.tree_util.tree_map(lambda leaf: next(gradients) if _is_float(leaf) else None, arguments)

    operation = jax.custom_vjp(forward)
    operation.defvjp(lambda args, kwargs: (forward(args, kwargs), (args, kwargs)), differentiate)
    return lambda *args, **kwargs: operation(args, kwargs)


def vjp(fn: Callable) -> Callable[..., tuple]:
    """Returns the function (cotangents, *args, **kwargs) -> gradients. Its library is the `gradient` of `call`.

    `cotangents` has the pytree of the results of fn. `gradients` is a tuple with one array for each float array in args and kwargs.
    """

    @functools.wraps(fn)
    def backward(cotangents, *args, **kwargs):
        leaves, tree = jax.tree_util.tree_flatten((args, kwargs))
        floats = [leaf for leaf in leaves if _is_float(leaf)]

        def of_floats(*replaced):
            rest = iter(replaced)
            args, kwargs = jax.tree_util.tree_unflatten(tree, [next(rest) if _is_float(leaf) else leaf for leaf in leaves])
            return fn(*args, **kwargs)

        return jax.vjp(of_floats, *floats)[1](cotangents)

    del backward.__wrapped__  # its parameters differ from those of fn
    backward.__name__ = f"{getattr(fn, '__name__', 'function')}_vjp"
    return backward


def _is_float(leaf):
    return jnp.issubdtype(jnp.result_type(leaf), jnp.floating)


@functools.cache
def _register():
    if _runtime.xla_handler is None:
        raise RuntimeError("scalide.jax.call: this package was built without the headers of XLA. Install jaxlib, then install the package again.")
    ffi.register_ffi_target(_TARGET, _runtime.xla_handler, platform="cpu")


def _data(leaf):
    return leaf.data if isinstance(leaf, ScaledArray) else leaf


def _with_data(leaf, data):
    """Returns the leaf with other data."""
    return ScaledArray._of(data, leaf.scale) if isinstance(leaf, ScaledArray) else data


def _check_donated(leaves, donated, library):
    """Raises TypeError for tracers, and ValueError if a donated JAX array is another argument, too."""
    names = {}  # id of a JAX array -> the first argument that is this array, and whether it is donated
    for leaf, argument, own in zip(leaves, library._inputs, donated):
        data = _data(leaf)
        if isinstance(data, jax.core.Tracer):
            raise TypeError(f"{library.name}.{argument.name}: donate cannot be used while JAX traces a function. Call the library, and jit the outer function with "
                            "donate_argnums: jax.jit(lambda w, x: library(w, x), donate_argnums=0).")  # fmt: skip
        if not isinstance(data, jax.Array):
            continue
        first, also = names.setdefault(id(data), (argument.name, own))
        if first != argument.name and (own or also):
            raise ValueError(f"{library.name}.{argument.name}: must not share memory with a donated argument, got the array of {first}. Pass a copy, such as "
                             "jax.numpy.copy(x).")  # fmt: skip


def _ffi_call(operands, results, aliases, key):
    if not hasattr(jax, "ffi"):  # before JAX 0.5: not curried, and no aliases, so the handler copies
        return ffi.ffi_call(_TARGET, results, *operands, program=key)
    return ffi.ffi_call(_TARGET, results, vmap_method="sequential", input_output_aliases=aliases)(*operands, program=key)


def _without_gradient(run, name):
    """Returns run with an error message of Scalide for the case that JAX differentiates it."""
    operation = jax.custom_jvp(run)

    @operation.defjvp
    def refuse(primals, tangents):
        raise TypeError(f"library '{name}' has no gradient. Build one with scalide.jax.vjp and pass it: scalide.jax.call(library, gradient). "
                        "For a scalified function, use scalide.jax.grad(fn) instead of jax.grad(fn), or scalify(jax.grad(fn)).")  # fmt: skip

    return operation


class Operation:
    """A library as an operation in JAX."""

    def __init__(self, library, batch=None):
        if not isinstance(library, Library):
            raise TypeError(f"scalide.jax.call: library must be a scalide.Library, got {type(library).__name__}. Build one with scalide.build.")
        _register()
        self.library, self.native = library, library._running()
        # JAX may keep the key in its cache on disk, so no other process may give it another meaning. Without prepared constants, it comes from
        # the content. With prepared constants, it is random.
        key = secrets.token_bytes(8) if library._constants else bytes.fromhex(library.hash[:16])
        self.key = np.int64(int.from_bytes(key, "big", signed=True))
        _runtime.register_for_xla(self.native, library._constants, int(self.key))
        self._operation = _without_gradient(batch.divided(self._execute) if batch else self._execute, library.name)

    def __call__(self, args, kwargs):
        return self.library._nest(self.run(self.library._leaves(args, kwargs)))

    def run(self, leaves):
        """Takes inputs and inouts in the order of the arguments. Returns the results in the order of the library."""
        library = self.library
        parts = [self._parts(leaf, argument) for leaf, argument in zip(leaves, library._inputs)]
        self.native.result_shapes([data.shape for data, *_ in parts], library._constants)  # raises a clear error before JAX does
        flat = iter(self._operation(*sum(parts, [])))
        made = [ScaledArray._of(next(flat), next(flat)) if argument.scaled else next(flat) for argument in library._written]
        return [made[i] for i in library._order]

    def jitted(self):
        """Returns `run` as a jitted function."""
        return jax.jit(self.run)

    def donating(self):
        """Returns `run` as a function that donates the data of inouts to XLA. XLA copies their scales, which arrays may share."""
        donated = [argument.role in ("inout", "state") for argument in self.library._inputs]
        jitted = jax.jit(lambda owned, kept: self.run([_with_data(leaf, data) if own else leaf for leaf, data, own in zip(kept, owned, donated)]),
                         donate_argnums=0)  # fmt: skip

        def run(leaves):
            _check_donated(leaves, donated, self.library)
            owned = [_data(leaf) if own else None for leaf, own in zip(leaves, donated)]
            return jitted(owned, [_with_data(leaf, None) if own else leaf for leaf, own in zip(leaves, donated)])

        return run

    def _execute(self, *operands):
        """Takes the data and scales of inputs and inouts. Returns the data and scales of outputs and inouts."""
        places = list(itertools.accumulate([1 + argument.scaled for argument in self.library._inputs], initial=0))
        shapes = iter(self.native.result_shapes([operands[place].shape for place in places[:-1]], self.library._constants))
        results, aliases, given = [], {}, iter(places)
        for argument in self.library.arguments:
            place = next(given) if argument in self.library._inputs else None
            if argument in self.library._written:
                types = [jax.ShapeDtypeStruct(next(shapes), DTYPES[argument.dtype]), jax.ShapeDtypeStruct((), np.float32)][:1 + argument.scaled]
                if argument.role in ("inout", "state"):
                    aliases.update({place + i: len(results) + i for i in range(len(types))})
                results += types
        return _ffi_call(operands, results, aliases, self.key)

    def _parts(self, leaf, argument):
        """Returns the operands for an argument: its data, and the scale if it is scaled."""
        name, dtype = f"{self.library.name}.{argument.name}", DTYPES[argument.dtype]
        check_scaled(leaf, argument, self.library.name)
        data = leaf.data if argument.scaled else leaf
        if isinstance(data, (bool, int, float, list, tuple)):
            data = to_numpy(data, argument, self.library.name)
        data = jnp.asarray(data)
        if data.dtype != dtype:
            raise TypeError(f"{name}: dtype must be {argument.dtype}, got {data.dtype}. Convert the array, or build the program with another policy.")
        return [data, jnp.asarray(leaf.scale, np.float32)] if argument.scaled else [data]


register_operation(Operation)
