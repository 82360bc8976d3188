"""jax_scalify.core.register_scaled_op: primitives whose effect on ScaledArrays is a JAX function."""
from __future__ import annotations

import enum
import inspect
from typing import Callable

import jax

from ..scaled_array import ScaledArray
from . import compat, scaling_primitives
from .primitives import RULES, add_rule
from .scaled_ops import scaled_function
from .walk import unknown


class ScaledPrimitiveType(enum.IntEnum):
    """When a registered function replaces its primitive: never, if an operand is scaled (FORWARD), or always."""

    NEVER = 0
    FORWARD = 1
    ALWAYS_SCALE = 2


_registered: dict[str, tuple[Callable, ScaledPrimitiveType]] = {}


def register_scaled_op(primitive, scaled_fn: Callable, scaled_type: ScaledPrimitiveType = ScaledPrimitiveType.FORWARD) -> None:
    """Gives a JAX primitive a meaning on ScaledArrays: `scaled_fn(*operands, **params)` replaces it in scalified functions.

    If the primitive is one operator of Scalide, or a few operators, `scalide.jax.add_operator` and `add_rule` are shorter.

    Args:
        primitive: A primitive without a `scaled_` function, such as your own.
        scaled_fn: A function of ScaledArrays and arrays, written in JAX on `.data` and `.scale`. Its scales are kept exactly.
        scaled_type: When the function replaces the primitive.

    Raises:
        KeyError: The primitive has a `scaled_` function already.
    """
    name, parameters = primitive.name, inspect.signature(scaled_fn).parameters
    if find_registered_scaled_op(primitive)[0] is not None:
        raise KeyError(f"register_scaled_op: {name} already has a scaled function. Write a rule for a new operator: docs/reference/rules.md.")
    _registered[name] = scaled_fn, scaled_type
    plain = RULES.get(name)

    @add_rule(name)
    def rule(walk, equation, operands):
        if scaled_type != ScaledPrimitiveType.ALWAYS_SCALE and not any(operand.scaled for operand in operands):
            if plain is None:
                raise unknown(equation)
            return plain(walk, equation, operands)
        # Later versions of JAX added parameters that do not affect values.
        params = {key: value for key, value in equation.params.items() if key in parameters or key not in compat.SILENT}
        function = _on_values(scaled_fn, [operand.scaled for operand in operands], params, primitive.multiple_results)
        return walk.run_closed(jax.make_jaxpr(function)(*(jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in equation.inputs)), operands)


def _on_values(scaled_fn, scaled, params, multiple_results):
    """Returns the same function on values instead of ScaledArrays."""

    def function(*values):
        operands = [ScaledArray(*scaling_primitives.get_data_scale_p.bind(value)) if known else value for value, known in zip(values, scaled)]
        results = scaled_fn(*operands, **params)
        return [scaling_primitives.joined(result) if isinstance(result, ScaledArray) else result for result in (results if multiple_results else [results])]

    return function


def register_scaled_lax_op(scaled_fn: Callable) -> Callable:
    """Decorates a function `scaled_<name>`: registers it for the primitive `jax.lax.<name>_p`."""
    name = scaled_fn.__name__.removeprefix("scaled_") + "_p"
    primitive = getattr(jax.lax, name, None)
    if primitive is None:
        raise AttributeError(f"register_scaled_lax_op: the name {scaled_fn.__name__} must be 'scaled_' and the name of a primitive, but there is no jax.lax.{name}.")
    register_scaled_op(primitive, scaled_fn)
    return scaled_fn


def find_registered_scaled_op(primitive) -> tuple[Callable | None, ScaledPrimitiveType]:
    """Returns (function, type) for a primitive, or (None, NEVER)."""
    builtin = scaled_function(primitive.name)
    return (builtin, ScaledPrimitiveType.FORWARD) if builtin else _registered.get(primitive.name, (None, ScaledPrimitiveType.NEVER))
