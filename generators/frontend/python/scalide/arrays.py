"""The table of dtypes, and safetensors files. Needs only NumPy and ml_dtypes."""
from __future__ import annotations

import json
import math
import os
import struct
import tempfile
from typing import Iterable, Mapping

import ml_dtypes
import numpy as np

#: name: (NumPy dtype, name in safetensors files)
DTYPES = {
    "f32": (np.dtype(np.float32), "F32"),
    "f16": (np.dtype(np.float16), "F16"),
    "bf16": (np.dtype(ml_dtypes.bfloat16), "BF16"),
    "f8_e4m3fn": (np.dtype(ml_dtypes.float8_e4m3fn), "F8_E4M3"),
    "f8_e5m2": (np.dtype(ml_dtypes.float8_e5m2), "F8_E5M2"),
    "f8_e4m3fnuz": (np.dtype(ml_dtypes.float8_e4m3fnuz), "F8_E4M3FNUZ"),
    "f8_e5m2fnuz": (np.dtype(ml_dtypes.float8_e5m2fnuz), "F8_E5M2FNUZ"),
    "f8_e8m0fnu": (np.dtype(ml_dtypes.float8_e8m0fnu) if hasattr(ml_dtypes, "float8_e8m0fnu") else None, "F8_E8M0"),
    "f8_e3m4": (np.dtype(ml_dtypes.float8_e3m4) if hasattr(ml_dtypes, "float8_e3m4") else None, "F8_E3M4"),
    "f8_e4m3": (np.dtype(ml_dtypes.float8_e4m3) if hasattr(ml_dtypes, "float8_e4m3") else None, "F8_E4M3_IEEE"),
    "f8_e4m3b11fnuz": (np.dtype(ml_dtypes.float8_e4m3b11fnuz), "F8_E4M3B11FNUZ"),
    "i64": (np.dtype(np.int64), "I64"),
    "i32": (np.dtype(np.int32), "I32"),
    "i16": (np.dtype(np.int16), "I16"),
    "i8": (np.dtype(np.int8), "I8"),
    "u32": (np.dtype(np.uint32), "U32"),
    "u16": (np.dtype(np.uint16), "U16"),
    "u8": (np.dtype(np.uint8), "U8"),
    "bool": (np.dtype(np.bool_), "BOOL"),
}


def numpy_dtype(name: str) -> np.dtype:
    """Returns the NumPy dtype for a name such as "f8_e4m3fn"."""
    return DTYPES[name][0]


def write_safetensors(path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str] | None = None) -> None:
    """Writes arrays by name to a safetensors file. If the write fails, an old file stays unchanged.

    Args:
        path: The file.
        arrays: The arrays by name. A scaled array `x` is given as `x.data` and `x.scale`.
        metadata: Texts by key.

    Raises:
        OSError: The file cannot be written.
        ValueError: A dtype is not supported, or the path is not a regular file.
    """
    names = {numpy: theirs for numpy, theirs in DTYPES.values()}
    header, offset = {"__metadata__": dict(metadata)} if metadata else {}, 0
    for name, array in arrays.items():
        if array.dtype not in names:
            raise ValueError(f"{path}: {name}: dtype must be one of {', '.join(known())}, got {array.dtype}. Convert the array.")
        header[name] = {"dtype": names[array.dtype], "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if os.path.exists(path) and not os.path.isfile(path):
        raise ValueError(f"cannot write {path}: it is a folder or a device. Choose another path.")
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(os.path.abspath(path)), prefix=os.path.basename(path), delete=False) as file:
        try:
            file.write(struct.pack("<Q", len(text)) + text)
            for array in arrays.values():
                file.write(_bytes_of(np.ascontiguousarray(array)))
            file.flush()
            os.fsync(file.fileno())
            os.chmod(file.name, 0o666 & ~_umask())  # a temporary file is readable for its owner only
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise


def read_safetensors(path, names: Iterable[str] | None = None) -> dict[str, np.ndarray]:
    """Returns the arrays of a safetensors file by name.

    Args:
        path: The file.
        names: Read only these arrays. Others may then have unknown dtypes.

    Raises:
        OSError: The file cannot be read.
        ValueError: The file is damaged or incomplete, or it has an unknown dtype.
    """
    return read_safetensors_and_metadata(path, names)[0]


def read_safetensors_and_metadata(path, names: Iterable[str] | None = None) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Returns the arrays (as `read_safetensors`) and the metadata of a file."""
    dtypes = {theirs: numpy for numpy, theirs in DTYPES.values() if numpy is not None}
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else size
        if length > size - 8:
            raise ValueError(f"cannot read {path}: its header has more bytes than the file ({size}). Save it again.")
        try:
            header = json.loads(file.read(length))
            entries = {name: (entry["dtype"], [int(n) for n in entry["shape"]], [int(n) for n in entry["data_offsets"]])
                       for name, entry in header.items() if name != "__metadata__"}  # fmt: skip
            metadata = {str(key): str(value) for key, value in header.get("__metadata__", {}).items()}
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
            raise ValueError(f"cannot read {path}: its header is not a safetensors header. Save it again.") from None
        arrays = {}
        for name in entries if names is None else names:
            if name not in entries:
                raise ValueError(f"{path}: tensor {name!r}: the file has no tensor of this name. Save the file again.")
            dtype, shape, offsets = entries[name]
            if dtype not in dtypes:
                raise ValueError(f"{path}: tensor {name!r}: dtype must be one of {' '.join(dtypes)}, got {dtype}. Convert the tensor.")
            count = math.prod(shape) * dtypes[dtype].itemsize
            begin, end = offsets if len(offsets) == 2 else (0, -1)
            if min([begin, *shape]) < 0 or end - begin != count or end > size - 8 - length:
                raise ValueError(f"{path}: {name}: the shape {shape} needs {count} bytes, got bytes {offsets} of {size - 8 - length}. Save it again.")
            arrays[name] = np.empty(shape, dtypes[dtype])
            file.seek(8 + length + begin)
            file.readinto(_bytes_of(arrays[name]))
    return arrays, metadata


def known() -> list[str]:
    """Returns the names of the dtypes that this version of ml_dtypes supports."""
    return [name for name, (numpy, _) in DTYPES.items() if numpy is not None]


def _bytes_of(array: np.ndarray) -> memoryview:
    return memoryview(array.reshape(-1).view(np.uint8))


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
