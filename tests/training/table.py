#!/usr/bin/env python3
"""Writes the results of the training matrix as Markdown. `./check --slow training` leaves them in build/training/results.jsonl.

Usage: table.py [RESULTS.jsonl] > table.md
"""
import json
import sys
from pathlib import Path


def read(path):
    """The latest row of each cell. If a cell was run with different numbers of steps, the longest run counts."""
    rows = {}
    for row in map(json.loads, Path(path).read_text().splitlines()):
        key = row.get("name") or (row.get("inference", row.get("dsl")), row["policy"])
        if row.get("steps", 0) >= rows.get(key, {}).get("steps", 0):
            rows[key] = row
    return list(rows.values())


def percent(number) -> str:
    return f"{100 * number:.2g} %"


def entry(rows) -> str:
    """The largest deviation of some cells, in bold if a cell failed, or the reason why the build refused a cell."""
    if not rows:
        return ""
    if any(row["refused"] for row in rows):
        return "refused: " + next(row["refused"] for row in rows if row["refused"])
    words = percent(max(row["deviation"] for row in rows))
    return f"**{words}**" if any(row["wrong"] for row in rows) else words


def section(heading, first, rows, title, cell_of):
    """A table with one row per title and one column per policy. Nothing if nothing was run. `first` is the head of the first column."""
    if not rows:
        return
    columns = list(dict.fromkeys(row["policy"] for row in rows))
    yield f"### {heading}\n"
    yield f"| {first} | " + " | ".join(columns) + " |"
    yield "|---|" + "---|" * len(columns)
    for name in dict.fromkeys(title(row) for row in rows):
        cells = [cell_of([row for row in rows if title(row) == name and row["policy"] == policy]) for policy in columns]
        yield f"| {name} | " + " | ".join(cells) + " |"
    yield ""


def sections(rows):
    training, inference = [row for row in rows if "name" in row], [row for row in rows if "inference" in row]
    factors, plain = [row for row in training if row["factors"]], [row for row in training if not row["factors"]]
    fixed, batches = [row for row in plain if row["fixed"]], [row for row in plain if not row["fixed"]]
    depths = [row for row in batches if row["optimizer"] == "sgd" and not row["bias"]]
    others = [row for row in batches if row["optimizer"] != "sgd" or row["bias"]]
    yield from section("SGD, 200 steps", "network, depth",
                       sorted(depths, key=lambda row: (row["model"], row["depth"])), lambda row: f"{row['model']}, {row['depth']}", entry)
    yield from section("Other optimizers, and biases that are not 0: 200 steps at depth 4", "network, optimizer",
                       others, lambda row: f"{row['model']}, {row['optimizer']}{', biases' if row['bias'] else ''}", entry)
    yield from section("One batch: 2,000 steps at depth 4", "network, optimizer", fixed, lambda row: f"{row['model']}, {row['optimizer']}", entry)
    yield from scaled_runs(factors)
    yield from section("C++ DSL: 30 steps of SGD", "network, depth", [row for row in rows if "dsl" in row], lambda row: row["dsl"], entry)
    yield from section("Inference: largest relative error", "layers",
                       inference, lambda row: row["inference"], lambda rows: percent(rows[0]["worst"]) if rows else "")


def scaled_runs(rows):
    """One sentence about the runs with scaled weights and losses, and a list of the cells whose losses differ."""
    if not rows:
        return
    differing = [(row["name"], run) for row in rows for run in row["wrong"] if run.startswith("weight")]
    count = sum(row["factors"] for row in rows)
    yield "### Scaled weights and losses\n"
    yield f"{count - len(differing)} of {count} runs have the same losses as the run without factors, in every digit.\n"
    yield from (f"- {name}: {run} differs" for name, run in differing)
    if differing:
        yield ""


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[2] / "build" / "training" / "results.jsonl"
    print("\n".join(sections(read(path))).rstrip())
