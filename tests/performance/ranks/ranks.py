#!/usr/bin/env python3
"""all_reduce in threads and over MPI next to MPI_Allreduce; the bytes that a rank sends; a training step with a group of one rank next to the step
without groups. Usage: ranks.py [--build BUILD] [--rounds N] [--only times,bytes,step]. BUILD needs the targets scalide, run_ranks and
char_lm_ranks_generator. A launcher that is not installed is left out. MPI_Allreduce always reduces the f32 array.
"""
import argparse
import shutil
import statistics
from pathlib import Path

from messages import Builder, WIRES, print_table, ring, sent

LAUNCHERS = {
    "Open MPI": (["mpirun.openmpi", "--oversubscribe", "--mca", "btl", "self,vader", "-n"], "libmpi.so.40"),
    "MPICH": (["mpirun.mpich", "-n"], "libmpich.so.12"),
}
RUNS = {1 << 10: 100, 1 << 16: 20, 1 << 20: 4, 1 << 24: 1}  # elements: runs of a round
TIMED = ("f32", "f16", "f8")
NAMES = {1 << 10: "1 Ki", 1 << 16: "64 Ki", 1 << 20: "1 Mi", 1 << 24: "16 Mi"}


def median_ratio(times, others):
    return statistics.median(a / b for a, b in zip(times, others))


def digits(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def round_of(builder, name, ranks, elements):
    """Milliseconds by engine, of the program and of MPI_Allreduce."""
    runs = RUNS[elements]
    times = {"threads": (builder.run("threads", ranks, name, 3, runs)["ms"], None)}
    for engine, (launcher, library) in LAUNCHERS.items():
        if shutil.which(launcher[0]):
            line = builder.run("mpi", ranks, name, 3, runs, elements, [*launcher, ranks], library)
            times[engine] = line["ms"], line["rival_ms"]
    return times


def times(builder, rounds):
    programs = [(elements, ranks, wire, builder.reduction(elements, wire)) for elements in RUNS for ranks in (2, 4) for wire in TIMED]
    own, rival = {}, {}
    for _ in range(rounds):
        for elements, ranks, wire, name in programs:
            for engine, (ms, rival_ms) in round_of(builder, name, ranks, elements).items():
                own.setdefault((elements, ranks, engine, wire), []).extend(ms)
                rival.setdefault((elements, ranks, engine, wire), []).extend(rival_ms or [])
    rows = []
    for elements, ranks, engine in dict.fromkeys(key[:3] for key in own):
        keys = [(elements, ranks, engine, wire) for wire in TIMED]
        rivals = [rival[key] or rival.get((elements, ranks, "Open MPI", key[3]), []) for key in keys]
        row = [NAMES[elements], ranks, engine, digits(statistics.median(sum(rivals, []))) if rivals[0] else "-"]
        for key, others in zip(keys, rivals):
            row += [digits(statistics.median(own[key])), f"{median_ratio(own[key], others):.2f}" if others else "-"]
        rows.append(row)
    columns = ["elements", "ranks", "engine", "MPI_Allreduce, ms"] + [word for wire in TIMED for word in (f"{wire}, ms", "ratio")]
    print_table("Medians of rounds. A ratio is the time divided by the time of MPI_Allreduce; threads are compared with Open MPI.", columns, rows)


def sent_bytes(builder, elements=1 << 20):
    rows = []
    programs = {wire: builder.reduction(elements, wire) for wire in WIRES}
    for ranks in (2, 4, 8, 16, 32, 64):
        row = [ranks, f"{ring(elements, ranks):,.0f}"]
        for wire, name in programs.items():
            counted = builder.run("threads", ranks, name)["sent"]
            assert counted == sent(elements, ranks, WIRES[wire]), (wire, ranks, counted)
            row += [f"{counted:,}", f"{counted / ring(elements, ranks):.4f}"]
        rows.append(row)
    columns = ["ranks", "bf16 ring, bytes"] + [word for wire in WIRES for word in (f"{wire}, bytes", "ratio")]
    print_table(f"Bytes that a rank sends for {elements:,} elements, counted. A ratio is to a ring all-reduce in bf16.", columns, rows)


def step(builder, rounds):
    rows = []
    for policy in ("f32", "f8_master"):
        names = {"alone": builder.char_lm(policy, layers=2, ranks="true"), "none": builder.char_lm(policy, layers=2, ranks="false")}
        ms, kernels = {how: [] for how in names}, {}
        for _ in range(2 * rounds + 1):
            for how, name in names.items():
                line = builder.run(how, 1, name, 3, 3)
                ms[how].append(min(line["ms"]))
                kernels[how] = line["kernels"]
        row = [policy, *(digits(statistics.median(ms[how])) for how in names), f"{median_ratio(ms['alone'], ms['none']):.3f}"]
        rows.append(row + [len(kernels[how]) for how in names] + ["yes" if sorted(kernels["alone"]) == sorted(kernels["none"]) else "no"])
    columns = ["policy", "group with one rank, ms", "no group, ms", "ratio", "kernels with group", "kernels without", "same kernels"]
    print_table("A training step of examples/char_lm with 2 layers, one thread.", columns, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path(__file__).resolve().parents[3] / "build")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="bytes,step,times")
    arguments = parser.parse_args()
    builder = Builder(arguments.build)
    for part in arguments.only.split(","):
        {"bytes": lambda: sent_bytes(builder), "step": lambda: step(builder, arguments.rounds), "times": lambda: times(builder, arguments.rounds)}[part]()


if __name__ == "__main__":
    main()
