#!/usr/bin/env python3
"""Trains the character model from JAX in one policy, with a progress line, metrics and checkpoints, and writes text with it.

Usage: train.py [--policy NAME] [--folder FOLDER] [--steps N] [--every N] [--layers N] [--generate N] [--prompt TEXT] [--seed N] [--text FOLDER]
The options mean what they mean in the C++ program, see README.md. A run that was stopped goes on if you start it again.
"""
import argparse
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

import scalide
import scalide.jax

BYTES, BATCH, LENGTH, WIDTH, HEADS = 256, 8, 128, 128, 4


def initial_params(layers: int, seed: int) -> dict:
    draw = np.random.default_rng(seed)

    def weight(rows, columns, deviation=None):
        return (draw.normal(size=(rows, columns)) * (deviation or rows**-0.5)).astype(np.float32)

    def norm():
        return {"gain": np.ones(WIDTH, np.float32), "bias": np.zeros(WIDTH, np.float32)}

    def layer():
        return {"norm1": norm(), "qkv": weight(WIDTH, 3 * WIDTH), "out": weight(WIDTH, WIDTH), "norm2": norm(), "up": weight(WIDTH, 4 * WIDTH),
                "down": weight(4 * WIDTH, WIDTH)}  # fmt: skip

    return {"tokens": weight(BYTES, WIDTH, 0.02), "positions": weight(LENGTH, WIDTH, 0.02), "layers": [layer() for _ in range(layers)], "norm": norm(),
            "head": weight(WIDTH, BYTES)}  # fmt: skip


def normed(p, x):
    centred = x - jnp.mean(x, -1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred * centred, -1, keepdims=True) + 1e-5) * p["gain"] + p["bias"]


def block(p, x, attend):
    """One layer. `attend` gets query, key and value [batch, length, heads, size]."""
    heads = (*x.shape[:-1], HEADS, WIDTH // HEADS)
    query, key, value = (part.reshape(heads) for part in jnp.split(normed(p["norm1"], x) @ p["qkv"], 3, -1))
    x = x + attend(query, key, value).reshape(x.shape) @ p["out"]
    return x + jax.nn.gelu(normed(p["norm2"], x) @ p["up"]) @ p["down"]


def mean_loss(params, ids):
    """The mean cross-entropy in nats of the byte after each byte, for ids [batch, LENGTH + 1]."""
    x = params["tokens"][ids[:, :-1]] + params["positions"]
    for p in params["layers"]:
        x = block(p, x, lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True))
    return optax.softmax_cross_entropy_with_integer_labels(normed(params["norm"], x) @ params["head"], ids[:, 1:]).mean()


def optimizer_of(steps: int):
    schedule = optax.cosine_onecycle_schedule(steps, 2e-3)
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, b2=0.99, weight_decay=0.1, mask=lambda params: jax.tree.map(lambda p: p.ndim > 1, params)))


def step_of(optimizer):
    def step(params, state, ids):
        loss, gradients = jax.value_and_grad(mean_loss)(params, ids)
        updates, state = optimizer.update(gradients, state, params)
        return loss, optax.apply_updates(params, updates), state

    return step


def next_logits(params, caches, byte, position):
    """One token: writes one row of each cache, [layers, 2, 1, LENGTH, HEADS, size] as a list, and returns the logits of the next byte."""
    x, new = (params["tokens"][byte] + params["positions"][position])[None, None], []
    is_past = (jnp.arange(LENGTH) <= position)[None, None, None]

    def attend(query, key, value):
        keys, values = (jax.lax.dynamic_update_slice_in_dim(cache, row, position, 1) for cache, row in zip(caches[len(new)], (key, value)))
        new.append((keys, values))
        return jax.nn.dot_product_attention(query, keys, values, mask=is_past)

    for p in params["layers"]:
        x = block(p, x, attend)
    return (normed(params["norm"], x) @ params["head"])[0, 0], new


def read_text(folder: str):
    """The text to train on and the text held out: each paragraph once, in the order of the files; one of 20 is held out."""
    if not Path(folder).is_dir():
        sys.exit(f"train.py: --text must be a folder with text files, got {folder!r}")
    files = sorted({file.resolve() for file in Path(folder).iterdir() if file.is_file()})
    paragraphs = list(dict.fromkeys(part for file in files for part in file.read_bytes().split(b"\n\n")))
    trained, held_out = b"\n\n".join(part for i, part in enumerate(paragraphs) if i % 20), b"\n\n".join(paragraphs[::20])
    if len(held_out) < BATCH * (LENGTH + 1):
        sys.exit(f"train.py: {folder}: must have text files with at least {20 * BATCH * (LENGTH + 1)} bytes. Use --text FOLDER.")
    return [np.frombuffer(part, np.uint8).astype(np.int32) for part in (trained, held_out)]


