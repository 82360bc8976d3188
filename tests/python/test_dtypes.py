"""Compares Python's names of element types with the manifest (runtime/include/scalide/dtypes.h)."""
import json
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from scalide.arrays import DTYPES, read_safetensors

MANIFEST = Path(__file__).parents[2] / "runtime/include/scalide/dtypes.h"


def test_python_has_the_rows_of_the_manifest():
    rows = re.findall(r'row\(\w+, +\w+, +"(\w+)", +\d+, +\w+, +(\d+), +"(\w+)"', MANIFEST.read_text())
    assert len(rows) == 20
    manifest = {name: (int(bits), safetensors) for name, bits, safetensors in rows if name != "f64"}  # never an argument
    ours = {name: (8 * numpy.itemsize if numpy is not None else manifest[name][0], theirs) for name, (numpy, theirs) in DTYPES.items()}
    assert ours == manifest


def test_a_tensor_of_an_unknown_dtype_is_refused_where_it_is_asked_for(tmp_path):
    header = {"step": {"dtype": "U64", "shape": [], "data_offsets": [0, 8]}, "w": {"dtype": "F32", "shape": [2], "data_offsets": [8, 16]}}
    text, file = json.dumps(header).encode(), tmp_path / "s.safetensors"
    file.write_bytes(struct.pack("<Q", len(text)) + text + bytes(8) + np.float32([1, 2]).tobytes())
    assert list(read_safetensors(file, ["w"])["w"]) == [1, 2]
    with pytest.raises(ValueError, match=r"s\.safetensors: tensor 'step': dtype must be one of F32 F16 .*, got U64\. Convert the tensor\."):
        read_safetensors(file, ["w", "step"])
    with pytest.raises(ValueError, match=r"tensor 'v': the file has no tensor of this name\."):
        read_safetensors(file, ["v"])
