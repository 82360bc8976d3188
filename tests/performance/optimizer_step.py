#!/usr/bin/env python3
"""One step of AdamW on many small tensors. The rival is optax under jax.jit, with donated parameters and state.

Usage: PYTHONPATH=build/python optimizer_step.py [--tensors N] [--json FILE]
The tensors have 16 to 12,288 elements, as the parameters of a small transformer. `kernels`: time of all kernels of a run
(`scalide run --profile`), as a C++ application has it. `donate`: Library.donate on NumPy arrays. The ratios are the time of jax.jit divided by these.
"""
import argparse
import json
import re
import subprocess
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

import scalide
import scalide.jax

SHAPES = ((64, 64), (64,), (64, 192), (192,), (16,), (8, 8, 8))
OPTIMIZER = optax.adamw(1e-3, weight_decay=0.01)


def step(params, state, gradients):
    updates, state = OPTIMIZER.update(gradients, state, params)
    return optax.apply_updates(params, updates), state


def best(run, rounds=200):
    """The least time of a call, in microseconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return 1e6 * min(times)


def stepping(run, params, state, gradients):
    held = [params, state]

    def once():
        held[:] = run(*held, gradients)
        jax.block_until_ready(held[0])

    return once


def kernels_of(program, library, arrays, folder):
    """The number of kernels and the time of all in microseconds."""
    (folder / "step.scl").write_text(program.text)
    scalide.save(folder / "in.safetensors", dict(zip((a.name for a in library.arguments), map(np.asarray, jax.tree.leaves(arrays)))))
    command = [scalide.tool_path(), "run", folder / "step.scl", "-i", folder / "in.safetensors", "-o", folder / "out.safetensors", "--profile", "300"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return len(re.findall(r"^\d+ ", printed, re.MULTILINE)), float(re.search(r"^all +([\d.]+)", printed, re.MULTILINE)[1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tensors", type=int, default=100)
    parser.add_argument("--json")
    given = parser.parse_args()
    draw = np.random.default_rng(0)
    params = {f"w{i:03}": draw.normal(size=SHAPES[i % len(SHAPES)]).astype(np.float32) for i in range(given.tensors)}
    gradients = {name: draw.normal(size=array.shape).astype(np.float32) for name, array in params.items()}
    state = jax.tree.map(np.asarray, OPTIMIZER.init(params))
    program = scalide.jax.trace(step, params, state, gradients, donate_argnums=(0, 1))
    library = scalide.build(program)
    with tempfile.TemporaryDirectory() as folder:
        count, kernels = kernels_of(program, library, (params, state, gradients), Path(folder))
    on_device = jax.tree.map(jnp.array, (params, state, gradients))
    rival = best(stepping(jax.jit(step, donate_argnums=(0, 1)), *on_device))
    donate = best(stepping(library.donate, params, state, gradients))
    found = {"tensors": given.tensors, "kernel_count": count, "kernels_us": kernels, "donate_us": donate, "jax_us": rival,
             "kernels_ratio": rival / kernels, "donate_ratio": rival / donate}  # fmt: skip
    print(", ".join(f"{name} {value:.4g}" for name, value in found.items()))
    if given.json:
        Path(given.json).write_text(json.dumps(found))
