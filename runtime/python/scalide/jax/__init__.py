"""JAX functions as programs, programs in jitted functions, and what jax_scalify offers.

    program = scalide.jax.trace(fn, *args)              # a Program of any JAX function, for scalide.build
    operation = scalide.jax.call(library)               # a generated library as one operation of jitted functions
    import scalide.jax as jsa                           # in place of `import jax_scalify as jsa`: jsa.scalify(fn), jsa.ScaledArray, ...
"""
import jax.tree_util

from ..scaled_array import ScaledArray

jax.tree_util.register_pytree_with_keys(
    ScaledArray,
    lambda array: (((jax.tree_util.GetAttrKey("data"), array.data), (jax.tree_util.GetAttrKey("scale"), array.scale)), None),
    lambda _, parts: ScaledArray._of(*parts),
    lambda array: ((array.data, array.scale), None),
)

from .call import call, vjp  # noqa: E402
from .primitives import add_operator, add_rule  # noqa: E402
from .trace import trace  # noqa: E402

__all__ = ["ScaledArray", "add_operator", "add_rule", "call", "trace", "vjp"]
