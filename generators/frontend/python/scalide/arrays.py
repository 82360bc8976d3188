"""Dtypes by their names here, in NumPy and in safetensors files, and such files. NumPy and ml_dtypes are all it needs."""
from __future__ import annotations

import json
import struct
from pathlib import Path
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
    "i32": (np.dtype(np.int32), "I32"),
    "i16": (np.dtype(np.int16), "I16"),
    "i8": (np.dtype(np.int8), "I8"),
    "u32": (np.dtype(np.uint32), "U32"),
    "u16": (np.dtype(np.uint16), "U16"),
    "u8": (np.dtype(np.uint8), "U8"),
    "bool": (np.dtype(np.bool_), "BOOL"),
}


def numpy_dtype(name: str) -> np.dtype:
    return DTYPES[name][0]


def write_safetensors(path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes arrays by name; a scaled `x` is `x.data` and `x.scale`."""
    names = {numpy: theirs for numpy, theirs in DTYPES.values()}
    header, parts, offset = {}, [], 0
    for name, array in arrays.items():
        content = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": names[np.asarray(array).dtype], "shape": list(np.shape(array)), "data_offsets": [offset, offset + len(content)]}
        parts.append(content)
        offset += len(content)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def read_safetensors(path, names: Iterable[str]) -> dict[str, np.ndarray]:
    """These arrays of a file. Others may have dtypes that are unknown here."""
    content = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    dtypes = {theirs: numpy for numpy, theirs in DTYPES.values()}
    data = memoryview(content)[8 + length :]
    arrays = {}
    for name in names:
        if name not in header:
            raise ValueError(f"{path}: tensor {name!r}: must be in the file, got no tensor of this name. Save the file again.")
        entry = header[name]
        if entry["dtype"] not in dtypes:
            raise ValueError(f"{path}: tensor {name!r}: dtype must be one of {' '.join(dtypes)}, got {entry['dtype']}. Convert the tensor.")
        arrays[name] = np.frombuffer(data[slice(*entry["data_offsets"])], dtypes[entry["dtype"]]).reshape(entry["shape"]).copy()
    return arrays
