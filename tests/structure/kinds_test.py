"""Sources named after a kind of kernel (generators/emit/lowering_hashes.cmake) run for kernels of that kind alone: no other object file uses
what they define, but the two tables of kinds. Usage: kinds_test.py NM ARCHIVE..."""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLES = {"lower", "schedule"}
KINDS = {p.stem for p in (ROOT / "generators/lower").glob("*/*.cpp") if "_" not in p.stem and (ROOT / "schedules/gpu" / p.name).exists()}


def owner(stem):
    return next((kind for kind in KINDS if f"{stem}_".startswith(f"{kind}_")), None)


def main(nm, *archives):
    defined, used = {}, []
    for archive in archives:
        printed = subprocess.run([nm, "-A", archive], capture_output=True, text=True, check=True).stdout
        for stem, kind, symbol in re.findall(r"([\w]+)\.cpp\.o:[0-9a-f ]* ([TU]) (\S+)$", printed, re.M):
            if kind == "T":
                defined[symbol] = stem
            else:
                used.append((stem, symbol))
    assert len(KINDS) >= 7 and len(defined) > 50, (KINDS, len(defined))
    problems = []
    for stem, symbol in used:
        maker = defined.get(symbol)
        if maker and owner(maker) and owner(maker) != owner(stem) and stem not in TABLES:
            problems.append(f"{stem}.cpp uses {symbol} of {maker}.cpp, which counts for kernels of kind {owner(maker)} alone")
    print("\n".join(problems) or f"ok: {len(used)} uses, kinds {sorted(KINDS)}")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
