#!/usr/bin/env python3
"""Chooses tests/golden/data from the complete reference data, a folder of <suite>.json and <suite>.npz. tests/golden/data/README.md describes it.

The script keeps small suites whole. From a larger suite it takes as many cases as fit into files of 1 MB, equally many of each operator or
graph, and all cases that tests/golden/deviations names. From a long list of numbers (conversions, powers of two) it takes every n-th number.

Usage: shrink.py FULL [DATA]
"""
import json
import shutil
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
MOST_BYTES = 1_000_000
SUITES = ("casts", "casts_e8m0", "graphs", "graphs_random", "loss_scaling", "optim", "pow2", "primitives", "primitives_lax", "recipes")  #: what tests read
LISTS = ("casts", "casts_e8m0", "pow2")  #: suites of elementwise functions of lists
LONGEST = 1024  #: elements of such a list


def strings(entry):
    if isinstance(entry, str):
        yield entry
    elif isinstance(entry, (dict, list)):
        for part in entry.values() if isinstance(entry, dict) else entry:
            yield from strings(part)


def members(case, arrays):
    """The names of the arrays that a case speaks of."""
    return {name for text in strings(case) for name in (text, text + ".data", text + ".scale") if name in arrays}


def sampled(array):
    return array[::-(-len(array) // LONGEST) | 1] if array.ndim == 1 else array  # by an odd number: all low bits occur


def reshape(entry, arrays):
    """Writes the shapes of sampled arrays into descriptors."""
    if isinstance(entry, dict):
        name = entry.get("key")
        if isinstance(name, str) and "shape" in entry and name in arrays:
            entry["shape"] = list(arrays[name].shape)
    for part in entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ():
        reshape(part, arrays)


def needed(suite):
    file = HERE / "deviations" / f"{suite}.txt"
    lines = file.read_text().splitlines() if file.exists() else []
    return {line.split(" ")[0] for line in lines if line and line[0] != "#"}


def by_turns(cases):
    """The first case of each operator or graph, then the second ..."""
    places = {}
    order = []
    for case in cases:
        of = json.dumps(case.get("flat", case["op"]), sort_keys=True)
        places[of] = places.get(of, -1) + 1
        order.append((places[of], len(order)))
    return [cases[number] for _, number in sorted(order)]


def choose(cases, arrays, wanted):
    kept, names, size, text = [], set(), 0, 0
    for case in [c for c in cases if c["name"] in wanted] + [c for c in by_turns(cases) if c["name"] not in wanted]:
        fresh = members(case, arrays) - names
        more, line = sum(arrays[name].nbytes + 300 for name in fresh), len(json.dumps(case)) + 2  # a zip member has headers
        if case["name"] not in wanted and (size + more > MOST_BYTES or text + line > MOST_BYTES):
            continue
        kept.append(case["name"])
        names |= fresh
        size, text = size + more, text + line
    return [case for case in cases if case["name"] in kept], names


def shrink(suite, full, data):
    index = json.loads((full / f"{suite}.json").read_text())
    with np.load(full / f"{suite}.npz") as file:
        arrays = {name: sampled(file[name]) if suite in LISTS else file[name] for name in file.files}
    if suite in LISTS:
        reshape(index["cases"], arrays)
    cases, names = choose(index["cases"], arrays, needed(suite))
    index["of"], index["count"] = len(index["cases"]), len(cases)
    head = json.dumps({key: value for key, value in index.items() if key != "cases"})
    lines = ",\n".join(json.dumps(case) for case in cases)
    (data / f"{suite}.json").write_text(f'{head[:-1]}, "cases": [\n{lines}\n]}}\n')
    np.savez(data / f"{suite}.npz", **{name: arrays[name] for name in sorted(names)})
    print(f"{suite:<16} {len(cases):>5} of {index['of']:>5} cases, {(data / f'{suite}.npz').stat().st_size:>8} bytes")


def main():
    full, data = Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else HERE / "data"
    data.mkdir(exist_ok=True)
    for suite in SUITES:
        shrink(suite, full, data)
    for file in full.glob("checkpoint*"):  # they are small
        shutil.copyfile(file, data / file.name)


if __name__ == "__main__":
    main()
