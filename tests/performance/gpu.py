#!/usr/bin/env python3
"""Programs on a device beside their limit: the driver's copy of as many bytes, in the same run, for what memory bounds; the bare call of
cuBLASLt, in the same run, for products; microseconds a step for a chain of small kernels; a transformer layer beside TransformerEngine's.
Each program runs first on the CPU, on the same numbers: a case whose results differ by more than its tolerance is WRONG, is not timed, and
makes the exit status 1. Outputs are NaN before the run.

Usage: gpu.py [--build BUILD] [--target cuda|opencl] [--cuda-arch N] [--shrink N] [--seconds S] [--rival PYTHON] [--json FILE] [NAME ...]
BUILD is the folder that ./check filled (build). --shrink divides sizes, to try this where there is no card. PYTHON is one that has PyTorch
and TransformerEngine (default: python3). NAME: only the cases whose name has it. On OpenCL there is nothing to compare with.
"""
import argparse
import datetime
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import transformer_layer

HERE = Path(__file__).resolve().parent
F8 = "f8_e4m3fn"
E4M3, F16, BF16 = 2**-3, 2**-10, 2**-7  # a step of the format, relative to the number


def convert(value, dtype, name):
    return f"{name} = convert_element_type({value}) {{dtype: {dtype}{', overflow: saturate' if dtype.startswith('f8') else ''}}}"


def memory_cases(rows):
    """(name, share of the copy's speed that is aimed at, largest error, program). Arrays of rows x 4096: a quarter of a gigabyte in bf16."""
    x = f"[{rows}, 4096]"
    yield "convert bf16 to e4m3", 0.85, 0, f"(x: bf16{x}) -> (y: {F8}{x}) {{\n {convert('x', F8, 'y')}\n}}"
    yield "convert f32 to bf16", 0.85, 0, f"(x: f32{x}) -> (y: bf16{x}) {{\n {convert('x', 'bf16', 'y')}\n}}"
    yield "gelu bf16", 0.85, BF16, f"(x: bf16{x}) -> (y: bf16{x}) {{\n y = gelu_tanh(x)\n}}"
    yield "gelu e4m3", 0.85, E4M3, f"(x: {F8}{x}) -> (y: {F8}{x}) {{\n {convert('x', 'f32', 'w')}\n g = gelu_tanh(w)\n {convert('g', F8, 'y')}\n}}"
    yield "softmax bf16", 0.85, BF16, f"(x: bf16{x}) -> (y: bf16{x}) {{\n y = softmax(x) {{axes: [1]}}\n}}"
    yield "layer_norm bf16", 0.85, BF16, f"(x: bf16{x}, g: bf16[4096], b: bf16[4096]) -> (y: bf16{x}) {{\n y = layer_norm(x, g, b)\n}}"
    yield "layer_norm gradient bf16", 0.85, 2 * BF16, (f"layer(x: bf16{x}, g: bf16[4096], b: bf16[4096], ct: bf16{x}) -> (loss: f32[]) {{\n y = layer_norm(x, g, b)\n t = mul(y, ct)\n"
                                             f" w = convert_element_type(t) {{dtype: f32}}\n loss = reduce_sum(w) {{axes: [0, 1]}}\n}}\nprogram p(x: bf16{x}, g: bf16[4096], b: bf16[4096],"
                                             f" ct: bf16{x}) -> (dx: bf16{x}, dg: bf16[4096], db: bf16[4096]) {{\n dx, dg, db = grad(x, g, b, ct) {{program: layer, wrt: [x, g, b]}}\n}}")  # fmt: skip
    yield "adam f32", 0.85, 1e-5, (f"(w: f32{x} inout, m: f32{x} inout, v: f32{x} inout, g: f32{x}) -> (w = w2, m = m2, v = v2) {{\n a = mul(m, 0.9)\n b = mul(g, 0.1)\n"
                             " m2 = add(a, b)\n s = mul(g, g)\n c = mul(v, 0.999)\n d = mul(s, 0.001)\n v2 = add(c, d)\n r = sqrt(v2)\n e = add(r, 1e-8)\n"
                             " q = div(m2, e)\n u = mul(q, 0.001)\n w2 = sub(w, u)\n}")  # fmt: skip
    yield "convert and transpose bf16 to e4m3", 0.70, 0, (f"(x: bf16{x}) -> (y: {F8}{x}, t: {F8}[4096, {rows}]) {{\n {convert('x', F8, 'y')}\n"
                                                       " t = transpose(y) {permutation: [1, 0]}\n}")  # fmt: skip
    yield "sum of columns f32", 0.85, 1e-4, f"(x: f32{x}) -> (y: f32[4096]) {{\n y = reduce_sum(x) {{axes: [0]}}\n}}"
    yield "largest magnitude bf16", 0.85, 0, f"(x: bf16{x}) -> (y: bf16[]) {{\n a = abs(x)\n y = reduce_max(a) {{axes: [0, 1]}}\n}}"


