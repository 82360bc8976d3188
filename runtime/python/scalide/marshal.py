"""The arrays of a caller as the native module takes them. Needs NumPy and ml_dtypes, but not JAX."""
from __future__ import annotations

import sys

import numpy as np

from . import _runtime, arrays
from .scaled_array import ScaledArray

DTYPES = {name: numpy for name, (numpy, _) in arrays.DTYPES.items()}
_runtime.set_dtypes(DTYPES)
_PYTHON_NUMBERS = {"b": "b", "i": "bif", "f": "f"}  # kind of a Python number -> kinds of dtypes that it may become; "f": all float dtypes


def check_scaled(leaf, argument, name):
    """Raises TypeError for a ScaledArray given for a plain argument, and for a plain array given for a scaled argument."""
    if isinstance(leaf, ScaledArray) == argument.scaled:
        return
    if argument.scaled:
        raise TypeError(f"{name}.{argument.name}: must be a ScaledArray, got {type(leaf).__name__}. Use scalide.ScaledArray(data, scale).")
    raise TypeError(f"{name}.{argument.name}: must be a plain array, got a ScaledArray. Use its to_array().")


def to_read(leaf, argument, name):
    """Returns what the native module takes for an argument that is read."""
    if type(leaf) is np.ndarray and not argument.scaled:
        return leaf
    check_scaled(leaf, argument, name)
    return (to_numpy(leaf.data, argument, name), float(leaf.scale)) if argument.scaled else to_numpy(leaf, argument, name)


def to_write(leaf, argument, name):
    check_scaled(leaf, argument, name)
    return (leaf.data, leaf.scale) if argument.scaled else leaf


def to_numpy(leaf, argument, name):
    """Returns a NumPy array. Converts Python numbers and lists of numbers."""
    if isinstance(leaf, (np.ndarray, np.generic)):
        return np.asarray(leaf)
    if isinstance(leaf, (bool, int, float, list, tuple)):
        try:
            if _kind(argument.dtype) in _PYTHON_NUMBERS.get(np.asarray(leaf).dtype.kind, ""):
                return np.asarray(leaf, DTYPES[argument.dtype])
        except (OverflowError, TypeError, ValueError) as error:
            raise TypeError(f"{name}.{argument.name}: must be an array of {argument.dtype}, got a {type(leaf).__name__}, which cannot be converted: {error}.") from None
    raise TypeError(f"{name}.{argument.name}: must be an array of {argument.dtype}, got {type(leaf).__name__}.")


def in_format(leaf, argument, name):
    """Returns a leaf in the dtype of the argument, as an array or a ScaledArray."""
    given = to_read(leaf, argument, name)
    data, scale = given if argument.scaled else (given, None)
    data = data.astype(DTYPES[argument.dtype])
    return ScaledArray(data, np.float32(scale)) if argument.scaled else data


def without_lists(leaf, argument, name):
    """Converts a list to an array, because JAX takes a list for several arrays."""
    return to_numpy(leaf, argument, name) if isinstance(leaf, (list, tuple)) else leaf


def updated(leaf, data, scale):
    """Returns the ScaledArray of a result. It is the leaf if the run updated the data of the leaf."""
    if isinstance(leaf, ScaledArray) and leaf.data is data:
        leaf.scale = scale
        return leaf
    return ScaledArray._of(data, scale)


def on_host(leaf):
    """Returns the leaf with JAX arrays converted to NumPy arrays."""
    if type(leaf) is ScaledArray:
        return ScaledArray._of(on_host(leaf.data), leaf.scale)
    jax = sys.modules.get("jax")
    return np.asarray(leaf) if jax is not None and isinstance(leaf, jax.Array) else leaf


def any_of_jax(leaves, name):
    """Returns True if an array is a JAX array. Raises ValueError if it is deleted or not on the CPU."""
    jax, found = sys.modules.get("jax"), False
    for leaf in leaves if jax is not None else ():
        if type(leaf) is np.ndarray:
            continue
        data = leaf.data if type(leaf) is ScaledArray else leaf
        if isinstance(data, jax.Array):
            found = True
            if isinstance(data, jax.core.Tracer):
                continue
            if data.is_deleted():
                raise ValueError(f"{name}: a JAX array must not be deleted, got one of shape {data.shape} that an earlier call donated. Pass the result of that call.")
            if any(device.platform != "cpu" for device in data.devices()):
                raise ValueError(f"{name}: arrays must be on the CPU, got an array on {data.devices()}. Move it with jax.device_put(x, jax.devices('cpu')[0]).")
    return found


def _kind(dtype):
    return "f" if dtype[0] in "f" or dtype == "bf16" else "b" if dtype == "bool" else "i"
