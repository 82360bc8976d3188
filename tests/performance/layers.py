#!/usr/bin/env python3
"""The layers of ResNet-50, BERT-base and a Llama decoder as kernel libraries (libraries/*.yaml): checked against NumPy in float64, and timed
beside oneDNN and torch.

Usage: layers.py [--build BUILD] [--library NAME ...] [--check] [--torch PYTHON] [--onednn PROGRAM] [--threads N] [--seconds S] [--rounds N]
                 [--json FILE] [KERNEL ...]
BUILD is the folder that ./check filled (build). --check: compares each element with float64 at small sizes, and times nothing; it needs the
Python of the package scalide (build/venv/bin/python). --torch: a Python that has torch. --onednn: the program that onednn_layers.cpp becomes.
The programs take turns, each with N threads on the first N cores. KERNEL: only kernels whose name contains this text.
"""
import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import yaml
from layer_operators import NumpyOperators, evaluate

HERE = Path(__file__).resolve().parent
# Values of the symbols. Kernels with other symbols are left out.
CHECKED = {"resnet50": [{"b": 1}], "bert_base": [{"b": 2, "s": 5, "m": 10}], "llama": [{"m": 7, "n": 9}, {"m": 1, "n": 9}]}
TIMED = {"resnet50": [{"b": 1}, {"b": 16}], "bert_base": [{"b": 1, "s": 128, "m": 128}, {"b": 8, "s": 128, "m": 1024}], "llama": [{"m": 256, "n": 512}]}
# The largest error of an element, divided by the largest magnitude of the result.
ALLOWED = {"f32": 1e-5, "bf16": 2e-2, "f8_weights": 6e-2}


def kernels_of(library):
    """Returns the kernels of a library. Each kernel has `ops`, `attributes`, `numerics` and a dtype for each operand."""
    text = yaml.safe_load((HERE / "libraries" / f"{library}.yaml").read_text())
    for kernel in text["kernels"]:
        kernel.setdefault("ops", [kernel.pop("op", None)])
        kernel.setdefault("attributes", {})
        kernel.setdefault("numerics", "f32")
        dtypes = kernel.get("dtypes", "f32")
        kernel["dtypes"] = {name: dtypes if isinstance(dtypes, str) else dtypes.get(name, "f32") for name in kernel["shapes"]}
    return text["kernels"]


def symbols_of(kernel):
    return {extent for shape in kernel["shapes"].values() for extent in shape if isinstance(extent, str)}


def at_size(kernel, values):
    """Returns the kernel with numbers for its symbols, or None if there is a symbol without a value."""
    if not symbols_of(kernel) <= set(values):
        return None
    return {**kernel, "shapes": {name: [values.get(extent, extent) for extent in shape] for name, shape in kernel["shapes"].items()}}


def format_of(kernel):
    return kernel["numerics"] if kernel["numerics"] != "f32" else "bf16" if "bf16" in kernel["dtypes"].values() else "f32"


def sizes_of(library, sizes, kernel):
    """Yields the sizes of a kernel, without repetitions."""
    seen = []
    for values in sizes[library]:
        mine = {symbol: values[symbol] for symbol in sorted(symbols_of(kernel)) if symbol in values}
        if symbols_of(kernel) <= set(values) and mine not in seen:
            seen.append(mine)
            yield mine


def build(arguments, library):
    """Makes the shared library of a list of kernels, and returns its path."""
    folder = arguments.build / "performance" / "layers"
    command = [arguments.build / "generators/scalide", "build", "--operators", HERE / "libraries" / f"{library}.yaml"]
    subprocess.run([*command, "--name", library, "--output", folder, "--shared"], check=True, stdout=subprocess.DEVNULL)
    return folder / f"lib{library}.so"


def check(path, library, kernels):
    """Compares each element with float64. Returns the number of kernels that are wrong."""
    import ml_dtypes
    import numpy as np
    import scalide

    types = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "i32": np.int32}
    random, wrong = np.random.default_rng(1), 0
    for kernel in kernels:
        call = scalide.Library(path, name=f"{library}_{kernel['name']}")
        for values in sizes_of(library, CHECKED, kernel):
            arrays = {}
            for name, shape in at_size(kernel, values)["shapes"].items():
                dtype = kernel["dtypes"][name]
                numbers = random.integers(0, 9, shape) if dtype == "i32" else random.uniform(-1, 1, shape)
                arrays[name] = numbers.astype(types[dtype])
            if kernel["numerics"] == "f8_weights":
                arrays["w"] = arrays["w"].astype(ml_dtypes.float8_e4m3fn)
            exact = {name: array if array.dtype == np.int32 else array.astype(np.float64) for name, array in arrays.items()}
            expected = evaluate(kernel, exact, NumpyOperators())
            given = [scalide.ScaledArray(array, np.float32(1)) if array.dtype == ml_dtypes.float8_e4m3fn else array for array in arrays.values()]
            got = np.asarray(call(*given)).astype(np.float64)
            error = np.abs(got - expected).max() / np.abs(expected).max() if got.shape == expected.shape else math.inf
            good = error <= ALLOWED[format_of(kernel)]
            wrong += not good
            print(f"{library} {kernel['name']} {values}: error {error:.1e}{'' if good else ', WRONG'}")
    return wrong


