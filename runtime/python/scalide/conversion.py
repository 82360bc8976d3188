"""Library.convert: the arrays of one argument of a library in other formats."""
from __future__ import annotations

import numpy as np

from .arrays import DTYPES, numpy_dtype
from .scaled_array import ScaledArray
from .words import meant

#: The largest magnitude of scaled data is in [target, 2 * target). 8 bits: half of the largest number. scalide_convert of C does the same.
_TARGETS = {"f16": 16384.0, "bf16": 1.0, "f32": 1.0}


def convert(library, tree, argument: int | str, to: str | None):
    """Returns a pytree with the arrays in the formats of an argument of the library, or in the dtype `to`."""
    specs, flatten, unflatten = _argument(library, argument)
    if to is not None and to not in DTYPES:
        raise ValueError(f"{library.name}: unknown dtype {to!r}. {meant(to, list(DTYPES))}")
    return unflatten([_converted(f"{library.name}.{spec.name}", leaf, to or spec.dtype, to is None and spec.scaled, spec.rank)
                      for leaf, spec in zip(flatten(tree), specs)])  # fmt: skip


def _argument(library, argument):
    """Returns the arrays of an argument of the traced function, and functions that flatten and unflatten its tree."""
    inputs = [row for row in library._inputs if row.role != "state"]
    program = library.program
    if program is None or program.in_tree is None:
        names = [row.name for row in inputs]
        place = _place(library, argument, names, [[name] for name in names])
        return [inputs[place]], lambda tree: [tree], lambda leaves: leaves[0]
    positional, named = program.in_tree.parts()
    counts = [*positional, *named.values()]
    ends = np.cumsum([0, *counts])
    groups = [inputs[begin:end] for begin, end in zip(ends, ends[1:])]
    names = [group[0].name.split(".")[0] if group else "" for group in groups[: len(positional)]] + list(named)
    place = _place(library, argument, names, groups)
    args, kwargs = program.in_tree.unflatten([object()] * int(ends[-1] + len(program.constants)))

    def whole(tree):
        """Returns the arguments of a call in which all other arrays are plain objects."""
        if place >= len(positional):
            return args, {**kwargs, names[place]: tree}
        return (*args[:place], tree, *args[place + 1 :]), kwargs

    def flatten(tree):
        return program.in_tree.flatten(whole(tree))[ends[place] : ends[place + 1]]

    def unflatten(leaves):
        given, by_name = program.in_tree.unflatten([object()] * int(ends[place]) + list(leaves) + [object()] * int(ends[-1] - ends[place + 1]))
        return given[place] if place < len(positional) else by_name[names[place]]

    return groups[place], flatten, unflatten


def _place(library, argument, names, groups) -> int:
    if isinstance(argument, str):
        if argument not in names:
            raise ValueError(f"{library.name}: unknown argument {argument!r}. {meant(argument, names)}")
        return names.index(argument)
    if not 0 <= argument < len(groups):
        raise ValueError(f"{library.name}: argument must be from 0 to {len(groups) - 1}, or a name, got {argument}.")
    return argument


def _converted(name: str, leaf, dtype: str, scaled: bool, rank: int):
    """Returns an array or a ScaledArray in another format. Each element is rounded once, and finite numbers saturate."""
    data, scale = (leaf.data, np.float64(leaf.scale)) if isinstance(leaf, ScaledArray) else (leaf, None)
    data = np.asarray(data)
    if data.ndim != rank:
        raise ValueError(f"{name}: rank must be {rank}, got {data.ndim}.")
    target = numpy_dtype(dtype)
    if scale is None and not scaled and data.dtype == target:
        return data
    if _is_float(data.dtype) != _is_float(target):
        raise TypeError(f"{name}: must be an array that converts to {dtype}, got {data.dtype}. Convert it with numpy.")
    if not _is_float(target):
        return data.astype(target)
    values = data.astype(np.float64) * (1.0 if scale is None else scale)
    largest = float(_limits(target).max)
    if not scaled:
        return _rounded(values, target, largest)
    made = _scale_of(values, _TARGETS.get(dtype, largest / 2))
    return ScaledArray(_rounded(values / made, target, largest), np.float32(made))


def _is_float(dtype) -> bool:
    return dtype.kind not in "biu"


def _limits(dtype):
    import ml_dtypes

    return ml_dtypes.finfo(dtype)


def _rounded(values, dtype, largest: float):
    limited = np.where(np.isfinite(values), np.clip(values, -largest, largest), values)
    with np.errstate(over="ignore", invalid="ignore"):
        return limited.astype(np.float32).astype(dtype) if dtype.itemsize < 4 else limited.astype(dtype)


def _scale_of(values, target: float) -> float:
    """Returns the power of two that brings the largest magnitude to [target, 2 * target). It is 1 if that magnitude is 0, infinite or NaN."""
    amax = float(np.abs(values).max(initial=0))
    if not 0 < amax < np.inf:
        return 1.0
    return float(np.clip(2.0 ** (np.frexp(amax / target)[1] - 1), 2.0**-126, 2.0**127))
