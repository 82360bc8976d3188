"""Pytrees without JAX: dicts, lists, tuples, named tuples and None. Leaves have the order of JAX."""
from __future__ import annotations

import importlib
from typing import Any, Sequence

LEAF = "*"


class Tree:
    """The structure of a pytree.

    `node` is a structure that JSON files can hold: "*" for an array, {"dict": {name: ...}}, {"list": [...]}, {"tuple": [...]},
    {"namedtuple": "module:Class", "names": [...], "fields": [...]}, or None.
    """

    def __init__(self, node):
        self.node = node

    def flatten(self, value) -> list:
        """Returns the arrays of `value` in order. Raises TypeError if `value` has another structure."""
        leaves: list = []
        _flatten(self.node, value, leaves, None)
        return leaves

    def unflatten(self, leaves: Sequence) -> Any:
        """Returns the pytree with these arrays."""
        return _unflatten(self.node, iter(leaves))

    def parts(self) -> tuple[list[int], dict[str, int]]:
        """Returns the number of arrays in each positional and in each keyword argument, for a tree of (args, kwargs)."""
        args, kwargs = (next(iter(side.values())) for side in self.node["tuple"])
        return [leaf_count(node) for node in args], {name: leaf_count(node) for name, node in kwargs.items()}

    def __eq__(self, other):
        return isinstance(other, Tree) and self.node == other.node


def node_of(value, is_leaf) -> Any:
    """Returns the structure of a value, or NotImplemented if it has other containers."""
    if is_leaf(value):
        return LEAF
    if value is None:
        return None
    kind = type(value)
    if kind is dict and all(isinstance(key, str) for key in value):
        nodes = {key: node_of(value[key], is_leaf) for key in sorted(value)}
        return NotImplemented if NotImplemented in nodes.values() else {"dict": nodes}
    if kind in (list, tuple) or (isinstance(value, tuple) and hasattr(kind, "_fields")):
        nodes = [node_of(element, is_leaf) for element in value]
        if NotImplemented in nodes:
            return NotImplemented
        if kind in (list, tuple):
            return {kind.__name__: nodes}
        return {"namedtuple": f"{kind.__module__}:{kind.__qualname__}", "names": list(kind._fields), "fields": nodes}
    return NotImplemented


def leaf_count(node) -> int:
    """Returns the number of arrays in a structure."""
    if node == LEAF or node is None:
        return int(node == LEAF)
    (inner,) = [node[kind] for kind in ("dict", "list", "tuple", "fields") if kind in node]
    return sum(map(leaf_count, inner.values() if isinstance(inner, dict) else inner))


def class_named(text: str) -> type:
    """Imports the class `module:Class`."""
    module, name = text.split(":")
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _place(path) -> str:
    """Returns the text of a path: None, or a pair of the path of the container and the key in it. Only errors need the text."""
    return "" if path is None else f"{_place(path[0])}[{path[1]!r}]"


def _flatten(node, value, leaves: list, path) -> None:
    if node == LEAF:
        leaves.append(value)
    elif node is None:
        if value is not None:
            raise TypeError(f"{_place(path) or 'argument'}: must be None, got {type(value).__name__}")
    elif "dict" in node:
        nodes = node["dict"]
        if not hasattr(value, "keys") or set(value.keys()) != nodes.keys():
            got = sorted(value.keys()) if hasattr(value, "keys") else type(value).__name__
            raise TypeError(f"{_place(path) or 'arguments'}: must have the keys {sorted(nodes)}, got {got}")
        for key, inner in nodes.items():
            _flatten(inner, value[key], leaves, (path, key))
    else:
        nodes = node.get("fields") or node.get("list") or node.get("tuple") or []
        if not isinstance(value, (list, tuple)) or len(value) != len(nodes):
            got = f"{len(value)}" if isinstance(value, (list, tuple)) else type(value).__name__
            raise TypeError(f"{_place(path) or 'arguments'}: must be a sequence of {len(nodes)}, got {got}")
        for place, inner in enumerate(nodes):
            _flatten(inner, value[place], leaves, (path, place))


def _unflatten(node, leaves) -> Any:
    if node == LEAF:
        return next(leaves)
    if node is None:
        return None
    if "dict" in node:
        return {key: _unflatten(inner, leaves) for key, inner in node["dict"].items()}
    if "namedtuple" in node:
        return class_named(node["namedtuple"])(*[_unflatten(inner, leaves) for inner in node["fields"]])
    if "list" in node:
        return [_unflatten(inner, leaves) for inner in node["list"]]
    return tuple(_unflatten(inner, leaves) for inner in node["tuple"])
