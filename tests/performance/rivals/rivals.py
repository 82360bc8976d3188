#!/usr/bin/env python3
"""Times works (works.py) in Scalide, jax, torch and oneDNN in alternating rounds on the same cores, and prints one table. `./bench --rivals` installs
the rivals and starts this program.

Usage: rivals.py [--build BUILD] [--systems NAMES] [--python SYSTEM=PYTHON] [--threads N] [--rounds N] [--seconds S] [--quick] [--list]
                 [--json FILE] [--html FILE] [--from FILE] [NAME ...]
NAME: only works whose name and dtype contain this text, such as "matmul" or "softmax of 512 f32".
--from: measures nothing, and makes the table and the page of a file that --json wrote.

A ratio is the time of the best rival divided by the time of Scalide: above 1, Scalide is faster. It is the median of the ratios of the rounds.
A round in which other programs took more than 6 % of the cores is repeated. If fewer than 3 rounds are quiet, the row has the mark ~.
A share is the speed of Scalide next to a copy of as many bytes as the work must read and write, or next to the FMAs of f32 that the cores can do.
"""
import argparse
import datetime
import json
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import page
from report import DISTURBED, table
from works import TESTED_ONLY, TOLERANCE, WORKS

HERE = Path(__file__).resolve().parent
SYSTEMS = {"jax": "jax_works", "torch": "torch_works", "onednn": "onednn_works"}
FEATURES = ("avx2", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16", "amx_int8", "amx_fp16")
# A freed array stays mapped, so no system pays for page faults of new results.
MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(2**35), "MALLOC_TOP_PAD_": str(2**28), "MALLOC_ARENA_MAX": "1"}
HELD_BACK = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "LD_LIBRARY_PATH")  # settings that slow a rival


class Unavailable(Exception):
    """A system does not start, or does not answer in time. The text is the reason."""


