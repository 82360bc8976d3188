#!/usr/bin/env python3
"""Matmuls and convolutions with constant weights, compared with the same programs with ordinary inputs, and with torch, which packs weights for
oneDNN before the measurement.

Usage: constant_weights.py [--build BUILD] [--torch PYTHON] [--threads N] [--seconds S] [--rounds N] [--json FILE] [NAME ...]
BUILD is the folder that ./check filled (build). --torch: a Python that has torch; without it there is no rival. NAME: only the rows whose name
contains it. All run in turns on the same threads. `gain`: time with ordinary inputs divided by time with constants. `ratio`: time of torch
divided by time with constants. Rivals: f32 and bf16 by mkldnn._linear_pointwise or mkldnn._convolution_pointwise with packed weights, i8 by
onednn.qlinear_pointwise; formats with 8-bit floats and f32 sums have no rival in torch on a CPU.
"""
import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROWS = (1, 8, 64, 256)
POLICIES = ("f32", "bf16", "f8_weights", "f8_master", "mxfp8")
CONVOLUTIONS = {"stage1": (56, 64, 64, 3), "stage4": (7, 512, 512, 3), "stage4_first": (7, 2048, 512, 1)}

DOT = """program {name} (x: {x}[{m}, {k}], w: {w}[{k}, {n}]{role}) -> (y: {y}[{m}, {n}]) {{
  y = dot_general(x, w) {{contract: [[1], [0]], preferred: {y}}}
}}
"""
CONVOLUTION = """program {name} (x: f32[1, {size}, {size}, {inputs}], w: f32[{window}, {window}, {inputs}, {outputs}]{role}) -> (y: f32[1, {size}, {size}, {outputs}]) {{
  y = conv_general_dilated(x, w) {{low: [{pad}, {pad}], high: [{pad}, {pad}], lhs_spec: [0, 3, 1, 2], rhs_spec: [3, 2, 0, 1], out_spec: [0, 3, 1, 2]}}
}}
"""
class Ours:
    def __init__(self, arguments, folder, text, name, policy):
        self.arguments, self.name, self.folder = arguments, name, folder / name
        self.folder.mkdir()
        source = self.folder / f"{name}.scl"
        source.write_text(text)
        subprocess.run([arguments.build / "generators/scalide", "build", source, "-n", policy, "--shared", "-o", self.folder], check=True, stdout=subprocess.DEVNULL)

    def microseconds(self):
        command = [self.arguments.build / "tests/performance/run_program", self.folder / f"lib{self.name}.so", self.name, str(self.arguments.threads), str(self.arguments.seconds)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return 1e3 * next(value for key, value in json.loads(printed.splitlines()[-1]).items() if "min" in key)


class Rival:
    def __init__(self, arguments):
        self.seconds = arguments.seconds
        self.process = arguments.torch and subprocess.Popen([arguments.torch, HERE / "constant_weights_torch.py", str(arguments.threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def microseconds(self, kind, dtype, numbers):
        if not self.process or dtype not in ("f32", "bf16", "i8"):
            return None
        self.process.stdin.write(f"{kind} {dtype} {self.seconds} {' '.join(map(str, numbers))}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())


def cases(size):
    """Yields a name, the policy, the text of the program without name and role, and the line of the rival."""
    for policy in (*POLICIES, "i8"):
        x, y = ("u8", "i32") if policy == "i8" else ("f32", "f32")
        for m in ROWS:
            text = DOT.format(name="{name}", role="{role}", x=x, w="i8" if policy == "i8" else "f32", y=y, m=m, k=size, n=size)
            yield f"dot {policy} m={m}", "f32" if policy == "i8" else policy, text, ("dot", policy, (m, size, size))
    for policy in ("f32", "bf16"):
        for name, (pixels, inputs, outputs, window) in CONVOLUTIONS.items():
            text = CONVOLUTION.format(name="{name}", role="{role}", size=pixels, inputs=inputs, outputs=outputs, window=window, pad=window // 2)
            yield f"conv {policy} {name}", policy, text, ("conv", policy, (pixels, inputs, outputs, window))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build")
    parser.add_argument("--torch")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--size", type=int, default=1024, help="rows and columns of the weights of matmuls")
    parser.add_argument("--json", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    rival, rows = Rival(arguments), []
    print(f"{'case':<24} {'input us':>10} {'constant us':>12} {'gain':>6} {'torch us':>10} {'ratio':>6}")
    with tempfile.TemporaryDirectory(prefix="scalide-performance-") as folder:
        for number, (name, policy, text, line) in enumerate(cases(arguments.size)):
            if arguments.names and not any(word in name for word in arguments.names):
                continue
            ours = [Ours(arguments, Path(folder), text.replace("{name}", f"{kind}_{number}").replace("{role}", role), f"{kind}_{number}", policy) for kind, role in (("plain", ""), ("constant", " constant"))]
            times = [(ours[0].microseconds(), ours[1].microseconds(), rival.microseconds(*line)) for _ in range(arguments.rounds)]
            plain, constant = (min(column) for column in list(zip(*times))[:2])
            other = None if times[0][2] is None else min(time[2] for time in times)
            rows.append({"case": name, "input_us": plain, "constant_us": constant, "torch_us": other})
            end = "" if other is None else f" {other:>10.1f} {other / constant:>6.2f}"
            print(f"{name:<24} {plain:>10.1f} {constant:>12.1f} {plain / constant:>6.2f}{end}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
