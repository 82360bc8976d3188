"""Replaces the arithmetic of jax.nn.gelu and jax.nn.silu by one operator each. Rules of policies match these operators."""
from __future__ import annotations

import functools

import jax

from .. import arrays
from .primitives import RULES
from .text import Number, Value, Writer, is_float
from .walk import Walk

#: The JAX function of each operator. The pattern is the jaxpr of the function in this version of JAX, traced once for each dtype.
FUNCTIONS = {
    "gelu_tanh": functools.partial(jax.nn.gelu, approximate=True),
    "gelu": functools.partial(jax.nn.gelu, approximate=False),
    "silu": jax.nn.silu,
}
_X = "x"  # the argument of a pattern


def fold_activations(writer: Writer) -> None:
    """Replaces each node that ends the arithmetic of one of FUNCTIONS. Nodes that a gradient also reads stay in the program."""
    for line in writer.lines:
        if len(line.makes) != 1 or not is_float(line.makes[0].dtype):
            continue
        for op in FUNCTIONS:
            bound: dict[str, Value] = {}
            nodes, result = _pattern(op, line.makes[0].dtype)
            if _matches(nodes, result, writer.nodes, line.makes[0], bound):
                writer.rewrite(line, op, [bound[_X]])
                break


@functools.cache
def _pattern(op: str, dtype: str):
    """Returns the nodes and the result of a function for an argument of this dtype."""
    walk = Walk(Writer({_X}), RULES)
    closed = jax.make_jaxpr(FUNCTIONS[op])(jax.ShapeDtypeStruct((1,), arrays.numpy_dtype(dtype)))
    (result,) = walk.run_closed(closed, [Value(_X, dtype, (1,))])
    return walk.writer.nodes, result


def _matches(pattern_nodes, pattern, nodes, value, bound) -> bool:
    """Returns True if a value comes from the same operators, attributes and numbers as the pattern."""
    if isinstance(pattern, Number) or isinstance(value, Number):
        return pattern == value
    if pattern.name == _X:
        return bound.setdefault(_X, value) == value
    if value.name not in nodes:
        return False
    (op, operands, attributes), (own_op, own_operands, own_attributes) = pattern_nodes[pattern.name], nodes[value.name]
    if (op, attributes, len(operands)) != (own_op, own_attributes, len(own_operands)):
        return False
    return all(_matches(pattern_nodes, a, nodes, b, bound) for a, b in zip(operands, own_operands))
