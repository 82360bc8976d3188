"""save and load: pytrees of arrays and ScaledArrays in safetensors files. C++ applications use the same files. JAX is not needed."""
from __future__ import annotations

import collections
import json
import os
import sys
from typing import Any, NamedTuple

import numpy as np

from . import arrays, msgpack_files
from ._runtime import part_suffixes
from .scaled_array import ScaledArray
from .tree import LEAF, Tree, node_of
from .words import is_name

VERSION = {"scalide.version": "1"}
TREE = "scalide.tree"  #: the metadata entry that holds the structure of the pytree
_NUMBERS = {bool: np.bool_, int: np.int32, float: np.float32}
_NO_TREE = "null of JAX"  #: for a structure that only JAX knows


def save(path: str | os.PathLike, tree: Any) -> None:
    """Writes a pytree of arrays to a safetensors file, or in the msgpack layout of Flax if the path ends in `.msgpack`.

    The name of an array joins the keys that lead to it: `layers.0.w`. A ScaledArray `w` becomes `w.data` and `w.scale`. A single array has
    the name `value`.

    Args:
        path: The file. An old file is replaced only when the new file is complete.
        tree: Dicts, lists, tuples, named tuples and None; with JAX also every other pytree. Leaves are arrays of NumPy, ml_dtypes or JAX
            with at most 32 bits or int64, ScaledArrays, and Python numbers, which become scalars of i32, f32 or bool.

    Raises:
        TypeError: A leaf is no array, or a container is unknown.
        ValueError: A dtype is not supported, names are not unique, or a scale is not f32, not finite or negative.
        OSError: The file cannot be written.
    """
    if msgpack_files.is_msgpack(path):
        return msgpack_files.write(path, tree)
    content, structure = content_of(tree)
    arrays.write_safetensors(path, content, VERSION | structure)


def load(path: str | os.PathLike, like: Any = None) -> Any:
    """Reads a pytree of NumPy arrays and ScaledArrays from a safetensors file, or from a file `*.msgpack` of Flax, bit for bit.

    Args:
        path: A file from `save`, from a C++ application (`scalide_safetensors_write`), or any other with dtypes that Scalide supports.
        like: A pytree of arrays or `jax.ShapeDtypeStruct`s. The result has its structure; names, dtypes and shapes must agree. Default: the
            structure that `save` wrote, or a dict by name if the file has no structure.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is damaged, differs from `like`, or needs `like`. A scale in it is not finite or negative.
    """
    if msgpack_files.is_msgpack(path):
        return msgpack_files.read(path, like)
    content, metadata = arrays.read_safetensors_and_metadata(path)
    version = metadata.get("scalide.version", "1")
    if not version.isdecimal() or int(version) > int(VERSION["scalide.version"]):
        raise ValueError(f"{path}: scalide.version must be at most 1, got {version!r}. Load it with a newer version of the package.")
    return tree_of(content, metadata, path, like)


