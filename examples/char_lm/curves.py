#!/usr/bin/env python3
"""Draws the held-out losses of several runs, and their differences from the first one, as an SVG picture.

Usage: curves.py FOLDER... > curves.svg
A FOLDER is the --folder of a run. Its last part is the label of the curve. Folders that differ in a number at the end, such as f32.1 and
f32.2, are one curve: the mean.
"""
import json
import sys
from pathlib import Path

WIDTH, LEFT, RIGHT, PANELS = 660, 52, 540, ((34, 230), (274, 430))  # x of the axes; y of the two panels
COLORS = {"f32": "#1c2330", "bf16": "#1f5fa8", "f16": "#1f5fa8", "amp": "#1f5fa8", "state8": "#27734a"}  # by the start of the label
OTHER = "#a04a00"  # f8 and mxfp8


def held_out(folder: Path):
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return {line["step"] + 1: line["held_out"] for line in lines if "held_out" in line}


def read(folders):
    """The mean curve of each label."""
    runs: dict = {}
    for folder in folders:
        runs.setdefault(folder.name.rstrip("0123456789").rstrip(".") if "." in folder.name else folder.name, []).append(held_out(folder))
    return {label: {step: sum(run[step] for run in same) / len(same) for step in same[0]} for label, same in runs.items()}


def color(label):
    return next((COLORS[start] for start in COLORS if label.startswith(start)), OTHER)


class Panel:
    def __init__(self, top, bottom, values, steps):
        self.top, self.bottom, self.low, self.high, self.steps = top, bottom, min(values), max(values), steps

    def x(self, step):
        return LEFT + (RIGHT - LEFT) * step / self.steps

    def y(self, value):
        return self.bottom - (self.bottom - self.top) * (value - self.low) / (self.high - self.low)

    def axes(self, title, digits):
        yield f'<text x="{LEFT}" y="{self.top - 12}">{title}</text>'
        yield f'<path class="line" d="M{LEFT} {self.top}V{self.bottom}H{RIGHT}"/>'
        for i in range(5):
            value = self.low + (self.high - self.low) * i / 4
            yield f'<text class="small end" x="{LEFT - 6}" y="{self.y(value) + 4:.1f}">{value:.{digits}f}</text>'
        for step in range(0, self.steps + 1, max(1, self.steps // 4)):
            yield f'<text class="small middle" x="{self.x(step):.1f}" y="{self.bottom + 16}">{step}</text>'

    def curve(self, label, points):
        path = " ".join(f"{self.x(step):.1f},{self.y(value):.1f}" for step, value in points.items())
        yield f'<polyline fill="none" class="curve {label}" stroke="{color(label)}" points="{path}"/>'


def labels(panel, curves):
    """The name of each curve at its end, without overlaps."""
    place = min(panel.y(list(points.values())[-1]) for points in curves.values())
    place = min(place, panel.bottom + 24 - 12 * (len(curves) - 1)) - 12
    for label, points in sorted(curves.items(), key=lambda item: panel.y(list(item[1].values())[-1])):
        end = panel.y(list(points.values())[-1])
        place += 12
        yield f'<path class="line" d="M{RIGHT} {end:.1f}L{RIGHT + 12} {place:.1f}"/>'
        yield f'<text class="small" fill="{color(label)}" x="{RIGHT + 16}" y="{place + 4:.1f}">{label}</text>'


def picture(curves):
    first, steps = next(iter(curves.values())), max(next(iter(curves.values())))
    late = {label: {step: value - first[step] for step, value in points.items()} for label, points in curves.items()}
    top = Panel(*PANELS[0], [value for points in curves.values() for value in points.values()], steps)
    bottom = Panel(*PANELS[1], [value for points in late.values() for step, value in points.items() if step > steps / 4] + [-0.02, 0.02], steps)
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} 470" role="img" aria-labelledby="title">'
    yield '<title id="title">Held-out loss of each policy, and its difference from f32</title>'
    yield "<style>text { font-family: sans-serif; font-size: 14px; } .small { font-size: 11px; } .middle { text-anchor: middle; }"
    yield ".end { text-anchor: end; } .line { stroke: #8a93a3; fill: none; } .curve { stroke-width: 1.2; }</style>"
    yield f'<rect x="1" y="1" width="{WIDTH - 2}" height="468" rx="8" fill="#ffffff" stroke="#c8ccd4"/>'
    for panel, title, digits, data in ((top, "held-out loss", 2, curves), (bottom, "difference from " + next(iter(curves)), 3, late)):
        yield from panel.axes(title, digits)
        for label, points in data.items():
            yield from panel.curve(label, {step: value for step, value in points.items() if panel.low <= value <= panel.high})
    yield from labels(bottom, late)
    yield "</svg>"


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    print("\n".join(picture(read([Path(folder) for folder in sys.argv[1:]]))))


if __name__ == "__main__":
    main()