class System:
    """A process that times one work at a time (worker.py), and starts again after it was too slow or has ended."""

    def __init__(self, command, arguments, environment=()):
        self.command, self.process = [str(word) for word in command], None
        cores = sorted(os.sched_getaffinity(0))[:arguments.threads]
        self.pinned = ["taskset", "-c", ",".join(map(str, cores))]
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(arguments.threads))
        inherited = {name: value for name, value in os.environ.items() if name not in HELD_BACK}
        self.environment = {**inherited, **threads, **MEMORY, "JAX_PLATFORMS": "cpu", **dict(environment)}
        self.log = open(arguments.log, "a")

    def start(self):
        """Starts the process and returns its first line."""
        self.process = subprocess.Popen(self.pinned + self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True, env=self.environment)
        hello = self.answer(120)
        if "error" in hello:
            self.stop()
            raise Unavailable(hello["error"])
        return hello

    def ask(self, request, limit):
        if self.process is None:
            self.start()
        try:
            print(json.dumps(request), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            self.stop()
            raise Unavailable("the process ended") from None
        return self.answer(limit)

    def answer(self, limit):
        if not select.select([self.process.stdout], [], [], limit)[0]:
            self.stop()
            raise Unavailable(f"no answer in {limit} s")
        line = self.process.stdout.readline()
        if not line:
            self.stop()
            raise Unavailable("the process ended")
        return json.loads(line)

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.communicate()
        self.process = None


def reason_of_failed_install(build, name):
    """Returns what pip said, or that nobody installed the package."""
    for log in sorted((build / "log").glob(f"rival-{name}-*.log"), key=lambda log: log.stat().st_mtime, reverse=True):
        errors = [line for line in log.read_text(errors="replace").splitlines() if line.startswith("ERROR")]
        if errors:
            return f"cannot be installed. {errors[-1][:160]}"
    return "is not installed. Run ./bench --rivals"


def start_systems(arguments):
    """Returns the systems that run, their versions, and the reasons of the others."""
    ours = {"PYTHONPATH": str(arguments.build / "python"), "SCALIDE_TOOL": str(arguments.build / "generators/scalide")}
    systems = {"scalide": System([sys.executable, HERE / "worker.py", "scalide_works", arguments.threads], arguments, ours.items())}
    missing = {}
    for name in arguments.systems:
        folder = arguments.build / f"rival-{name}"
        python = arguments.python.get(name) or folder / "bin/python"
        if name not in arguments.python and not (folder / "installed").exists():
            missing[name] = reason_of_failed_install(arguments.build, name)
            continue
        systems[name] = System([python, HERE / "worker.py", SYSTEMS[name], arguments.threads], arguments)
    versions = {}
    for name, system in list(systems.items()):
        try:
            versions[name] = system.start()["version"]
        except Unavailable as error:
            if name == "scalide":
                raise SystemExit(f"cannot start Scalide: {error}. See {arguments.log}") from None
            missing[name] = f"does not start: {error}"
            del systems[name]
    return systems, versions, missing


def machine_of(arguments, versions, missing):
    text = Path("/proc/cpuinfo").read_text()
    lines = dict((part.strip() for part in line.split(":", 1)) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    flags = lines.get("flags", "").split()
    return {"cpu": lines.get("model name", "unknown"), "family": f"{lines.get('cpu family')}/{lines.get('model')}", "threads": arguments.threads,
            "cores": os.cpu_count(), "features": [name for name in FEATURES if name in flags], "date": datetime.date.today().isoformat(),
            "versions": versions, "missing": missing, "rounds": arguments.rounds, "seconds": arguments.seconds}  # fmt: skip


def prepare(name, systems, scratch):
    """Asks all systems for a work. Returns the row without its rounds, and the systems that can do the work."""
    work = WORKS[name]
    row = {"work": work.name, "dtype": work.dtype, "flops": work.flops, "bytes": 0, "failed": {}, "differences": {}, "tolerance": work.allowed or TOLERANCE[work.dtype]}
    able = {}
    for system_name, system in systems.items():
        file = scratch / f"{system_name}.npz"
        file.unlink(missing_ok=True)
        try:
            answer = system.ask({"prepare": name, "result": str(file)}, 300)
        except Unavailable as error:
            answer = {"variants": [], "failed": {"": str(error)}}
        row["failed"] |= {f"{system_name} {variant}".strip(): reason for variant, reason in answer["failed"].items()}
        row["bytes"] = row["bytes"] or answer.get("bytes", 0)
        if answer["variants"]:
            able[system_name] = system
        if work.compared and system_name != "scalide" and file.exists() and (scratch / "scalide.npz").exists():
            row["differences"][system_name] = difference(scratch / "scalide.npz", file)
    return row, able


def difference(ours, theirs):
    """The largest difference of a result, divided by the largest magnitude of the result."""
    made = [0.0]
    with np.load(ours) as mine, np.load(theirs) as others:
        if len(mine.files) != len(others.files):
            return float("inf")
        for name in mine.files:
            a, b = mine[name].astype(np.float64), others[name].astype(np.float64)
            if a.shape != b.shape:
                return float("inf")
            made.append(np.abs(a - b).max(initial=0) / max(np.abs(b).max(initial=0), 1e-30))
    return float(max(made)) if np.isfinite(made).all() else float("inf")


def one_round(row, able, limits, seconds):
    """Times all variants of all systems once, and the limits of the machine next to them."""
    made = {"others": 0.0, "ms": {}}
    made |= limits.ask({}, 60)
    for name, system in list(able.items()):
        try:
            answer = system.ask({"time": seconds}, 60 + 20 * seconds)
        except Unavailable as error:
            row["failed"][name] = str(error)
            del able[name]
            continue
        for variant, measured in answer.items():
            made["ms"][f"{name} {variant}"] = measured["ms"]
            made["others"] = max(made["others"], measured["others"])
    return made


def measure(name, systems, limits, arguments, scratch):
    row, able = prepare(name, systems, scratch)
    rounds = []
    while "scalide" in able and len(rounds) < arguments.rounds + arguments.repeats and sum(r["others"] <= DISTURBED for r in rounds) < arguments.rounds:
        rounds.append(one_round(row, able, limits, arguments.seconds))
    row["rounds"] = chosen(rounds, arguments.rounds)
    return row


def chosen(rounds, count):
    """Returns the quiet rounds if there are enough for a median, otherwise the rounds with the least disturbance."""
    quiet = [made for made in rounds if made["others"] <= DISTURBED]
    return quiet if len(quiet) >= min(3, count) else sorted(rounds, key=lambda made: made["others"])[:count]


def run(arguments):
    systems, versions, missing = start_systems(arguments)
    limits = System([arguments.build / "tests/performance/limits", arguments.threads], arguments)
    limits.process = subprocess.Popen(limits.pinned + limits.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    machine = machine_of(arguments, versions, missing)
    names = [name for name in WORKS if (any(part in name for part in arguments.names) if arguments.names else name not in TESTED_ONLY)]
    if not names:
        raise SystemExit(f"no work has a name with {', '.join(arguments.names)}. --list prints all names.")
    rows = []
    try:
        with tempfile.TemporaryDirectory(prefix="scalide-rivals-") as scratch:
            for number, name in enumerate(names):
                print(f"[{number + 1}/{len(names)}] {name}", file=sys.stderr, flush=True)
                rows.append(measure(name, systems, limits, arguments, Path(scratch)))
                if arguments.json:
                    write_lines(arguments.json, machine, rows)  # also what an interrupted run has measured
    finally:
        for system in (*systems.values(), limits):
            system.stop()
    return machine, rows


def write_lines(path, machine, rows):
    path.write_text("".join(json.dumps(line) + "\n" for line in ({"machine": machine}, *rows)))


def read_lines(path):
    first, *rows = map(json.loads, path.read_text().splitlines())
    return first["machine"], rows


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=HERE.parents[2] / "build")
    parser.add_argument("--systems", type=lambda text: [name for name in text.split(",") if name], default=list(SYSTEMS), help="rivals, with commas (default: jax,torch,onednn)")
    parser.add_argument("--python", action="append", default=[], metavar="SYSTEM=PYTHON", help="use this Python for a rival, and install nothing")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="threads of each system, on the first N cores (default: all)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=5, help="disturbed rounds that are repeated for each work (default: 5)")
    parser.add_argument("--seconds", type=float, default=0.2, help="time for which each program runs in a round (default: 0.2)")
    parser.add_argument("--quick", action="store_true", help="two rounds of 0.05 s, and at most one repetition")
    parser.add_argument("--list", action="store_true", help="print the names of all works")
    parser.add_argument("--json", type=Path, help="write one JSON line for the machine, and one for each work with its rounds")
    parser.add_argument("--html", type=Path, help="write the table as a page with bars")
    parser.add_argument("--from", type=Path, dest="recorded", metavar="FILE")
    parser.add_argument("names", nargs="*", metavar="NAME")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.repeats, arguments.seconds = 2, 1, 0.05
    arguments.python = dict(pair.split("=", 1) for pair in arguments.python)
    if unknown := ({*arguments.systems, *arguments.python} - {*SYSTEMS}):
        parser.error(f"unknown system {', '.join(sorted(unknown))}. The systems are {', '.join(SYSTEMS)}.")
    arguments.log = arguments.build / "performance" / "rivals.log"
    return arguments


def main():
    arguments = parse()
    if arguments.list:
        print("\n".join(WORKS))
        return
    if arguments.recorded:
        machine, rows = read_lines(arguments.recorded)
    else:
        arguments.log.parent.mkdir(parents=True, exist_ok=True)
        arguments.log.write_text("")
        machine, rows = run(arguments)
    print(table(machine, rows))
    if arguments.json and arguments.recorded:
        write_lines(arguments.json, machine, rows)
    if arguments.html:
        arguments.html.write_text(page.page(machine, rows))
    if any(summary.get("ours") is None for summary in map(page.summary, rows)):
        sys.exit("Scalide did not run all works. See the notes.")


if __name__ == "__main__":
    main()
