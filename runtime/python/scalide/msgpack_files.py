"""Files in the msgpack layout of flax.serialization. Neither Flax nor the package msgpack is needed."""
from __future__ import annotations

import os
import sys
from typing import Any

import ml_dtypes
import numpy as np

from . import _runtime
from .scaled_array import ScaledArray

SEPARATOR = "\x1f"  #: between the keys of a leaf: no key has it


def is_msgpack(path: str | os.PathLike) -> bool:
    """Returns True if the name of a file asks for this layout."""
    return os.fspath(path).endswith(".msgpack")


def write(path: str | os.PathLike, tree: Any, chunk_bytes: int = 0) -> None:
    """Writes a pytree as flax.serialization.to_bytes does: lists and tuples become dicts with the keys 0, 1, ..., a ScaledArray becomes a dict of data and scale."""
    _runtime.write_msgpack(os.fspath(path), rows_of(tree), SEPARATOR, chunk_bytes)


def rows_of(tree: Any) -> list[tuple[str, Any]]:
    """Returns the leaves of a pytree by name, as the native module takes them."""
    rows: list = []
    _flatten(_state(tree, ""), [], rows)
    return rows


def read(path: str | os.PathLike, like: Any = None) -> Any:
    """Returns the tree of a file as flax.serialization.msgpack_restore does, or in the structure of `like`."""
    state: Any = {}
    for name, value in _runtime.read_msgpack(os.fspath(path), SEPARATOR):
        leaf = _array(path, name, *value) if isinstance(value, tuple) else value
        if name == "":
            state = leaf
            continue
        place, keys = state, name.split(SEPARATOR)
        for key in keys[:-1]:
            place = place.setdefault(key, {})
        place[keys[-1]] = leaf
    return state if like is None else _like(like, state, "", path)


def _array(path, name, dtype, shape, data, is_scalar):
    try:
        known = np.dtype(getattr(ml_dtypes, dtype)) if dtype.startswith(("bfloat", "float8")) else np.dtype(dtype)
        array = data.view(known).reshape(shape)
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{path}: {name.replace(SEPARATOR, '.')}: must be an array of a dtype of NumPy, got {dtype[:40]!r}{list(shape)} ({error}). "
                         "Save the file again.") from None  # fmt: skip
    return array[()] if is_scalar else array


def _state(tree, path):
    """Returns a tree as nested dicts of leaves."""
    if isinstance(tree, ScaledArray):
        return {"data": tree.data, "scale": tree.scale}
    if isinstance(tree, dict):
        if not all(isinstance(key, str) for key in tree):
            raise TypeError(f"{path or 'the tree'}: the keys of a dict must be text. Convert the keys.")
        return {key: _state(value, f"{path}.{key}" if path else key) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        keys = tree._fields if hasattr(tree, "_fields") else map(str, range(len(tree)))
        return {key: _state(value, f"{path}.{key}" if path else key) for key, value in zip(keys, tree)}
    if tree is None or isinstance(tree, (bool, int, float, complex, str, bytes)) and not isinstance(tree, np.generic) or hasattr(tree, "dtype"):
        return tree
    flax = sys.modules.get("flax.serialization")
    if flax is not None:
        state = flax.to_state_dict(tree)
        if state is not tree:
            return _state(state, path)
    raise TypeError(f"{path or 'the tree'}: must be an array, a number or a container, got {type(tree).__name__}. For containers of Flax, import flax.serialization first.")


def _flatten(state, keys, rows):
    if isinstance(state, dict) and state:
        for key, value in state.items():
            if SEPARATOR in key or "\0" in key:
                raise ValueError(f"{key!r}: a key must not contain the characters \\0 and \\x1f. Rename the key.")
            _flatten(value, [*keys, key], rows)
        return
    name = SEPARATOR.join(keys)
    if hasattr(state, "dtype"):
        if str(state.dtype).startswith("key<"):
            raise ValueError(f"{'.'.join(keys)}: must be an array, got a random key. Save jax.random.key_data(key).")
        array = np.asarray(state)
        if array.dtype.hasobject or array.dtype.fields:
            raise ValueError(f"{'.'.join(keys)}: must be an array of numbers, got dtype {array.dtype}. Convert the array.")
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        state = (array.dtype.name, array.shape, raw, isinstance(state, np.generic))
    rows.append((name, state))


def _like(like, state, name, path):
    """Returns the state in the structure of `like`."""
    if isinstance(like, ScaledArray):
        like = {"data": like.data, "scale": like.scale}
        found = _like(like, state, name, path)
        return ScaledArray(found["data"], found["scale"])
    if isinstance(like, (dict, list, tuple)):
        keys = list(like) if isinstance(like, dict) else list(getattr(like, "_fields", map(str, range(len(like)))))
        values = like.values() if isinstance(like, dict) else like
        got = list(state) if isinstance(state, dict) else None
        if got is None or set(got) != set(keys):
            raise ValueError(f"{path}: {name or 'the tree'}: must have the keys {', '.join(keys) or 'none'} as in 'like', "
                             f"got {', '.join(map(str, got)) if got is not None else type(state).__name__}.")  # fmt: skip
        parts = [_like(value, state[key], f"{name}.{key}" if name else key, path) for key, value in zip(keys, values)]
        if isinstance(like, dict):
            return dict(zip(keys, parts))
        return type(like)(*parts) if hasattr(like, "_fields") else type(like)(parts)
    if hasattr(like, "dtype"):
        want, got = (np.dtype(like.dtype), tuple(like.shape)), (np.dtype(getattr(state, "dtype", type(state))), getattr(state, "shape", ()))
        if want != got:
            words = [f"{dtype}{list(shape)}" for dtype, shape in (want, got)]
            raise ValueError(f"{path}: {name or 'value'}: must be {words[0]} as in 'like', got {words[1]}.")
        return state
    flax = sys.modules.get("flax.serialization")
    return state if flax is None or like is None or isinstance(like, (bool, int, float, complex, str, bytes)) else flax.from_state_dict(like, state)
