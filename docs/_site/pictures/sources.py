"""Where pictures have their numbers from: tables of pages, outputs in pages, the built tool, and measured.json."""
import json
import os
import re
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
#: Reports for this target do not depend on the machine.
TARGET = ["-t", "x86-64-v3"]
LAYER = """program layer(x: f32[32, 64], w: f32[64, 16]) -> (y: f32[32, 16]) {
  h = dot_general(x, w) {contract: [[1], [0]]}
  y = tanh(h)
}
"""


def section(page, heading):
    """The text of a page from this heading to the next one."""
    text = (ROOT / page).read_text()
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#+ |\Z)", re.sub(r"^#(?= .*\n```)", " #", text, flags=re.M), re.S | re.M)
    if not found:
        raise ValueError(f"{page} must have the section '{heading}'")
    return found[1]


def table(page, heading, number=0):
    """The rows of a table of a section, as dicts by column. Backticks are left out."""
    tables = re.findall(r"^\|.*\|\n\|[-|]+\|\n(?:\|.*\|\n)+", section(page, heading), re.M)
    lines = [[cell.strip().replace("`", "") for cell in line.strip("|").split("|")] for line in tables[number].splitlines()]
    columns = [f"{name}, again" if name in lines[0][:i] else name for i, name in enumerate(lines[0])]
    return [dict(zip(columns, line)) for line in lines[2:]]


def number(cell):
    """The number at the start of a cell such as `2.03 ms`, or None for an empty cell."""
    found = re.match(r"[-+]?[\d,]*\.?\d+(?:e[-+]?\d+)?", cell)
    return float(found[0].replace(",", "")) if found else None


def printed(page, first_word):
    """The lines of the output block of a page whose first line begins with this word."""
    return next(block.splitlines() for block in re.findall(r"^```text\n(.*?)^```", (ROOT / page).read_text(), re.S | re.M) if block.startswith(first_word))


def measured():
    return json.loads((HERE / "measured.json").read_text())


def tool(*arguments, cwd=None):
    """What the built tool prints."""
    command = [Path(os.environ.get("SCALIDE_BUILD_DIR", ROOT / "build")) / "generators/scalide", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=cwd).stdout
