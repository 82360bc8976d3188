#!/usr/bin/env python3
"""Simulates data-parallel training steps on up to 256 ranks with SimGrid's SMPI (Debian package libsimgrid-dev), next to a formula.
Usage: simulation.py [--build BUILD] [--ranks 2,4,...]. BUILD needs the targets scalide, run_ranks and char_lm_ranks_generator.

The model: a transformer as examples/char_lm with 14 layers, width 768, 1,024 tokens in a sequence: 100 M parameters. A rank has 16 sequences.
The small messages of a step, with the scales of FP8 operands, are counted in programs of 1, 2 and 3 layers, and continued to 14 layers: each layer
adds the same. The messages with the gradients follow from the formulas in messages.py. First, all formulas are compared with counted bytes.

The network: a crossbar. Each rank has a full-duplex link of 100 Gbit/s to one switch, and 2 us pass from rank to rank. No contention in the switch,
no protocol, and no time for copies in memory. The collectives use the algorithms of Open MPI. Messages and computing do not overlap, as in a run.
"""
import argparse
import math
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from messages import Builder, HERE, char_lm_sizes, of_step, padded, print_table

BANDWIDTH, LATENCY = 12.5e9, 2e-6  # bytes a second, seconds
MODEL = {"layers": 14, "width": 768, "length": 1024}
TOKENS = 16 * 1024
# FLOP/s that a rank sustains. CPU: a server with some 64 cores and BF16 instructions. GPU: 36 % of the speed of the bf16 matmul on an H100 in docs/numbers.md.
MACHINES = {"CPU, 2 TFLOP/s": 2e12, "GPU, 300 TFLOP/s": 300e12}
# Policy: how it sends gradients.
POLICIES = {"f32": "f32", "bf16_wire": "bf16", "f8_wire": "f8", "f8_delayed_wire": "f8"}
NAMES = {"f32": "f32, sent in f32", "bf16_wire": "bf16, sent in bf16", "f8_wire": "f8_master, sent in f8", "f8_delayed_wire": "f8_delayed, sent in f8"}
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="ranks" prefix="h" suffix="" radical="0-{last}" speed="1Gf" bw="100Gbps" lat="1us" sharing_policy="SPLITDUPLEX"/>
</platform>
"""
OPTIONS = ["network/model:CM02", "network/crosstraffic:no", "smpi/simulate-computation:no", "smpi/coll-selector:ompi", "smpi/privatization:no",
           "smpi/shared-malloc:local"]  # fmt: skip


def counted(builder, policy, layers, ranks):
    """The messages of a step of a small program: of gradients (exchange, collect), and the small ones before them."""
    name = builder.char_lm(policy, layers=layers, width=128, length=32, batch=2)
    calls = builder.run("threads", ranks, name)["calls"]
    (first, exchange), (second, collect) = calls[-2:]
    assert (first, second) == ("exchange", "collect") and all(kind == "collect" for kind, _ in calls[:-2]), calls
    return exchange, collect, [size for _, size in calls[:-2]]


def validate(builder):
    """Compares formulas with counted bytes. Returns by policy, for MODEL: the number and the bytes of small messages, and the bytes of amaxes in the
    collect of the gradients."""
    rows, small = [], {}
    for policy, wire in POLICIES.items():
        numbers = {}
        for layers in (1, 2, 3):
            for ranks in (2, 4) if layers == 2 else (2,):
                exchange, collect, others = counted(builder, policy, layers, ranks)
                expected = of_step(char_lm_sizes(layers, 128, 32), ranks, wire)
                assert exchange == expected[0], (policy, layers, ranks)
                numbers[layers] = len(others), sum(others), collect - expected[1]
                row = [NAMES[policy], layers, ranks, *(f"{size:,}" for size in (exchange, expected[0], collect, expected[1]))]
                rows.append(row + [f"{size:,}" for size in numbers[layers]])
        assert all(2 * two == one + three for one, two, three in zip(*numbers.values())), numbers
        small[policy] = tuple(one + (MODEL["layers"] - 1) * (two - one) for one, two, _ in zip(*numbers.values()))
    columns = ["policy", "layers", "ranks", "exchange, counted", "predicted", "collect, counted", "predicted", "small messages", "their bytes",
               "amaxes in the collect, bytes"]  # fmt: skip
    print_table("Bytes to each rank in a step of a small model (width 128), counted and predicted.", columns, rows)
    return small


def formula(ranks, exchange, collect, count, small):
    """Seconds of all messages: each ring has ranks - 1 steps, and a small collect log2(ranks)."""
    rings = (ranks - 1) * (2 * LATENCY + (exchange + collect) / BANDWIDTH)
    return rings + count * (math.ceil(math.log2(ranks)) * LATENCY + (ranks - 1) * small / BANDWIDTH)


class Simulator:
    def __init__(self, folder, most_ranks):
        self.program, self.platform = Path(folder) / "simulated_step", Path(folder) / "platform.xml"
        subprocess.run(["smpicc", "-O1", "-o", self.program, HERE / "simulated_step.c"], check=True)
        self.platform.write_text(PLATFORM.format(last=most_ranks - 1))

    def seconds(self, ranks, *words):
        command = ["smpirun", "-np", ranks, "-platform", self.platform, *(f"--cfg={option}" for option in OPTIONS), "--log=root.thresh:error",
                   self.program, *words]  # fmt: skip
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True, cwd=self.program.parent)
        return float(done.stdout.split("seconds ")[1].split()[0])


def simulate(simulator, small, all_ranks):
    sizes = char_lm_sizes(**MODEL)
    flops = TOKENS * (6 * sum(sizes) + 12 * MODEL["layers"] * MODEL["width"] * MODEL["length"])
    print(f"\n{sum(sizes):,} parameters, {flops:.3g} FLOP a step and a rank: " + ", ".join(f"{name}: {flops / speed:.4g} s" for name, speed in MACHINES.items()))
    rows = []
    for policy, wire in POLICIES.items():
        count, bytes_of_all, amaxes = small[policy]
        each = padded(bytes_of_all // count) if count else 64
        for ranks in all_ranks:
            exchange, collect = of_step(sizes, ranks, wire)
            collect += amaxes
            messages = formula(ranks, exchange, collect, count, each)
            row = [NAMES[policy], ranks, f"{(ranks - 1) * (exchange + collect) / 1e6:.1f}", count, f"{1e3 * messages:.2f}"]
            alone = simulator.seconds(ranks, exchange, collect, count, each, 0)
            row += [f"{1e3 * alone:.2f}"]
            for speed in MACHINES.values():
                step = simulator.seconds(ranks, exchange, collect, count, each, flops / speed)
                row.append(f"{flops / speed / step:.3f}")
            rows.append(row + [f"{9 * alone * MACHINES['GPU, 300 TFLOP/s'] / (flops / TOKENS):,.0f}"])
    columns = ["policy", "ranks", "gradients sent, MB", "small messages", "formula, ms", "SMPI, ms", *(f"efficiency, {name}" for name in MACHINES),
               "tokens a rank for .9 on the GPU"]  # fmt: skip
    print_table("Messages of a step, and efficiency: the time of computing divided by the time of the step, by SMPI.", columns, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=HERE.parents[2] / "build")
    parser.add_argument("--ranks", default="2,4,8,16,32,64,128,256")
    arguments = parser.parse_args()
    missing = [program for program in ("smpicc", "smpirun") if shutil.which(program) is None]
    small = validate(Builder(arguments.build))
    if missing:
        print(f"skipped: no simulation without {' and '.join(missing)}. Install the Debian package libsimgrid-dev.", file=sys.stderr)
        return
    all_ranks = [int(ranks) for ranks in arguments.ranks.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        simulate(Simulator(folder, max(all_ranks)), small, all_ranks)


if __name__ == "__main__":
    main()