def content_of(tree: Any) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Returns the arrays of a pytree by name, as a file has them, and the metadata that hold its structure."""
    nest = _Nest(tree)
    whole = {name: _checked(name, leaf) for name, leaf in zip(nest.names, nest.leaves)}
    content = {name: leaf for name, leaf in whole.items() if not isinstance(leaf, ScaledArray)}
    for name, leaf in whole.items():
        if isinstance(leaf, ScaledArray):
            taken = whole.keys() | content.keys()
            names = next(([name + end for end in row] for row in part_suffixes if not any(name + end in taken for end in row)), None)
            if names is None:
                raise ValueError(f"{name}: other arrays have the names of its data and scale. Rename one.")
            content.update(zip(names, (leaf.data, leaf.scale)))
    return content, {TREE: _NO_TREE if nest.node is NotImplemented else json.dumps(nest.node)}


def differences(content: dict[str, np.ndarray], like: Any) -> str:
    """Returns the differences between the arrays of a file and a pytree in words. The text is empty if there are none."""
    nest, rest, different, missing = _Nest(like), dict(content), [], []
    for name, leaf in zip(nest.names, nest.leaves):
        try:
            _find(rest, name, "", leaf)
        except ValueError as error:
            (missing if "the file has no array" in str(error) else different).append((name, str(error).removeprefix(": ")))
    texts = [f"Missing in the file: {_listed([name for name, _ in missing])}."] if missing else []
    texts += [f"Unknown to the program: {_listed(sorted(rest))}."] if rest else []
    texts += [f"Different: {_listed([text.removesuffix('.') for _, text in different], '; ')}."] if different else []
    return " ".join(texts)


def _listed(words, separator=", "):
    most = 8
    return separator.join(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")


def tree_of(content: dict[str, np.ndarray], metadata: dict[str, str], path: str, like: Any = None) -> Any:
    """Returns the pytree with these arrays. It takes them out of `content`."""
    if like is not None:
        nest = _Nest(like)
        found = {name: _find(content, name, path, leaf) for name, leaf in zip(nest.names, nest.leaves)}
        if content:
            raise ValueError(f"{path}: 'like' must have every array of the file, but it lacks {', '.join(sorted(content)[:5])}. Load the file without 'like'.")
        return nest.unflatten(list(found.values()))
    if TREE not in metadata:
        return _by_name(content, path)
    if metadata[TREE] == _NO_TREE:
        raise ValueError(f"{path}: loading needs 'like', because the arrays were saved in containers that only JAX knows. Pass a tree of the same structure.")
    try:
        node = json.loads(metadata[TREE])
        names = _names(node)
        _check_classes(node, path)
        found = [_find(content, name, path) for name in names]
        if content:
            raise ValueError(f"{path}: {TREE} must name every array, but it lacks {', '.join(sorted(content)[:5])}. Save the file again.")
        return Tree(node).unflatten(found)
    except (AttributeError, KeyError, RecursionError, StopIteration, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: {TREE} must describe the tree of the arrays, got {metadata[TREE][:60]!r} ({error}). Save the file again.") from None


class _Nest:
    """The `leaves` of a pytree, their `names`, and the structure `node`. It is NotImplemented if only JAX knows the containers."""

    def __init__(self, tree):
        self.node = node_of(tree, _is_leaf)
        if self.node is not NotImplemented:
            self.leaves, self.names = Tree(self.node).flatten(tree), _names(self.node)
            self.unflatten = Tree(self.node).unflatten
        else:
            self._take_apart(tree)
        for name in self.names:
            if not is_name(name) or name == "__metadata__":
                raise ValueError(f"{name[:100]!r}: a name must have 1 to 1000 bytes of UTF-8 without zero bytes. Rename the keys.")
        for name, count in collections.Counter(self.names).items():
            if count > 1:
                raise ValueError(f"two arrays have the name {name}. Rename the keys.")

    def _take_apart(self, tree):
        jax = sys.modules.get("jax")
        if jax is None:
            raise TypeError("the tree must consist of dicts with text keys, lists, tuples, named tuples and arrays. Other containers need "
                            "JAX: import jax first.")  # fmt: skip
        found, structure = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda value: isinstance(value, ScaledArray))
        self.leaves, self.names = [leaf for _, leaf in found], [".".join(map(key_name, path)) or "value" for path, _ in found]
        self.unflatten = lambda leaves: jax.tree_util.tree_unflatten(structure, leaves)


def key_name(key) -> str:
    """Returns the name of a key in a JAX path."""
    return str(next((getattr(key, attribute) for attribute in ("key", "idx", "name") if hasattr(key, attribute)), key))


def _is_leaf(value):
    return isinstance(value, (ScaledArray, bool, int, float)) or hasattr(value, "dtype")


def _names(node, path: str = "") -> list[str]:
    """Returns the names of the arrays in a structure, in order."""
    if node == LEAF or node is None:
        return [path or "value"] * (node == LEAF)
    if "dict" in node:
        inner = node["dict"].items()
    elif "namedtuple" in node:
        inner = zip(node["names"], node["fields"])
    else:
        inner = enumerate(node["list"] if "list" in node else node["tuple"])
    return sum((_names(part, f"{path}.{key}" if path else str(key)) for key, part in inner), [])


def _check_classes(node, path) -> None:
    """Checks the classes of named tuples that a file names. They must be imported already: a file must not import or call anything."""
    if not isinstance(node, dict):
        return
    if "namedtuple" in node:
        module, _, name = node["namedtuple"].partition(":")
        found = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        if not (isinstance(found, type) and issubclass(found, tuple) and getattr(found, "_fields", None) == tuple(node["names"])):
            raise ValueError(f"{path}: there is no named tuple {module}.{name} with the fields {', '.join(node['names'])}. Import "
                             f"{module} first, or pass like=.")  # fmt: skip
    inner = next((node[kind] for kind in ("dict", "list", "tuple", "fields") if kind in node), [])
    for part in inner.values() if isinstance(inner, dict) else inner:
        _check_classes(part, path)


class _Given(NamedTuple):
    """The properties of an array in `like`."""
    scaled: bool
    dtype: Any
    shape: tuple


def _given(name, leaf):
    if not isinstance(leaf, ScaledArray) and hasattr(leaf, "dtype") and not hasattr(leaf, "__array__"):  # only a shape and a dtype
        return _Given(False, np.dtype(leaf.dtype), tuple(leaf.shape))
    scaled = isinstance(leaf, ScaledArray)
    data = leaf.data if scaled else leaf if hasattr(leaf, "dtype") else _checked(name, leaf)
    return _Given(scaled, np.dtype(data.dtype), tuple(data.shape))


def _checked(name, leaf):
    """Returns a leaf as a NumPy array or ScaledArray of a supported dtype. A scale must be f32."""
    if isinstance(leaf, ScaledArray):
        scale = np.asarray(leaf.scale)
        if scale.dtype != np.float32:
            raise ValueError(f"{name}: scale must be f32, got {scale.dtype}. Convert it: ScaledArray(x.data, x.scale.astype('float32')).")
        return _scaled(name, _checked(name, leaf.data), scale)
    if type(leaf) in _NUMBERS:
        if type(leaf) is int and not -(2**31) <= leaf < 2**31:
            raise ValueError(f"{name}: a number must fit into i32, got {leaf}. Save an array of dtype u32.")
        return np.asarray(leaf, _NUMBERS[type(leaf)])
    if not hasattr(leaf, "dtype"):
        raise TypeError(f"{name}: must be an array, got {type(leaf).__name__}.")
    if str(leaf.dtype).startswith("key<"):
        raise ValueError(f"{name}: dtype must be one of {', '.join(arrays.known())}, got a random key. Save jax.random.key_data(key).")
    array = np.asarray(leaf)
    if array.dtype not in [arrays.numpy_dtype(known) for known in arrays.known()]:
        raise ValueError(f"{name}: dtype must be one of {', '.join(arrays.known())}, got {array.dtype}. Convert the array.")
    return array


def _scaled(name, data, scale):
    """Makes a ScaledArray. An error names the array."""
    try:
        return ScaledArray(data, scale)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _find(content, name, path, like=None):
    """Takes the array of this name out of the content of a file. Compares it with `like`."""
    if name in content:
        found = content.pop(name)
    else:
        parts = next((row for row in part_suffixes[::-1] if _is_scaled(content, name, row)), None)
        if parts is None:
            raise ValueError(f"{path}: the file has no array {name}. Other arrays: {', '.join(sorted(content)[:10]) or 'none'}.")
        found = _scaled(f"{path}: {name}", content.pop(name + parts[0]), content.pop(name + parts[1]))
    if like is not None:
        want, got = _given(name, like), _given(name, found)
        if want != got:
            words = [f"{'scaled ' * of.scaled}{of.dtype}{list(of.shape)}" for of in (want, got)]
            raise ValueError(f"{path}: {name}: must be {words[0]} as in 'like', got {words[1]}.")
    return found


def _is_scaled(content, name, row):
    data, scale = (content.get(name + end) for end in row)
    return data is not None and scale is not None and scale.dtype == np.float32 and scale.shape == ()


def _by_name(content, path):
    """Returns the content of a file without a structure as a dict. `x.data` and `x.scale` become one ScaledArray."""
    result = {}
    for row in part_suffixes[::-1]:
        for name in [each[: -len(row[0])] for each in content if each.endswith(row[0])]:
            if name and name not in result and name not in content and _is_scaled(content, name, row):
                result[name] = _scaled(f"{path}: {name}", content.pop(name + row[0]), content.pop(name + row[1]))
    return dict(sorted((result | content).items()))
