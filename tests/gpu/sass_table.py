#!/usr/bin/env python3
"""Instructions of the kernels of the GPU benchmark, from the machine code (SASS) that ptxas makes, and the share of a copy's speed that they
allow. No GPU is needed. Compares the table with sass.golden or sass_layer.golden, which belong to one version of ptxas.

Usage: sass_table.py --build BUILD --nvdisasm FILE --ptxas VERSION [--update] [--layer] [NAME ...]
--update writes the golden file. --layer: the kernels of the transformer layer instead, which take a minute. NAME: only cases with one of these words.

A line: case, the program's step and its launch, architecture; then for one thread: registers, bytes of registers that it spills, bytes
that it loads and stores in global memory and how many of them an access moves on average, instructions by pipe and in all, and the share.
Steps are named as in `scalide inspect` and in profiles: PROGRAM.KERNEL. Code behind a call is a slow path and does not count. A loop counts 8 times.
The share: an SM of an H100 starts 4 instructions of a warp in a cycle, of which 2 may be of the ALU, 1 of memory and 1 every second cycle of
the special functions (NVIDIA's tuning guide), at 1.755 GHz; a copy moves 2.9 TB/s through its 132 SMs (measured on 2026-11-26).
"""
import argparse
import collections
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "performance"))
import gpu  # noqa: E402
import transformer_layer  # noqa: E402

ARCHITECTURES = ("90", "100")
LOOP = 8
COPY_BYTES = 2.9e12 / 132 / 1.755e9  # in a cycle of an SM
PIPES = {
    "fma": "FFMA FMUL FADD IMAD FFMA2 FADD2 FMUL2 HADD2 HMUL2 HFMA2",
    "xu": "MUFU F2I I2F F2F FRND POPC FLO BREV",
    "f64": "DADD DMUL DFMA DSETP",
    "lsu": "LDG STG LDS STS LDL STL ATOM ATOMG ATOMS RED REDG SHFL REDUX LDSM",
    "alu": "LOP3 SHF IADD3 ISETP SEL FSETP FMNMX FMNMX3 PRMT VIMNMX VIMNMX3 FSEL LEA SGXT MOV VIADD VIADDMNMX IABS PLOP3 P2R R2P F2FP BMSK FCHK CS2R VOTE IMNMX "
           "SHL IADD I2FP HSETP2 HMNMX2",
}  # fmt: skip
PIPE_OF = {opcode: pipe for pipe, opcodes in PIPES.items() for opcode in opcodes.split()}
PER_CYCLE = {"fma": 4, "alu": 2, "xu": 0.5, "f64": 2, "lsu": 1, "all": 4}
WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}


def opcode_of(instruction):
    return re.sub(r"^@!?U?P\w+\s+", "", instruction).split()[0]


def functions_of(text):
    """By function: its labels and instructions, in order."""
    functions, current = {}, None
    for line in text.splitlines():
        if found := re.match(r"\s*\.section\s+\.text\.([^,\s]+)", line):
            current = functions.setdefault(found[1], [])
        elif current is not None and (found := re.match(r"(\.L_\w+):", line)):
            current.append(("label", found[1]))
        elif current is not None and (found := re.match(r"\s*/\*[0-9a-f]+\*/\s+(.*?)\s*;", line)):
            current.append(("instruction", found[1]))
    return functions


def counts_of(code):
    """Counts by pipe, and the bytes of global memory, of one thread."""
    labels = {name: place for place, (kind, name) in enumerate(code) if kind == "label"}
    last = max(place for place, (kind, word) in enumerate(code) if kind == "instruction" and "EXIT" in word)
    times = [1] * (last + 1)
    for place in range(last + 1):
        target = re.search(r"BRA\S*\s.*?(\.L_\w+)", code[place][1]) if code[place][0] == "instruction" else None
        if target and labels.get(target[1], last + 1) <= place:
            for inside in range(labels[target[1]], place + 1):
                times[inside] *= LOOP
    pieces = [[]]
    for place in range(last + 1):
        if code[place][0] == "instruction":
            pieces[-1].append(place)
            if re.search(r"\bBRA\b|\bCALL\b", code[place][1]):
                pieces.append([])
    counts = collections.Counter()
    for piece in pieces:
        if any("CALL" in code[place][1] for place in piece):
            continue
        for place in piece:
            opcode, *modifiers = opcode_of(code[place][1]).split(".")
            if opcode == "NOP":
                continue
            counts[PIPE_OF.get(opcode, "other")] += times[place]
            counts["all"] += times[place]
            if opcode in ("LDG", "STG"):
                counts["bytes"] += times[place] * next((WIDTHS[word] for word in modifiers if word in WIDTHS), 4)
                counts["accesses"] += times[place]
            if opcode in ("LDL", "STL"):
                counts["spilled"] += times[place] * next((WIDTHS[word] for word in modifiers if word in WIDTHS), 4)
    return counts


