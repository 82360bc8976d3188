"""The JAX primitives of operators on scales, such as set_scaling. `lax` and `ops` have functions for users."""
import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import ad, batching, mlir

from ..scaled_array import ScaledArray
from .primitives import add_rule

try:
    from jax.extend.core import Primitive
except ImportError:
    from jax.core import Primitive


def _primitive(name, evaluate, scaled=None):
    """Makes a primitive. In plain functions it is `evaluate`, in traced programs the operator of this name. It passes tangents unchanged.

    `scaled` says whether its results are scaled. None: if its operands are.
    """
    primitive = Primitive(name)
    primitive.multiple_results = True
    primitive.def_impl(lambda *operands, **attributes: list(evaluate(*operands)))
    primitive.def_abstract_eval(lambda *operands, **attributes: [jax.core.ShapedArray(v.shape, v.dtype) for v in jax.eval_shape(evaluate, *operands)])
    mlir.register_lowering(primitive, mlir.lower_fun(lambda *operands, **attributes: list(evaluate(*operands)), multiple_results=True))

    def differentiate(primals, tangents, **attributes):
        results = primitive.bind(*primals, **attributes)
        zeros = [ad.Zero.from_primal_value(result) if hasattr(ad.Zero, "from_primal_value") else ad.Zero.from_value(result) for result in results[1:]]
        return results, [tangents[0], *zeros]

    def batch(operands, axes, **attributes):
        if any(axis is not None for axis in axes[1:]):
            raise NotImplementedError(f"{name}: vmap cannot map the scale, because a whole array has one scale.")
        results = primitive.bind(*operands, **attributes)
        return results, [axes[0], *(None for _ in results[1:])]

    ad.primitive_jvps[primitive] = differentiate
    batching.primitive_batchers[primitive] = batch

    @add_rule(name)
    def rule(walk, equation, operands):
        results = walk.emit(name, [walk.writer.value(operand) for operand in operands], {}, walk.types(equation))
        return results if scaled is None else [dataclasses.replace(result, scaled=scaled) for result in results]

    return primitive


set_scaling_p = _primitive("set_scaling", lambda x, scale: (x,), scaled=True)
stop_scaling_p = _primitive("stop_scaling", lambda x: (x,), scaled=False)
get_data_scale_p = _primitive("get_data_scale", lambda x: (x, jnp.ones((), np.float32)), scaled=False)
rebalance_p = _primitive("rebalance", lambda x, factor: (x,))
dynamic_rescale_p = {norm: _primitive(f"dynamic_rescale_{norm}", lambda x: (x,)) for norm in ("max", "l1", "l2")}


def joined(array: ScaledArray):
    """Returns the value of a ScaledArray for a traced function. It keeps exactly these data and this scale."""
    scale = jnp.asarray(array.scale, np.float32)
    one = set_scaling_p.bind(scale, scale)[0].astype(array.dtype)  # data 1
    return set_scaling_p.bind(jnp.asarray(array.data), jnp.ones((), np.float32))[0] * one
