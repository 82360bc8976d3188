#!/usr/bin/env python3
"""Writes the matrix as markdown: what `./check --slow training` has left in build/training/results.jsonl.

Usage: table.py [RESULTS.jsonl] > table.md
"""
import json
import sys
from pathlib import Path


def read(path):
    """The latest row of each cell; of runs of different length the longer."""
    rows = {}
    for row in map(json.loads, Path(path).read_text().splitlines()):
        key = row.get("name") or (row.get("inference", row.get("dsl")), row["policy"])
        if row.get("steps", 0) >= rows.get(key, {}).get("steps", 0):
            rows[key] = row
    return list(rows.values())


def percent(number) -> str:
    return f"{100 * number:.2g} %"


def entry(rows) -> str:
    """The largest deviation of some cells, or what is wrong."""
    if not rows:
        return ""
    if any(row["refused"] for row in rows):
        return "refused: " + next(row["refused"] for row in rows if row["refused"])
    words = percent(max(row["deviation"] for row in rows))
    return f"**{words}**" if any(row["wrong"] for row in rows) else words


def section(heading, rows, title, cell_of):
    """A table with a row for each title and a column for each policy; nothing where nothing was run."""
    if not rows:
        return
    columns = list(dict.fromkeys(row["policy"] for row in rows))
    yield heading + ":\n"
    yield "| | " + " | ".join(columns) + " |"
    yield "|---|" + "---|" * len(columns)
    for name in dict.fromkeys(title(row) for row in rows):
        cells = [cell_of([row for row in rows if title(row) == name and row["policy"] == policy]) for policy in columns]
        yield f"| {name} | " + " | ".join(cells) + " |"
    yield ""


def sections(rows):
    training, inference = [row for row in rows if "name" in row], [row for row in rows if "inference" in row]
    depths = [row for row in training if row["optimizer"] == "sgd" and not row["bias"] and not row["factors"] and not row["fixed"]]
    others = [row for row in training if (row["optimizer"] != "sgd" or row["bias"] or row["fixed"]) and not row["factors"]]
    factors = [row for row in training if row["factors"]]
    yield from section("The largest deviation of the loss from that of f32 in 200 steps of SGD, of both forms",
                       sorted(depths, key=lambda row: (row["model"], row["depth"])), lambda row: f"{row['model']}, {row['depth']}", entry)
    yield from section("Other optimizers, and biases that are not 0, at depth 4",
                       others, lambda row: f"{row['model']}, {row['optimizer']}{', biases' if row['bias'] else ', one batch' if row['fixed'] else ''}", entry)
    yield from section("Runs with weights times 2^-24 to 2^24, and losses times 2^-24 to 2^24, whose losses differ in a digit (of all such runs)",
                       factors, lambda row: f"{row['model']}, {row['optimizer']}", differing)
    yield from section("The step that a generator in C++ made, 30 steps of SGD", [row for row in rows if "dsl" in row], lambda row: row["dsl"], entry)
    yield from section("Inference: the largest relative error over weights of deviation 1e-8 to 1e+8",
                       inference, lambda row: f"{row['inference']} layers", lambda rows: percent(rows[0]["worst"]) if rows else "")


def differing(rows) -> str:
    """How many runs with factors are not the run without."""
    return f"{sum(run.startswith('weight') for row in rows for run in row['wrong'])} of {sum(row['factors'] for row in rows)}" if rows else ""


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2] / "build" / "training" / "results.jsonl"
    print("\n".join(sections(read(path))).rstrip())