def share_of(counts):
    """Of the speed of a copy; at most what memory allows is not considered."""
    cycles = max(counts[pipe] / rate for pipe, rate in PER_CYCLE.items())
    return 32 * counts["bytes"] / cycles / COPY_BYTES


def find_ptxas(version):
    """Its folder. Skips the test without the version to which sass.golden belongs."""
    home = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
    folder = next((folder for folder in (home / "bin", *map(Path, os.environ["PATH"].split(":"))) if (folder / "ptxas").exists()), None)
    found = subprocess.run([folder / "ptxas", "--version"], capture_output=True, text=True).stdout if folder else "none"
    if f"V{version}" not in found.split():
        print(f"skipped: the golden files belong to ptxas {version}, got {found.strip()}")
        sys.exit(77)
    return folder


def cubins_of(options, scratch, name, program, numerics):
    """(architecture, step, machine code) of a program: a ptxas stands before the real one and keeps a copy of what that makes."""
    tools, kept = scratch / "tools/bin", scratch / name.replace(" ", "_")
    tools.mkdir(parents=True, exist_ok=True)
    kept.mkdir()
    real = options.ptxas
    (tools / "ptxas").write_text(f"""#!/bin/sh
"{real}/ptxas" "$@" || exit
while [ $# -gt 0 ]; do
    case $1 in -arch=*) arch=${{1#-arch=sm_}} ;; *.sm_*.ptx) text=$(basename "$1") ;; -o) out=$2 ;; esac
    shift
done
[ -z "$text" ] || cp "$out" "$SASS_KEPT/$arch-${{text%.sm_*.ptx}}"
""")
    (tools / "ptxas").chmod(stat.S_IRWXU)
    if not (tools / "fatbinary").exists():
        (tools / "fatbinary").symlink_to(real / "fatbinary")
    (scratch / "p.scl").write_text(program)
    command = [options.build / "generators/scalide", "build", scratch / "p.scl", "--name", "p", "--numerics", numerics, "--target", "cuda", "--cuda-arch", ",".join(ARCHITECTURES),
               "--output", scratch / "library", "--cache", scratch / "cache" / name.replace(" ", "_")]  # fmt: skip
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env={**os.environ, "CUDA_HOME": str(tools.parent), "SASS_KEPT": str(kept)})
    if done.returncode:
        sys.exit(f"{name}: {done.stderr}")
    manifest = json.loads((scratch / "library/p.json").read_text())
    found = []
    for part in manifest["programs"]:
        for kernel in part["kernels"]:
            found += [(card, f"{part['name']}.{kernel['name']}", kept / f"{card}-{kernel['symbol']}") for card in ARCHITECTURES]
    return [(card, step, cubin) for card, step, cubin in found if cubin.exists()]  # a library of the vendor may compute a step


def row_case(operator, dtype, columns):
    """A function of rows that one warp computes each."""
    x, vector = f"{dtype}[32768, {columns}]", f"f32[{columns}]"
    more, operands, attributes = (f", g: {vector}, b: {vector}", "w, g, b", "") if operator == "layer_norm" else ("", "w", " {axes: [1]}")
    return (f"{operator} of {columns} {dtype.removeprefix('f8_')}", f"(x: {x}{more}) -> (y: {x}) {{\n {gpu.convert('x', 'f32', 'w')}\n v = {operator}({operands}){attributes}\n"
                                              f" {gpu.convert('v', dtype, 'y')}\n}}")  # fmt: skip