def product_cases(sizes):
    """(name, operations, largest error, program, operands and result of the bare call)."""
    for dtype, out, error in ((F8, "bf16", BF16), (F8, F8, E4M3), ("bf16", "bf16", BF16), ("f16", "f16", F16), ("f32", "f32", 1e-4)):
        for n in sizes:
            a = f"[{n}, {n}]"
            yield f"{dtype} to {out} {n}^3", 2 * n**3, error, (f"(x: {dtype}{a}, w: {dtype}{a}) -> (y: {out}{a}) {{\n {convert('x', 'f32', 'a')}\n {convert('w', 'f32', 'b')}\n"
                                                        f" s = dot_general(a, b) {{contract: [[1], [1]]}}\n {convert('s', out, 'y')}\n}}"), [dtype, dtype, out, n, n, n]  # fmt: skip


def chain(links):
    """Small kernels, each of which waits for the previous one."""
    body = "".join(f" t{i} = reduce_sum(h{i}) {{axes: [0]}}\n r{i} = broadcast_in_dim(t{i}) {{shape: [256], dims: []}}\n h{i + 1} = mul(h{i}, r{i})\n" for i in range(links))
    return f"(h0: f32[256]) -> (y: f32[256] = h{links}) {{\n{body}}}"


def run(command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode:
        raise SystemExit(f"{Path(command[0]).name}: {result.stderr.strip()}")
    return result.stdout


def build(options, scratch, program, target, numerics="f32", name="p"):
    """Returns the library of a program."""
    folder = scratch / target
    folder.mkdir(exist_ok=True)
    (scratch / "p.scl").write_text(program)
    cards = ["--cuda-arch", options.cuda_arch] if target == "cuda" and options.cuda_arch else []
    run([options.build / "generators/scalide", "build", scratch / "p.scl", "--name", name, "--numerics", numerics, "--output", folder, "--shared", "--target", target, *cards])
    return folder / f"lib{name}.so"


def measure(options, scratch, program, bare=(), numerics="f32", name="p", nonnegative=(), error=None, seconds=None):
    """Returns what run_on_device prints. With `error`, the program runs on the CPU, too, and results that differ by more are wrong."""
    library = build(options, scratch, program, options.target, numerics, name)
    check = [] if error is None else ["--check", build(options, scratch, program, "host", numerics, name)]
    words = [*check, *(["--nonnegative", nonnegative] if nonnegative else []), *(["--bare", *bare] if bare else [])]
    line = json.loads(run([options.build / "tests/performance/run_on_device", library, name, options.seconds if seconds is None else seconds, *words]))
    return {**line, "wrong": error is not None and line["error"] > error, "tolerance": error}


def time_rival(options):
    """Returns the milliseconds of TransformerEngine's layer, or None and the reason if it does not run."""
    found = subprocess.run([options.rival, HERE / "transformer_layer.py", "--rival"], capture_output=True, text=True)
    if found.returncode:
        print(f"TransformerEngine's layer: {(found.stderr.strip().splitlines() or ['no words'])[-1]}")
        return None
    return json.loads(found.stdout.splitlines()[-1])["ms"]


def rows(options, scratch):
    """Rows of the table, as they are measured."""
    wanted = lambda name: not options.names or any(word in name for word in options.names)  # noqa: E731
    for name, aim, error, program in memory_cases(max(1, 32768 // options.shrink)):
        if wanted(name):
            text = f"program {program if program.startswith('layer') else 'p' + program}\n"
            line = measure(options, scratch, text, nonnegative="v" if "adam" in name else "", error=error)  # second moments are sums of squares
            share = line["copy_ms"] / line["ms"] if "copy_ms" in line else None
            yield {"case": name, "value": line["bytes"] / line["ms"] / 1e6, "unit": "GB/s", "share": share, "aim": aim, **line}
    for name, operations, error, program, bare in product_cases(sorted({max(256, n // options.shrink) for n in (4096, 8192)})):
        if wanted(name):
            line = measure(options, scratch, f"program p{program}\n", bare if options.target == "cuda" else (), error=error)
            share = line["bare_ms"] / line["ms"] if "bare_ms" in line else None
            yield {"case": name, "value": operations / line["ms"] / 1e9, "unit": "TFLOP/s", "share": share, "aim": 0.99, **line}
    if wanted("gap: one more small step"):
        few, many = (measure(options, scratch, f"program p{chain(links)}\n", error=1e-4) for links in (4, 36))
        steps = len(many["steps"]) - len(few["steps"])
        yield {"case": "gap: one more small step", "value": 1e3 * (many["ms"] - few["ms"]) / steps, "unit": "us", "aim": 2, **many}
    if wanted("transformer layer"):
        layer = {"numerics": HERE / "transformer_layer.yaml", "name": "step"}
        # Of the layer, a small one is checked: the CPU would take minutes. f8 operands that round to the other side change its gradients.
        checked = measure(options, scratch, transformer_layer.program(max(16, options.shrink)), error=0.5, seconds=0, **layer)
        line = measure(options, scratch, transformer_layer.program(options.shrink), **layer) | {key: checked[key] for key in ("error", "wrong", "tolerance")}
        rival = time_rival(options) if options.target == "cuda" else None
        yield {"case": "transformer layer, f8", "value": line["ms"], "unit": "ms", "share": rival and rival / line["ms"], "rival_ms": rival, "aim": 28, **line}


def add_options(parser):
    parser.add_argument("--build", type=Path, default=HERE.parents[1] / "build")
    parser.add_argument("--target", choices=["cuda", "opencl"], default="cuda")
    parser.add_argument("--cuda-arch", help="compute capability to build for, such as 90 (default: all)")
    parser.add_argument("--shrink", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("names", nargs="*")


def device_of(options):
    """Returns the device and the date. Exits with a message if there is no device."""
    found = subprocess.run([options.build / "generators/scalide", "devices", options.target], capture_output=True, text=True)
    if found.returncode:
        sys.exit(f"no card: {found.stderr.strip()}")
    return f"{found.stdout.strip()}, {datetime.date.today()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    parser.add_argument("--rival", default="python3")
    options = parser.parse_args()
    device = device_of(options)
    print(f"{device}\n{'case':<36} {'speed':>10} {'':<8} {'of rival':>8} {'aim':>5}  by")
    table = []
    with tempfile.TemporaryDirectory() as scratch:
        for row in rows(options, Path(scratch)):
            table.append(row)
            if row["wrong"]:
                print(f"{row['case']:<36} WRONG: the largest error is {row['error']:.3g}, allowed is {row['tolerance']:.3g}", flush=True)
                continue
            share = f"{row['share']:.3f}" if row.get("share") else ""
            by = ", ".join(sorted({step["library"] or "kernel" for step in row["steps"]}))
            print(f"{row['case']:<36} {row['value']:>10.2f} {row['unit']:<8} {share:>8} {row.get('aim', ''):>5}  {by}", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"device": device, "rows": table}, indent=1) + "\n")
    return any(row["wrong"] for row in table)


if __name__ == "__main__":
    sys.exit(main())
