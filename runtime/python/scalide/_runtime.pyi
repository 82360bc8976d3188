"""The extension module (runtime/python/native). A scaled array is a tuple (data, scale)."""
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

version: str
part_suffixes: tuple[tuple[str, str], tuple[str, str]]
"""The suffixes of data and scale in a file. The second row is for the case that another array has one of these names."""
xla_handler: Any
"""A capsule with the FFI handler for XLA. None if the module was built without the headers of XLA."""

Leaf = np.ndarray | tuple[np.ndarray, Any]
Found = tuple[str, int, str, str]
"""The first result that is not finite: (name, step, kernel, loops)."""

def set_dtypes(dtypes: dict[str, np.dtype | None]) -> None: ...
def register_for_xla(program: Program, constants: Constants | None, key: int) -> None: ...

def save_checkpoint(folder: str, step: int, rows: list[tuple[str, str, tuple[int, ...], np.ndarray]], metadata: dict[str, str], prefix: str,
                    keep: int, keep_every: int, overwrite: bool, format: int, shard_bytes: int) -> None:
    """A row is (name, dtype, shape, bytes). The bytes are an array of u8."""
def save_flax_checkpoint(folder: str, step: int, rows: list[tuple[str, Any]], separator: str, prefix: str, keep: int, keep_every: int,
                         overwrite: bool) -> None: ...
def checkpoint_steps(folder: str, prefix: str) -> list[int]: ...
def checkpoint_path(folder: str, step: int | None, prefix: str) -> tuple[str, int]: ...
def read_checkpoint(folder: str, step: int | None, prefix: str) -> tuple[int, list[tuple[str, str, tuple[int, ...], np.ndarray]], dict[str, str]]: ...
def read_msgpack(path: str, separator: str) -> list[tuple[str, Any]]:
    """Returns pairs (name, value). An array is (dtype of NumPy, shape, bytes, whether it is a NumPy scalar)."""
def write_msgpack(path: str, rows: list[tuple[str, Any]], separator: str, chunk_bytes: int = 0) -> None: ...

def join(group: str, mpi: bool) -> tuple[int, int]:
    """Returns the number of this rank and the number of ranks."""

class Constants:
    """What a program computed once from its constants."""
    bytes: int

class Program:
    name: str
    target: str
    numerics: str
    hash: str
    arguments: list[tuple[str, str, int, str, bool]]
    """(name, dtype, rank, role, scaled) for each argument."""
    def __init__(self, path: str, name: str, threads: int) -> None: ...
    described_statistics: list[tuple[str, str, str, str, str, str, str, str, int, int, int]]
    """(tensor, use, operator, scope, location, policy, direction, dtype, every, first_exponent, octaves) for each tensor with statistics."""
    statistics: list[tuple[Any, ...]]
    """(step, elements, amax, scale, rms, zeros, saturated, subnormal, non_finite, first, histogram) for each of them."""
    statistics_step: int
    def prepare(self, leaves: list[Leaf]) -> Constants: ...
    """Takes the constants. The other functions take all arguments, without the constants if they are prepared."""
    def result_shapes(self, shapes: Sequence[Sequence[int]], constants: Constants | None = None) -> list[tuple[int, ...]]: ...
    def call(self, leaves: list[Leaf], constants: Constants | None = None, donated: bool = False, apart: bool = False) -> list[Leaf]: ...
    """With `donated`, inouts that fit are updated in place, and their arrays are results. With `apart`, it collects no statistics."""
    def call_checked(self, leaves: list[Leaf], constants: Constants | None = None, donated: bool = False) -> tuple[list[Leaf], Found | None]: ...
    def call_traced(self, leaves: list[Leaf], constants: Constants | None,
                    wants: Callable[[str, str], bool]) -> tuple[list[Leaf], list[tuple[str, str, str, str, str, np.ndarray]]]:
        """Copies the arrays for which `wants(name, tensor)` is true: (name, tensor, part, loops, dtype, array)."""
    def run_in_place(self, leaves: list[Leaf], constants: Constants | None = None, checked: bool = False) -> Found | None: ...

class Metrics:
    """Files for the metrics of a run. close() ends their thread."""
    dropped: int
    def __init__(self, folder: str, tensorboard: bool, queue_bytes: int, statistics: bool) -> None: ...
    def write(self, step: int, values: list[tuple[str, float]]) -> None: ...
    def write_statistics(self, step: int, program: Program) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...
