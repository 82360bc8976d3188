#!/usr/bin/env python3
"""Trains a causal byte-level transformer of one million parameters with each policy, and prints its losses and step times next to jax.jit in f32.
All runs have the same initial values and batches. The text is from the licenses and copyright files that Debian installs.

Usage: byte_transformer.py [--policies NAMES] [--steps N] [--layers N] [--held-out N] [--seed N] [--within NATS] [--cache FOLDER] [--json FILE] [--markdown]
with the package installed, or PYTHONPATH=build/python build/venv/bin/python tests/performance/byte_transformer.py

The held-out loss of a policy is the loss of its own step on text that no run trains on. Losses are in nats per byte.
"""
import argparse
import hashlib
import json
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import scalide
import scalide.jax
import transformer

DENSE = tuple(str(Path(__file__).parent / "policies" / f"{name}_dense.yaml") for name in ("f8_current", "f8_delayed"))  # linear layers alone, without the last one
POLICIES = ("f32", "bf16", "f8_current", "f8_delayed", "f8_block", "f8_row", "mxfp8", *DENSE)
# Widths and lengths are multiples of 32, and widths of 128, so that blocks of mxfp8 and f8_block are full in all linear layers.
WIDTH, HEADS, BATCH, LENGTH, BYTES = 128, 4, 8, 64, 256
RATE, DECAY, BETAS, EPSILON = np.float32(2e-3), 0.1, (0.9, 0.99), 1e-8
SOURCES = (("/usr/share/common-licenses", "*"), ("/usr/share/doc", "**/copyright"))


def text():
    """The bytes to train on and the bytes held out: each paragraph of the files once, in the order of the paths; one paragraph of 20 is held out."""
    files = sorted({file.resolve() for folder, pattern in SOURCES for file in Path(folder).glob(pattern) if file.is_file()})
    paragraphs = list({b" ".join(part.split()): part for file in files for part in file.read_bytes().split(b"\n\n")}.values())
    trained, held_out = b"\n\n".join(part for i, part in enumerate(paragraphs) if i % 20), b"\n\n".join(paragraphs[::20])
    if len(held_out) <= LENGTH:
        sys.exit(f"cannot train on the texts of {' and '.join(folder for folder, _ in SOURCES)}: {len(held_out)} bytes to hold out are too few. Run on Debian.")
    return tuple(np.frombuffer(part, np.uint8).astype(np.int32) for part in (trained, held_out))


def batches(data, starts):
    """Pairs of bytes and the bytes after them, i32[BATCH, LENGTH], for starts[batches, BATCH]."""
    windows = data[starts[..., None] + np.arange(LENGTH + 1)]
    return [(np.ascontiguousarray(part[:, :-1]), np.ascontiguousarray(part[:, 1:])) for part in windows]


def initial(layers, seed):
    """Parameters and AdamW moments as {"params", "m", "v", "count"}."""
    params = transformer.initial(np.random.default_rng([seed, 0]), layers, BYTES, LENGTH, WIDTH)
    zeros = jax.tree.map(np.zeros_like, params)
    return {"params": params, "m": zeros, "v": zeros, "count": np.float32(0)}


def step(state, x, y, rate):
    """One step of AdamW: (next state, loss before the step)."""
    value, gradients = jax.value_and_grad(transformer.loss)(state["params"], x, y, HEADS)
    count = state["count"] + 1
    m = jax.tree.map(lambda m, g: BETAS[0] * m + (1 - BETAS[0]) * g, state["m"], gradients)
    v = jax.tree.map(lambda v, g: BETAS[1] * v + (1 - BETAS[1]) * g * g, state["v"], gradients)

    def update(p, m, v):
        direction = m / (1 - BETAS[0] ** count) / (jnp.sqrt(v / (1 - BETAS[1] ** count)) + EPSILON)
        return p - rate * (direction + DECAY * p if p.ndim > 1 else direction)

    return {"params": jax.tree.map(update, state["params"], m, v), "m": m, "v": v, "count": count}, value


