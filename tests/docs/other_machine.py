"""Runs a page of the documentation as on another machine: with other tile numbers, for an older CPU, or both. Nothing in a page may depend on them.

Usage: other_machine.py MACHINE PAGE.md ARGUMENTS..., where ARGUMENTS are those of run_page.py. MACHINE is
  tiles  half of each number for CPUs in schedules/tiles.yaml
  level  x86-64-v3, that is AVX2 without AVX-512, as the meaning of `host`
  both   both"""
import pathlib
import re
import sys
import tempfile

import run_page

TILES = pathlib.Path(__file__).resolve().parents[2] / "schedules/tiles.yaml"
LEVEL = "x86-64-v3"


def other_tiles(text: str) -> str:
    """The table with half of each number for CPUs. 1 becomes 0, which switches an instruction off."""

    def half(found):
        return found[0] if "gpu: true" in found[0] else re.sub(r"(?<=: )\d+(?=[,}])", lambda number: str(int(number[0]) // 2), found[0])

    return re.sub(r"^- kind: .*?\n(?=- kind: |\Z)", half, text, flags=re.S | re.M)


def variables(machine: str, folder: pathlib.Path) -> list:
    """The environment variables of that machine, as options of run_page.py. `folder` gets the table of tiles."""
    options = []
    if machine in ("tiles", "both"):
        text = TILES.read_text()
        table = folder / "tiles.yaml"
        table.write_text(other_tiles(text))
        assert "lanes: 8" in table.read_text() and "bf16_pairs: 1," not in table.read_text(), "the table has no other numbers"
        options += ["--set", f"SCALIDE_TILES={table}"]
    if machine in ("level", "both"):
        options += ["--set", f"SCALIDE_HOST_TARGET={LEVEL}"]
    assert options, f"unknown machine {machine}"
    return options


if __name__ == "__main__":
    machine = sys.argv.pop(1)
    with tempfile.TemporaryDirectory(prefix="machine-") as temporary:
        sys.argv += variables(machine, pathlib.Path(temporary))
        run_page.main()
