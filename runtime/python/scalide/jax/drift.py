"""Estimates how far the scales of a scalified function can drift from its data."""
from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

RESCALING = ("dynamic_rescale", "set_scaling", "rebalance")


def describe_drift(name: str, jaxpr: Any, names: set[str], leaves: list[Any]) -> str:
    """Returns a warning if a chain of matmuls can make scales so large that f16 or f8 data become 0, otherwise "".

    A matmul over n terms multiplies the scale by sqrt(n), the expected size of a sum of independent terms. If the sum is smaller, the data
    shrink by that factor. The function adds log2(sqrt(n)) along each chain and compares it with the exponents of the format below 1.
    """
    formats = [jnp.finfo(leaf.dtype) for leaf in leaves if hasattr(leaf, "scale") and jnp.dtype(leaf.dtype).itemsize < 4]
    if not formats or any(word in primitive for primitive in names for word in RESCALING):
        return ""
    room = min(-math.log2(float(info.smallest_normal)) for info in formats)
    bits = max(_bits(jaxpr.jaxpr, [0.0] * len(jaxpr.jaxpr.invars)), default=0.0)
    if bits <= room:
        return ""
    narrow = min(formats, key=lambda info: -math.log2(float(info.smallest_normal))).dtype
    return (f"{name}: scales may become 2^{bits:.0f} times larger than the data, but the smallest normal number of {narrow} is 2^-{room:.0f}. Results "
            "and gradients may become 0. Rescale them (jsa.ops.dynamic_rescale_l2_grad, dynamic_rescale_max), store f32 data, or choose a policy "
            'with scales (scalify(fn, numerics="f16_scaled")).')  # fmt: skip


def _bits(jaxpr, inputs):
    """Returns for each result the largest sum of log2(sqrt(n)) along a chain to it."""
    known = dict(zip(jaxpr.invars, inputs))

    def of(atom):
        return 0.0 if isinstance(atom, jax.extend.core.Literal) else known.get(atom, 0.0)

    for equation in jaxpr.eqns:
        operands = [of(atom) for atom in equation.invars]
        inner = _inner(equation, len(operands))
        results = _bits(inner, operands) if inner is not None else [max(operands, default=0.0) + _factor(equation)] * len(equation.outvars)
        known.update(zip(equation.outvars, results))
    return [of(atom) for atom in jaxpr.outvars]


def _inner(equation, count):
    """Returns the jaxpr of a call that takes the operands one by one, or None."""
    for value in equation.params.values():
        jaxpr = getattr(value, "jaxpr", value)
        if hasattr(jaxpr, "eqns") and len(jaxpr.invars) == count and len(jaxpr.outvars) == len(equation.outvars):
            return jaxpr
    return None


def _factor(equation):
    if equation.primitive.name == "dot_general":
        axes = equation.params["dimension_numbers"][0][0]
        terms = math.prod(int(equation.invars[0].aval.shape[axis]) for axis in axes)
    elif equation.primitive.name == "conv_general_dilated":
        spec = equation.params["dimension_numbers"].rhs_spec
        terms = math.prod(int(equation.invars[1].aval.shape[axis]) for axis in spec[1:])
    else:
        terms = 1
    return 0.5 * math.log2(max(terms, 1))
