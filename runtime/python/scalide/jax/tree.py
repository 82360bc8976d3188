"""jax_scalify.tree: the tree functions of JAX with ScaledArrays as leaves."""
import builtins

import jax.tree_util as _tree
import numpy as np
from jax import numpy as _jnp

from ..scaled_array import ScaledArray


def _is_leaf(value):
    return isinstance(value, ScaledArray)


def map(f, tree, *rest):
    """As jax.tree_util.tree_map."""
    return _tree.tree_map(f, tree, *rest, is_leaf=_is_leaf)


def flatten(tree):
    """Returns (leaves, structure)."""
    return _tree.tree_flatten(tree, is_leaf=_is_leaf)


def unflatten(structure, leaves):
    """Returns the pytree with this structure and these leaves."""
    return _tree.tree_unflatten(structure, leaves)


def leaves(tree):
    """Returns the leaves."""
    return _tree.tree_leaves(tree, is_leaf=_is_leaf)


def structure(tree):
    """Returns the structure."""
    return _tree.tree_structure(tree, is_leaf=_is_leaf)


def all(tree):
    """Returns True if all elements of all leaves are true."""
    return builtins.all(np.all(leaf) for leaf in leaves(tree))


def astype(tree, dtype, floating_only=False):
    """Casts the arrays of a pytree, and the data of ScaledArrays. With `floating_only`, only float arrays."""

    def cast(leaf):
        leaf = leaf if hasattr(leaf, "astype") else np.asarray(leaf)
        return leaf if floating_only and not _jnp.issubdtype(leaf.dtype, _jnp.floating) else leaf.astype(dtype)

    return map(cast, tree)
