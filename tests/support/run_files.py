"""Writes the files of a synthetic training run: metrics.jsonl and statistics.jsonl. Faults of real runs can be added. Standard library only.

Usage: run_files.py FOLDER [--tensors N] [--steps N] [--every N] [--fault NAME]..."""
import argparse
import json
import math
import random
from pathlib import Path

FORMATS = {"f8_e4m3fn": (448.0, 2.0**-6, 2.0**-9), "f8_e5m2": (57344.0, 2.0**-14, 2.0**-16), "f16": (65504.0, 2.0**-14, 2.0**-24)}
COLLECT = ["amax", "zeros", "saturated", "subnormal", "non_finite", "rms", "histogram"]
FIRST_EXPONENT, BINS = -17, 28
#: fault -> what it does to the sample of a tensor: (layer, direction, role) and the step at which it begins
FAULTS = ["nan", "outlier", "saturation", "checkpoint", "sibling", "underflow", "zero_gradient", "odd_format", "torn", "jump",
          "constant", "growth", "loss_scale"]


def tensors_of(count: int, faults) -> list[dict]:
    """Tensors of layers with four operands each: two of the forward pass, a parameter and a gradient."""
    rows = []
    for index in range(count):
        layer, role = divmod(index, 4)
        name, use, direction = [("h", "dot_general.lhs", "forward"), ("params.layer{}.w", "dot_general.rhs", "forward"),
                                ("params.layer{}.w", "inout argument", "forward"), ("dy", "dot_general.lhs", "backward")][role]  # fmt: skip
        form = "f8_e5m2" if direction == "backward" or ("odd_format" in faults and index == 0) else "f16" if role == 2 else "f8_e4m3fn"
        largest, normal, smallest = FORMATS[form]
        rows.append({"tensor": name.format(layer) if "{}" in name else f"{name}{layer}", "use": use, "operator": "dot_general" if role != 2 else "argument",
                     "format": form, "elements": 4096, "scope": f"block{layer}/attention", "direction": direction, "source": f"model.py:{12 + role}:4 (loss)",
                     "policy": "f8_master.yaml:6", "every": 10, "collect": COLLECT, "first_exponent": FIRST_EXPONENT, "octaves": 1,
                     "largest": largest, "smallest_normal": normal, "smallest": smallest})  # fmt: skip
    return rows


def histogram(amax: float, scale: float, elements: int) -> list[int]:
    """Counts of a normal distribution by exponent of x / scale, roughly."""
    if amax == 0:
        return [0] * BINS
    top = math.log2(amax / scale)
    weights = [math.exp(-0.5 * ((FIRST_EXPONENT - 0.5 + k - top + 2.5) / 2.2) ** 2) for k in range(BINS)]
    total = sum(weights) or 1
    return [round(elements * weight / total) for weight in weights]


class Run:
    """The samples of a run. Each fault begins at step `at`."""

    def __init__(self, tensors, faults, at, seed=0):
        self.tensors, self.faults, self.at, self.random = tensors, set(faults), at, random.Random(seed)
        self.base = [2.0 ** self.random.uniform(-3, 1) * (0.001 if row["direction"] == "backward" else 1) for row in tensors]
        self.frozen = {}

    def sample(self, index: int, step: int) -> tuple:
        row, faults = self.tensors[index], self.faults
        amax = self.base[index] * (1 + 0.1 * self.random.random()) * math.exp(-step / 1e5)
        is_first = index == 1
        if is_first and "outlier" in faults and step == self.at:
            amax *= 1000
        if index == 2 and ("sibling" in faults or ("checkpoint" in faults and step >= self.at)):
            amax *= 1024
        if index == 2 and "jump" in faults and step >= self.at:
            amax *= 1e6
        if index == 3 and "zero_gradient" in faults:
            return 0.0, 1.0, 0, 0, 0, 0, 0.0
        scale = 2.0 ** math.ceil(math.log2(amax / row["largest"]))
        if is_first and "outlier" in faults and step > self.at:  # the history of a delayed scale keeps the outlier
            scale = self.frozen.setdefault(index, 2.0 ** math.ceil(math.log2(1000 * self.base[index] / row["largest"])))
        if index == 2 and "growth" in faults:
            amax *= 2.0 ** (step / 10)
        zeros, saturated = int(row["elements"] * 0.01), 0
        if is_first and "saturation" in faults and step >= self.at:
            scale /= 64
            saturated = row["elements"] // 2
        if index == 3 and "underflow" in faults:
            zeros = int(row["elements"] * 0.8)
        non_finite = 3 if "nan" in faults and step >= self.at and index >= 4 else 0
        return ("inf" if non_finite else amax), scale, zeros, saturated, int(row["elements"] * 0.02), non_finite, 0.25 if index == 2 and "constant" in faults else amax / 4


def write_run(folder, tensors=24, steps=200, every=10, faults=(), at=None, histograms_every=5):
    """Writes a run. A fault begins at step `at`, by default in the middle."""
    folder, at = Path(folder), steps // 2 // every * every if at is None else at
    folder.mkdir(parents=True, exist_ok=True)
    rows, noise = tensors_of(tensors, faults), random.Random(1)
    run = Run(rows, faults, at)
    with open(folder / "metrics.jsonl", "w") as file:
        for step in range(steps):
            loss = 2.3 * math.exp(-step / (steps / 3)) + 0.05 + 0.01 * noise.random()
            if step >= at and {"outlier", "saturation", "checkpoint", "jump"} & set(faults):
                loss = loss * 4 + 1
            is_bad = "nan" in faults and step >= at
            file.write(json.dumps({"step": step, "time": 1764.0 + step,
                                   "loss": "nan" if is_bad else round(loss, 6), "rate": 0.1, "loss_scale": 2.0 ** -(step // 5) if "loss_scale" in faults else 1.0}) + "\n")
    with open(folder / "statistics.jsonl", "w") as file:
        file.write(json.dumps({"scalide": "statistics", "version": 1, "program": "step", "hash": "0", "numerics": "f8_master", "target": "host",
                               "tensors": rows}) + "\n")  # fmt: skip
        for number, step in enumerate(range(0, steps, every)):
            samples = [run.sample(index, step) for index in range(tensors)]
            line = {"step": step, "time": 1764.0 + step}
            for k, name in enumerate(["amax", "scale", "zeros", "saturated", "subnormal", "non_finite", "rms"]):
                line[name] = [round(sample[k], 9) if isinstance(sample[k], float) else sample[k] for sample in samples]
            if number % histograms_every == 0:
                line["histogram"] = [None if sample[5] else histogram(*sample[:2], row["elements"]) for sample, row in zip(samples, rows)]
            file.write(json.dumps(line, separators=(",", ":")) + "\n")
        if "nan" in faults:
            file.write(json.dumps({"step": at, "non_finite": {"tensor": rows[4]["tensor"], "operator": "dot_general", "scope": rows[4]["scope"],
                                                              "source": rows[4]["source"], "index": [3, 2]}}) + "\n")  # fmt: skip
        if "torn" in faults:
            file.write('{"step": 99999, "amax": [0.1, 0.')
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    for name, number in (("tensors", 24), ("steps", 200), ("every", 10)):
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--fault", action="append", default=[], choices=FAULTS)
    options = parser.parse_args()
    print(write_run(options.folder, options.tensors, options.steps, options.every, options.fault))
