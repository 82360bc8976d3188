"""Trace JAX functions, call libraries in jitted functions, and use the interface of jax_scalify.

    program = scalide.jax.trace(fn, *args)              # a Program for scalide.build
    operation = scalide.jax.call(library)               # a library as an operation of jitted functions
    import scalide.jax as jsa                           # replaces `import jax_scalify as jsa`

    params = jsa.as_scaled_array(params, scale=np.float32(0.1))      # data and one scale for each array
    update = jax.jit(jsa.scalify(update))                            # propagates scales through the function
"""
import jax as _jax
import jax.tree_util as _tree

from .._runtime import version as __version__
from ..scaled_array import ScaledArray

_tree.register_pytree_with_keys(
    ScaledArray,
    lambda array: (((_tree.GetAttrKey("data"), array.data), (_tree.GetAttrKey("scale"), array.scale)), None),
    lambda _, parts: ScaledArray._of(*parts),
    lambda array: ((array.data, array.scale), None),
)

from .primitives import add_operator, add_rule  # noqa: E402, isort: skip
from . import compat as _compat  # noqa: E402
from . import core, lax, ops, quantization, tree, utils  # noqa: E402
from .amp import amp, amp_stop, default_amp_policy, use_compute_precision, use_original_precision  # noqa: E402
from .call import call, vjp  # noqa: E402
from .config import Pow2RoundMode, ScalifyConfig, get_scalify_config  # noqa: E402
from .core import as_scaled_array, asarray, debug_callback, scaled_array  # noqa: E402
from .parallel import parallel  # noqa: E402
from .scalify import grad, scalify, value_and_grad  # noqa: E402
from .text import Number  # noqa: E402
from .trace import TraceError, trace  # noqa: E402

_compat.warn_if_newer(_jax.__version__)

__all__ = ["Number", "Pow2RoundMode", "ScaledArray", "ScalifyConfig", "TraceError", "add_operator", "add_rule", "amp", "amp_stop", "as_scaled_array", "asarray", "call", "core", "debug_callback",
           "default_amp_policy", "get_scalify_config", "grad", "lax", "ops", "parallel", "quantization", "scaled_array", "scalify", "trace", "tree", "use_compute_precision",
           "use_original_precision", "utils", "value_and_grad", "vjp"]
