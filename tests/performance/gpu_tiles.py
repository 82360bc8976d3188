#!/usr/bin/env python3
"""Tile numbers of the schedules for GPUs, each tried alone on programs that it decides for: milliseconds by value, beside the driver's copy of
as many bytes. What is best goes into schedules/tiles.yaml, with the device and the date.

Usage: gpu_tiles.py [--build BUILD] [--target cuda|opencl] [--shrink N] [--seconds S] [--json FILE] [KIND ...]
As gpu.py; KIND: only sweeps of these kinds of kernels.
"""
import argparse
import json
import os
import re
import sys
import tempfile
from pathlib import Path

import gpu

TILES = gpu.HERE.parents[1] / "schedules" / "tiles.yaml"
F8 = gpu.F8


def softmax(rows, columns):
    x = f"[{rows}, {columns}]"
    return f"program p(x: bf16{x}) -> (y: bf16{x}) {{\n y = softmax(x) {{axes: [1]}}\n}}\n"


def sweeps(rows):
    """(kind, tile, values, what is measured, program); the values of tiles.yaml are among them. Arrays of a quarter of a gigabyte in bf16."""
    x = f"[{rows}, 4096]"
    convert = f"program p(x: bf16{x}) -> (y: {F8}{x}) {{\n {gpu.convert('x', F8, 'y')}\n}}\n"
    gelu = f"program p(x: bf16{x}) -> (y: bf16{x}) {{\n y = gelu_tanh(x)\n}}\n"
    yield "map", "threads", (64, 128, 256, 512, 1024), "convert", convert
    yield "map", "cost", (16, 32, 64, 128, 256, 512), "gelu", gelu
    for columns in (2048, 4096):  # threads_columns, or threads, make a row; up to 1024 columns a warp does (lower/rows/row.cpp)
        yield "row", "columns", (1024, 2 * columns), f"softmax of {columns}", softmax(rows * 4096 // columns, columns)
    yield "row", "warps", (1, 2, 4, 8), "softmax of 512", softmax(rows * 8, 512)
    for columns in (2048, 4096, 16384):
        yield "row", "threads_columns", (64, 128, 256, 512, 1024), f"softmax of {columns}", softmax(max(1, rows * 4096 // columns), columns)
    yield "column", "threads", (32, 64, 128, 256), "sum of columns", f"program p(x: f32{x}) -> (y: f32[4096]) {{\n y = reduce_sum(x) {{axes: [0]}}\n}}\n"
    yield "transpose", "side", (16, 32, 64), "transpose", f"program p(x: bf16{x}) -> (y: bf16[4096, {rows}]) {{\n y = transpose(x) {{permutation: [1, 0]}}\n}}\n"
    both = f"program p(x: bf16{x}) -> (y: {F8}{x}, t: {F8}[4096, {rows}]) {{\n {gpu.convert('x', F8, 'y')}\n t = transpose(y) {{permutation: [1, 0]}}\n}}\n"
    yield "tiled", "threads", (128, 256, 512), "convert and transpose", both


def table_with(kind, tile, value):
    """Returns tiles.yaml with one number changed in the last entry of a GPU kernel class."""
    text = TILES.read_text()
    rows = list(re.finditer(rf"^- kind: {kind}\n  gpu: true\n(?:  (?!tiles).*\n)*  tiles: {{.*}}", text, re.MULTILINE))
    if not rows or not re.search(rf"\b{tile}: \d+", rows[-1][0]):
        raise SystemExit(f"tiles.yaml: the row of {kind} for GPUs must have {tile}")
    return text[: rows[-1].start()] + re.sub(rf"\b{tile}: \d+", f"{tile}: {value}", rows[-1][0]) + text[rows[-1].end() :]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    gpu.add_options(parser)
    options = parser.parse_args()
    device = gpu.device_of(options)
    print(f"{device}\n{'kind':<10} {'tile':<16} {'value':>6}  {'program':<24} {'ms':>9} {'of copy':>8}")
    lines = []
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["SCALIDE_TILES"] = table = str(Path(scratch) / "tiles.yaml")
        for kind, tile, values, name, program in sweeps(max(1, 32768 // options.shrink)):
            if options.names and kind not in options.names:
                continue
            for value in values:
                Path(table).write_text(table_with(kind, tile, value))
                line = gpu.measure(options, Path(scratch), program)
                share = f"{line['copy_ms'] / line['ms']:.3f}" if "copy_ms" in line else ""
                print(f"{kind:<10} {tile:<16} {value:>6}  {name:<24} {line['ms']:>9.4f} {share:>8}", flush=True)
                lines.append({"kind": kind, "tile": tile, "value": value, "program": name, "ms": line["ms"], "copy_ms": line.get("copy_ms")})
    if options.json:
        options.json.write_text(json.dumps({"device": device, "rows": lines}, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
