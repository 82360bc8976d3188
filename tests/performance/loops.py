#!/usr/bin/env python3
"""Training steps with Adam of models that consist of loops, next to jax.jit: seconds to build with an empty cache, and the least time of a step in
turns. Usage: PYTHONPATH=build/python build/venv/bin/python tests/performance/loops.py [--models lstm,gpt48] [--numerics f32,f8_master] [--rounds N]
[--seconds S] [--torch PYTHON] [--json FILE]; the models are in MODELS. Generation is one program that writes 256 tokens, without training.
"""
import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import scalide
import scalide.jax

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from loop_models import adaptive_ode, decoder, generation, gpt, gru, kalman, lstm, mamba, rwkv, scalars  # noqa: E402

GENERATION = {"layers": 4, "batch": 1, "length": 256, "width": 256, "heads": 4, "tokens": 256}
TORCH = {"lstm512": "LSTM", "gru512": "GRU"}
MODELS = {"lstm": lambda: lstm(64, batch=32, width=128, tokens=256), "gru": lambda: gru(128, batch=32, width=128, tokens=256),
          "lstm16": lambda: lstm(128, batch=8, width=16, tokens=32),
          "mamba": lambda: mamba(512, batch=8, width=64, states=16, tokens=256), "rwkv": lambda: rwkv(256, width=256, tokens=256),
          "gpt48": lambda: gpt(48, batch=4, length=32, width=64, heads=4, tokens=256), "kalman": lambda: kalman(1000),
          "scalars": lambda: gradient_of(scalars(614, count=60)), "lstm512": lambda: gradient_of(lstm(256, batch=32, width=512, tokens=256)),
          "gru512": lambda: gradient_of(gru(256, batch=32, width=512, tokens=256)), "ode": lambda: adaptive_ode(states=60),
          "generation": lambda: generation(**GENERATION),
          "generation.loops": lambda: generation(**GENERATION, loops=True),
          "gpt48.unrolled": lambda: gpt(48, batch=4, length=32, width=64, heads=4, tokens=256, unroll=48)}  # fmt: skip


def generation_by_calls(policy, **sizes):
    """Writes the tokens of generation() by a call of a compiled step for each token, whose caches are donated."""
    decode, params, caches = decoder(**sizes)

    def step(caches, token, position, params):
        logits, caches = decode(params, caches, token, position)
        return caches, jnp.argmax(logits, -1).astype(jnp.int32)

    token = np.ones(sizes["batch"], np.int32)
    library = scalide.build(scalide.jax.trace(step, caches, token, np.int32(0), params, donate_argnums=(0,)), numerics=policy).donate

    def generate():
        held, last = jax.tree.map(np.array, caches), token
        for position in range(sizes["length"]):
            held, last = library(held, last, np.int32(position), params)
        jax.block_until_ready(last)

    return generate


def gradient_of(model):
    """The loss and its gradient, without an optimizer."""
    return jax.value_and_grad(model.loss), (model.params, *model.data)


def training(model):
    """A function, its arguments, and how many of them, counted from the first, a step replaces."""
    return (model, 0) if isinstance(model, tuple) else ((model.step, (model.params, model.moments(), *model.data)), 2)


def best(run, seconds):
    """The least time of a call, in ms."""
    times, start = [], time.perf_counter()
    while not times or time.perf_counter() - start < seconds:
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return 1e3 * min(times)


def stepping(run, args, count):
    """Calls a function on what it returned, as training does."""
    held, rest = list(args[:count]), args[count:]

    def once():
        made = run(*held, *rest)
        held[:] = made[:count]
        jax.block_until_ready(made)

    return once


def measure(name, policies, rounds, seconds, torch):
    (fn, args), count = training(MODELS[name]())
    donated, rows, calls = tuple(range(count)), {}, {}
    for policy in policies:
        with tempfile.TemporaryDirectory() as cache:
            jax.clear_caches()
            start = time.perf_counter()
            library = scalide.build(scalide.jax.trace(fn, *args, donate_argnums=donated), numerics=policy, cache=cache)
            rows[policy] = {"model": name, "program": policy, "build_s": time.perf_counter() - start}
        calls[policy] = stepping(library.donate if count else library, jax.tree.map(np.array, args), count)
    start = time.perf_counter()
    jitted = jax.jit(fn, donate_argnums=donated).lower(*args).compile()
    rows["jax.jit"] = {"model": name, "program": "jax.jit", "build_s": time.perf_counter() - start}
    calls["jax.jit"] = stepping(jitted, jax.tree.map(jnp.array, args), count)
    if name == "generation":
        calls |= {f"{policy}, calls": generation_by_calls(policy, **GENERATION) for policy in policies}
    times = {each: [] for each in calls}
    for _ in range(rounds):
        for each, call in calls.items():
            times[each].append(best(call, seconds))
    if torch and name in TORCH:
        times |= {"torch": [float(subprocess.run([torch, Path(__file__).with_name("loops_torch.py"), TORCH[name]], check=True, capture_output=True, text=True).stdout)]}
    for each, row in times.items():
        made = rows.setdefault(each, {"model": name, "program": each, "build_s": math.nan}) | {"ms": min(row), "ratio": min(times["jax.jit"]) / min(row)}
        rows[each] = made
        print(f"{name:<18} {each:<16} {made['build_s']:>8.2f} {made['ms']:>10.3f} {made['ratio']:>6.2f}", flush=True)
    return list(rows.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(MODELS))
    parser.add_argument("--numerics", type=lambda text: text.split(","), default=["f32", "f8_master"])
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=0.4, help="time for which each program runs in a round")
    parser.add_argument("--torch", help="a Python with torch, to time its LSTM and GRU")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    print(f"{'model':<18} {'program':<16} {'build s':>8} {'step ms':>10} {'ratio':>6}   ratio: time of jax.jit, divided by this time")
    rows = [row for name in given.models for row in measure(name, given.numerics, given.rounds, given.seconds, given.torch)]
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
