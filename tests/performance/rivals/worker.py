"""A system that stays alive and times one work at a time. rivals.py starts it and writes requests to its standard input, one JSON line each.

Usage: worker.py MODULE THREADS
MODULE has version(threads) and variants(work), which yields names and functions that make a call and its results: scalide_works, jax_works, ...

{"prepare": WORK, "result": FILE}   makes every variant, calls it once, and writes the results of the first one to FILE
{"time": SECONDS}                   times the calls of every variant in turn
"""
import importlib
import json
import os
import statistics
import sys
import time
import traceback

import numpy as np
from works import WORKS

SAMPLE = 1 << 16  # elements of each result that are compared
TICK = os.sysconf("SC_CLK_TCK")


def busy_seconds():
    """Core seconds of all programs of this machine, and of other guests."""
    with open("/proc/stat") as stat:
        user, nice, system, _idle, _wait, interrupts, soft, stolen, *_ = map(int, stat.readline().split()[1:])
    return (user + nice + system + interrupts + soft + stolen) / TICK


def sample(array):
    flat = np.asarray(array, np.float32).reshape(-1)
    return flat[::max(1, flat.size // SAMPLE)]


class Worker:
    def __init__(self, module, threads):
        self.module, self.calls = module, {}
        self.version = module.version(threads)

    def prepare(self, request):
        self.calls.clear()
        work, answer = WORKS[request["prepare"]], {"variants": [], "failed": {}}
        for name, make in self.module.variants(work):
            try:
                call, results, *moved = make(work)
                call()
                if not answer["variants"]:
                    np.savez(request["result"], *map(sample, results()))
                for _ in range(2):
                    call()
            except Exception as error:  # the reason is a part of the table
                traceback.print_exc()
                lines = str(error).strip().splitlines() or [type(error).__name__]
                answer["failed"][name] = f"{type(error).__name__}: {lines[0][:160]}"
                continue
            self.calls[name] = call
            answer["variants"].append(name)
            answer |= {"bytes": moved[0]} if moved else {}
        if not answer["variants"] and not answer["failed"]:
            answer["failed"][""] = self.module.ONLY
        return answer

    def time(self, request):
        answer = {}
        for name, call in self.calls.items():
            seconds, busy, own, start = [], busy_seconds(), time.process_time(), time.perf_counter()
            while len(seconds) < 3 or time.perf_counter() - start < request["time"]:
                begin = time.perf_counter()
                call()
                seconds.append(time.perf_counter() - begin)
            wall = time.perf_counter() - start
            others = (busy_seconds() - busy - (time.process_time() - own)) / wall / os.cpu_count()
            # /proc/stat counts whole ticks, so a short measurement can say little about others.
            slack = (os.cpu_count() + 1) / TICK / wall / os.cpu_count() if wall < 0.1 else 0
            answer[name] = {"ms": 1e3 * statistics.median(seconds), "runs": len(seconds), "others": max(0.0, others - slack)}
        return answer


def main():
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a system prints is no answer
    try:
        worker = Worker(importlib.import_module(sys.argv[1]), int(sys.argv[2]))
    except Exception as error:
        traceback.print_exc()
        print(json.dumps({"error": f"{type(error).__name__}: {str(error).strip().splitlines()[0][:160] if str(error).strip() else ''}"}), file=answers)
        return
    print(json.dumps({"version": worker.version}), file=answers)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(worker.prepare(request) if "prepare" in request else worker.time(request)), file=answers)


if __name__ == "__main__":
    main()