class Rival:
    """A program that reads a layer and answers with milliseconds."""

    def __init__(self, command, threads, line_of):
        environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**35), "MALLOC_TOP_PAD_": str(2**28)}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        self.line_of = line_of

    def time(self, kernel, seconds):
        line = self.line_of(kernel, seconds)
        if line is None:
            return math.inf
        print(line, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().strip()
        return math.inf if answer == "none" else float(answer)


def torch_line(kernel, seconds):
    names = ("ops", "shapes", "dtypes", "attributes")
    return json.dumps({**{name: kernel[name] for name in names}, "seconds": seconds})


def onednn_line(kernel, seconds):
    """Returns the line of onednn_layers, or None for a kernel that is neither a convolution nor a matmul with the operators that oneDNN joins."""
    first, *after = kernel["ops"]
    if first not in ("conv_general_dilated", "dot") or not set(after) <= {"bias", "add", "mul", "relu", "gelu", "silu"}:
        return None
    (x, w), dtype = list(kernel["shapes"].values())[:2], format_of(kernel)
    window = [w[0], kernel["attributes"].get("strides", [1])[0]] if first != "dot" else []
    numbers = [*x, w[-1], *window]
    words = ["conv" if window else "dot", seconds, "f32" if dtype == "f32" else "bf16", *numbers, *(op for op in after if op != "bias")]
    return " ".join(map(str, words))


def time_ours(arguments, path, name, values, seconds):
    command = [arguments.build / "tests/performance/run_program", path, name, str(arguments.threads), str(seconds), *(f"{symbol}={value}" for symbol, value in values.items())]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[0])["ms_min"]


def measure(arguments, libraries, rivals):
    rows = []
    for library, (path, kernels) in libraries.items():
        for kernel in kernels:
            for values in sizes_of(library, TIMED, kernel):
                sized = at_size(kernel, values)
                # No CPU rival multiplies f8. They get bf16.
                sized = sized if kernel["numerics"] == "f32" else {**sized, "dtypes": dict.fromkeys(sized["dtypes"], "bf16")}
                times = {"scalide": math.inf, **dict.fromkeys(rivals, math.inf)}
                for _ in range(arguments.rounds):
                    times["scalide"] = min(times["scalide"], time_ours(arguments, path, f"{library}_{kernel['name']}", values, arguments.seconds))
                    for name, rival in rivals.items():
                        times[name] = min(times[name], rival.time(sized, arguments.seconds))
                best = min([times[name] for name in rivals], default=math.inf)
                rows.append({"library": library, "kernel": kernel["name"], "sizes": values, **times, "ratio": best / times["scalide"]})
                print_row(rows[-1], rivals)
    return rows


def print_row(row, rivals):
    sizes = " ".join(f"{symbol}={value}" for symbol, value in row["sizes"].items())
    others = "".join(f"{row[name]:>10.4f}" if row[name] < math.inf else f"{'-':>10}" for name in rivals)
    print(f"{row['library']:<10} {row['kernel']:<24} {sizes:<14} {row['scalide']:>10.4f}{others} {row['ratio']:>7.2f}", flush=True)


def geometric_mean(rows):
    return math.exp(sum(math.log(row["ratio"]) for row in rows) / len(rows))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build")
    parser.add_argument("--library", nargs="+", default=list(TIMED), choices=list(TIMED))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--torch", type=Path)
    parser.add_argument("--onednn", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=0.1, help="of one turn of one program")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("names", nargs="*", default=[""])
    arguments = parser.parse_args()
    libraries = {}
    for library in arguments.library:
        kernels = [kernel for kernel in kernels_of(library) if any(name in kernel["name"] for name in arguments.names)]
        libraries[library] = (build(arguments, library), kernels)
    if arguments.check:
        wrong = sum(check(path, library, kernels) for library, (path, kernels) in libraries.items())
        sys.exit(f"{wrong} results are wrong" if wrong else None)
    os.sched_setaffinity(0, range(arguments.threads))
    rivals = {}
    if arguments.onednn:
        rivals["onednn"] = Rival([arguments.onednn], arguments.threads, onednn_line)
    if arguments.torch:
        rivals["torch"] = Rival([arguments.torch, HERE / "layers_torch.py", str(arguments.threads)], arguments.threads, torch_line)
    print(f"{'library':<10} {'kernel':<24} {'sizes':<14} {'scalide':>10}{''.join(f'{name:>10}' for name in rivals)} {'ratio':>7}   (ms; ratio to the faster rival)")
    rows = measure(arguments, libraries, rivals)
    if rivals:
        for library in libraries:
            mine = [row for row in rows if row["library"] == library]
            print(f"{library}: geometric mean {geometric_mean(mine):.2f}, {sum(row['ratio'] < 0.7 for row in mine)} of {len(mine)} below 0.7")
        print(f"all: geometric mean {geometric_mean(rows):.2f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