def rates(steps):
    """Rises over a twentieth of the steps, then falls to 0, so that the last losses vary little."""
    rise = max(1, steps // 20)
    return [RATE * np.float32(min((i + 1) / rise, (steps - i) / max(1, steps - rise))) for i in range(steps)]


def step_of_library(library):
    """The step of a library, with the state of its policy as a part of the state."""

    def run(state, *given):
        training, kept = state
        result, kept = library(training, *given, kept) if kept else (library(training, *given), kept)
        return (result[0], kept), result[1]

    return run


def train(run, state, trained, held_out):
    """The losses of all steps, the mean loss of held-out batches and the median time of a step in ms."""
    losses, times = [], []
    for (x, y), rate in zip(trained, rates(len(trained))):
        start = time.perf_counter()
        state, value = jax.block_until_ready(run(state, x, y, rate))
        times.append(1e3 * (time.perf_counter() - start))
        losses.append(float(value))
    return losses, float(np.mean([float(run(state, x, y, np.float32(0))[1]) for x, y in held_out])), float(np.median(times))


def row_of(name, result, reference):
    """A row of the table; differences are from `reference`, the row of jax.jit, or of the row itself where there is none."""
    losses, held_out, ms = result
    row = {"name": name, "train": float(np.mean(losses[-100:])), "held_out": held_out, "ms": ms}
    other = reference or row
    return row | {"train_difference": row["train"] - other["train"], "held_out_difference": held_out - other["held_out"], "speed_up": other["ms"] / ms,
                  "losses": losses}  # fmt: skip


def show(row, markdown):
    values = [f"{row['train']:.4f}", f"{row['train_difference']:+.4f}", f"{row['held_out']:.4f}", f"{row['held_out_difference']:+.4f}", f"{row['ms']:.1f}",
              f"{row['speed_up']:.2f}"]  # fmt: skip
    if markdown:
        print(f"| `{row['name']}` | {' | '.join(values[:4])} | {values[4]} ms | {values[5]}x |", flush=True)
    else:
        print(f"{row['name']:<12}" + "".join(f"{value:>11}" for value in values), flush=True)


def positive(words):
    if not words.isdigit() or int(words) < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of at least 1, got {words}")
    return int(words)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", type=lambda names: names.split(","), default=POLICIES, help="policies or YAML files, with commas (default: all of the table)")
    parser.add_argument("--steps", type=positive, default=2000, help="number of training steps (default: 2000)")
    parser.add_argument("--layers", type=positive, default=5, help="number of layers (default: 5, one million parameters)")
    parser.add_argument("--held-out", type=positive, default=64, metavar="N", help="number of held-out batches (default: 64)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the initial values and the batches (default: 0)")
    parser.add_argument("--within", type=float, default=float("inf"), metavar="NATS", help="fail if a held-out loss is more than NATS above the loss of JAX")
    parser.add_argument("--cache", type=Path, help="folder of the kernel cache (default: the cache of the user)")
    parser.add_argument("--json", type=Path, help="write the rows, and the losses of all steps, to a file")
    parser.add_argument("--markdown", action="store_true", help="print the rows of the table in docs/numbers.md")
    arguments = parser.parse_args()
    state, (data, other) = initial(arguments.layers, arguments.seed), text()
    starts = np.random.default_rng([arguments.seed, 1]).integers(0, len(data) - LENGTH, (arguments.steps, BATCH))
    even = np.linspace(0, len(other) - LENGTH - 1, arguments.held_out * BATCH).astype(np.int64).reshape(-1, BATCH)
    trained, held_out = batches(data, starts), batches(other, even)
    program = scalide.jax.trace(step, state, *trained[0], RATE, name="step")
    libraries = {policy: scalide.build(program, numerics=policy, cache=arguments.cache) for policy in arguments.policies}  # errors come before the training
    digest = hashlib.sha256(data.tobytes() + other.tobytes()).hexdigest()[:8]
    print(f"{sum(leaf.size for leaf in jax.tree.leaves(state['params']))} parameters, {arguments.steps} steps of {BATCH} x {LENGTH} bytes, seed {arguments.seed}; "
          f"{len(data)} bytes to train on, {len(other)} held out, digest {digest}")  # fmt: skip
    print(f"{'':<12}" + "".join(f"{title:>11}" for title in ("training", "- jax f32", "held-out", "- jax f32", "ms a step", "speed-up")), flush=True)
    rows = [row_of("jax f32", train(jax.jit(step), state, trained, held_out), None)]
    show(rows[0], arguments.markdown)
    for policy, library in libraries.items():
        rows.append(row_of(Path(policy).stem, train(step_of_library(library), (state, library.init()), trained, held_out), rows[0]))
        show(rows[-1], arguments.markdown)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    far = [row["name"] for row in rows if not row["held_out_difference"] <= arguments.within]
    if far:
        sys.exit(f"held-out loss of {', '.join(far)} must be at most {arguments.within:g} nats above the loss of JAX. See the column 'held-out'.")


if __name__ == "__main__":
    main()