def batch(text, seed: int, number: int):
    """The batch of a step, drawn from the seed and the number: a run that goes on sees the same batches."""
    starts = np.random.default_rng([seed, number]).integers(0, len(text) - LENGTH, BATCH)
    return text[starts[:, None] + np.arange(LENGTH + 1)]


def held_out_loss(loss, params, text):
    count = len(text) // (BATCH * (LENGTH + 1))
    batches = text[: count * BATCH * (LENGTH + 1)].reshape(count, BATCH, LENGTH + 1)
    return float(np.mean([loss(params, ids) for ids in batches]))


def train(given, text, held_out):
    optimizer = optimizer_of(given.steps)
    params = initial_params(given.layers, given.seed)
    moments = jax.tree.map(np.asarray, optimizer.init(params))
    program = scalide.jax.trace(step_of(optimizer), params, moments, batch(text, given.seed, 0), donate_argnums=(0, 1))
    library = scalide.build(program, numerics=given.policy)
    loss = scalide.build(scalide.jax.trace(mean_loss, params, batch(text, given.seed, 0)))
    params, moments = library.convert(params, 0), library.convert(moments, 1)  # in the formats of the policy
    tree = {"params": params, "moments": moments, "policy": library.init(params, moments, batch(text, given.seed, 0))}
    checkpoints = scalide.Checkpoints(given.folder, keep=3)
    first = checkpoints.latest() or 0
    if first:
        tree = checkpoints.restore(like=tree, library=library)
        print(f"resumed after step {first}")
    start = time.monotonic()
    with scalide.Metrics(given.folder, tensorboard=True) as metrics:
        for number in range(first, given.steps):
            state = [tree["policy"]] if tree["policy"] else []
            result = library.donate(tree["params"], tree["moments"], batch(text, given.seed, number), *state)
            (value, params, moments), policy = result if state else (result, {})
            tree = {"params": params, "moments": moments, "policy": policy}
            if not np.isfinite(value):
                sys.exit(f"train.py: the loss of step {number} is not finite")
            metrics.write(number, {"loss": value})
            done = number + 1
            if done % 20 == 0:
                rate = (done - first) / (time.monotonic() - start)
                print(f"\rstep {done} of {given.steps}  loss {value:.4f}  {rate * BATCH * LENGTH:.0f} tokens/s  {(given.steps - done) / rate:.0f} s left   ", end="", flush=True)
            if done % given.every == 0 or done == given.steps:
                checkpoints.save(done, tree, library=library)
                held = held_out_loss(loss, library.convert(tree["params"], 0, to="f32"), held_out)
                metrics.write(number, {"held_out": held})
                print(f"\nheld-out loss {held:.4f}")
    return library.convert(tree["params"], 0, to="f32")


def generate(given, params):
    """Prints text, and the time of a token next to jax.jit."""
    size = (1, LENGTH, HEADS, WIDTH // HEADS)
    caches = [tuple(scalide.empty(size) for _ in range(2)) for _ in params["layers"]]
    for pair in caches:
        for cache in pair:
            cache[:] = 0
    arguments = (params, caches, np.int32(0), np.int32(0))
    library = scalide.build(scalide.jax.trace(next_logits, *arguments, donate_argnums=1))
    draw, text = np.random.default_rng(given.seed), list(given.prompt.encode())
    count = min(len(text) + given.generate, LENGTH)
    own = 0.0
    for position in range(count - 1):
        start = time.perf_counter()
        logits, caches = library.donate(params, caches, np.int32(text[position]), np.int32(position))
        own += (time.perf_counter() - start) / (count - 1)
        if position + 1 == len(text):
            weights = np.exp((logits - logits.max()) / 0.8)  # a temperature below 1 prefers likely bytes
            text.append(int(draw.choice(BYTES, p=weights / weights.sum())))
    jitted, caches = jax.jit(next_logits, donate_argnums=1), jax.tree.map(jnp.asarray, caches)
    on_device = jax.tree.map(jnp.asarray, params)
    for position in range(2 * count):
        if position == count:
            start = time.perf_counter()
        logits, caches = jitted(on_device, caches, np.int32(text[position % count]), np.int32(position % count))
        logits.block_until_ready()
    rival = (time.perf_counter() - start) / count
    print(bytes(text).decode(errors="replace"))
    print(f"{1e3 * own:.3f} ms for each token, jax.jit {1e3 * rival:.3f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("policy", "f32"), ("folder", "run"), ("text", "/usr/share/common-licenses"), ("prompt", "The license ")):
        parser.add_argument(f"--{name}", default=default)
    for name, default in (("steps", 2000), ("every", 200), ("layers", 6), ("generate", 0), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    text, held_out = read_text(given.text)
    params = train(given, text, held_out)
    if given.generate > 0:
        generate(given, params)


if __name__ == "__main__":
    main()