def movement_cases():
    """Data movement along the innermost axis."""
    rows, fill = "bf16[8192,", "zero: bf16[]"
    yield "concatenate bf16", f"(a: {rows} 1024], b: {rows} 3072]) -> (y: {rows} 4096]) {{\n y = concatenate(a, b) {{dimension: 1}}\n}}"
    yield "pad bf16", f"(x: {rows} 4000], {fill}) -> (y: {rows} 4096]) {{\n y = pad(x, zero) {{low: [0, 16], high: [0, 80], interior: [0, 0]}}\n}}"
    yield "slice at 3 bf16", f"(x: {rows} 4352]) -> (y: {rows} 4096]) {{\n y = slice(x) {{start: [0, 3], limit: [8192, 4099]}}\n}}"
    yield "dynamic_slice bf16", f"(x: {rows} 8192], i: i32[], j: i32[]) -> (y: {rows} 4096]) {{\n y = dynamic_slice(x, i, j) {{sizes: [8192, 4096]}}\n}}"
    yield "dynamic_update_slice bf16", f"(x: {rows} 4096], u: {rows} 1024], i: i32[], j: i32[]) -> (y: {rows} 4096]) {{\n y = dynamic_update_slice(x, u, i, j)\n}}"


def cases(layer):
    if layer:
        yield "transformer layer", transformer_layer.program(), HERE.parent / "performance/transformer_layer.yaml"
        return
    for name, _, _, program in gpu.memory_cases(32768):
        yield name, f"program {program if program.startswith('layer') else 'p' + program}\n", "f32"
    short = [row_case("softmax", "bf16", 128), row_case("softmax", gpu.F8, 1024), row_case("layer_norm", "bf16", 768), row_case("layer_norm", "f32", 1000)]
    for name, program in [*short, *movement_cases()]:
        yield name, f"program p{program}\n", "f32"


def step_order(step):
    """PROGRAM.KIND_NUMBER by number."""
    program, kernel = step.rsplit(".", 1)
    number = re.search(r"_(\d+)$", kernel)
    return program, int(number[1]) if number else 0, kernel


def rows(options, scratch):
    for name, program, numerics in cases(options.layer):
        if options.names and not any(word in name for word in options.names):
            continue
        lines = []
        for card, step, cubin in cubins_of(options, scratch, name, program, numerics):
            text = subprocess.run([options.nvdisasm, "-c", str(cubin)], capture_output=True, text=True, check=True).stdout
            for function, code in functions_of(text).items():
                counts = counts_of(code)
                registers = 1 + max((int(number) for kind, word in code if kind == "instruction" for number in re.findall(r"\bR(\d+)\b", word)), default=-1)
                pipes = " ".join(f"{counts[pipe]:>5}" for pipe in ("fma", "alu", "xu", "f64", "lsu", "all"))
                launch = re.sub(r"^_*kernel_|_s\d+.*$|_+\d+$", "", function)
                lines.append((name, *step_order(step), f"{name:<36} {step:<20} {launch:<24.24} sm_{card:<4} {registers:>4} {counts['spilled']:>4} {counts['bytes']:>6} "
                                                       f"{counts['bytes'] / max(counts['accesses'], 1):>4.1f} {pipes} {share_of(counts):>6.2f}"))  # fmt: skip
        yield from (line[-1] for line in sorted(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--nvdisasm", type=Path, required=True)
    parser.add_argument("--ptxas", required=True, help="its version")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--layer", action="store_true")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    options.ptxas = find_ptxas(options.ptxas)
    if not options.nvdisasm.exists():
        print(f"skipped: there is no {options.nvdisasm}")
        sys.exit(77)
    head = f"{'case':<36} {'step':<20} {'launch':<24} {'arch':<7} {'regs':>4} {'spill':>4} {'bytes':>5} {'each':>4} {'fma':>5} {'alu':>5} {'xu':>5} {'f64':>5} {'lsu':>5} {'all':>5} {'share':>6}"
    with tempfile.TemporaryDirectory() as scratch:
        table = "\n".join([head, *rows(options, Path(scratch))]) + "\n"
    print(table, end="")
    golden = HERE / ("sass_layer.golden" if options.layer else "sass.golden")
    if options.update:
        golden.write_text(table)
    elif not options.names and table != golden.read_text():
        sys.exit(f"the table is another one than {golden.name}. If that is right, run this with --update and read the difference before you commit it")


if __name__ == "__main__":
    main()
