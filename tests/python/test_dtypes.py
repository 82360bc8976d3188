"""Python's names of element types beside the manifest (runtime/include/scalide/dtypes.h)."""
import re
from pathlib import Path

from scalide.arrays import DTYPES

MANIFEST = Path(__file__).parents[2] / "runtime/include/scalide/dtypes.h"


def test_python_has_the_rows_of_the_manifest():
    rows = re.findall(r'row\(\w+, +\w+, +"(\w+)", +\d+, +\w+, +(\d+), +"(\w+)"', MANIFEST.read_text())
    assert len(rows) == 19
    manifest = {name: (int(bits), safetensors) for name, bits, safetensors in rows if name != "f64"}  # never an argument
    ours = {name: (8 * numpy.itemsize if numpy is not None else manifest[name][0], theirs) for name, (numpy, theirs) in DTYPES.items()}
    assert ours == manifest
