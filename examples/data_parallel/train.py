#!/usr/bin/env python3
"""Trains a network on handwritten digits in several processes, which share each batch. JAX exchanges gradients, and Scalide computes the step.

Usage: train.py [--processes N] [--policy NAME] [--epochs N] [--batch N]
"""
import argparse
import hashlib
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from scalide.jax import parallel

DATA = Path(__file__).resolve().parents[1] / "digits/data"
RATE = 0.2


def read(part: str) -> tuple[np.ndarray, np.ndarray]:
    """Returns the images, [count, 64] from 0 to 1, and their labels."""
    images = np.fromfile(DATA / f"digits-{part}-images.idx3-ubyte", np.uint8)[16:].reshape(-1, 64).astype(np.float32) / 16
    return images, np.fromfile(DATA / f"digits-{part}-labels.idx1-ubyte", np.uint8)[8:].astype(np.int32)


def initial_params() -> list[dict]:
    draw = np.random.default_rng(0)
    return [{"w": draw.normal(size=(rows, columns), scale=rows**-0.5).astype(np.float32), "b": np.zeros(columns, np.float32)}
            for rows, columns in ((64, 128), (128, 10))]  # fmt: skip


def logits(params, images):
    return jax.nn.relu(images @ params[0]["w"] + params[0]["b"]) @ params[1]["w"] + params[1]["b"]


def step(params, images, labels):
    """A step of one process: its part of the batch, and the mean over all processes."""

    def loss(params):
        chosen = jnp.take_along_axis(jax.nn.log_softmax(logits(params, images)), labels[:, None], 1)
        return jax.lax.pmean(-jnp.mean(chosen), "data")

    value, gradient = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda w, g: w - RATE * g, params, gradient), value


def train(rank: int, options) -> None:
    mesh = Mesh(np.array(jax.devices()), ("data",))

    def shared(array, spec):
        """Returns an array of which each process has its part, or all of it."""
        return jax.make_array_from_callback(array.shape, NamedSharding(mesh, spec), lambda part: array[part])

    specs = (P(), P("data"), P("data"))
    update = parallel(step, numerics=options.policy, axes="data")  # all processes use the same scales
    begin = jax.jit(jax.shard_map(update.init, mesh=mesh, in_specs=specs, out_specs=P()))
    update = jax.jit(jax.shard_map(update, mesh=mesh, in_specs=(*specs, P()), out_specs=((P(), P()), P())), donate_argnums=(0, 3))
    params = jax.tree.map(lambda array: shared(array, P()), initial_params())
    images, labels = read("train")
    state = begin(params, shared(images[: options.batch], P("data")), shared(labels[: options.batch], P("data")))
    order = np.random.default_rng(1)
    for epoch in range(options.epochs):
        losses = []
        for chosen in np.split(order.permutation(len(images)), len(images) // options.batch):
            (params, value), state = update(params, shared(images[chosen], P("data")), shared(labels[chosen], P("data")), state)
            losses.append(value)
        if rank == 0:
            print(f"epoch {epoch + 1}: loss {np.mean([float(value) for value in losses]):.6f}", flush=True)
    params = jax.tree.map(lambda array: np.asarray(array.addressable_data(0)), params)
    images, labels = read("test")
    right = np.mean(np.argmax(logits(params, images), 1) == labels)
    digest = hashlib.sha256(b"".join(leaf.tobytes() for leaf in jax.tree.leaves(params))).hexdigest()[:16]
    print(f"process {rank}: {100 * right:.1f} % of the test images are right, parameters {digest}", flush=True)


def wait(started: list) -> int:
    """Waits for all processes, and ends the others if one fails, because they would wait for it. Returns the exit code."""
    while any(process.poll() is None for process in started):
        if any(process.poll() for process in started):
            for process in started:
                process.kill()
        time.sleep(0.05)
    failed = [rank for rank, process in enumerate(started) if process.returncode > 0]
    for rank in failed:
        print(f"process {rank} failed with exit code {started[rank].returncode}, so the others were ended", file=sys.stderr)
    return 1 if any(process.returncode for process in started) else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--policy", default="f32", help="a policy such as bf16, f8_master or f8_delayed")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch", type=int, default=60, help="images of a step, in all processes together; a divisor of 1500")
    options = parser.parse_args()
    if options.processes < 1 or 1500 % options.batch or options.batch % options.processes:
        parser.error(f"--batch: must divide 1500 and be a multiple of --processes, got {options.batch} and {options.processes}")
    if "DATA_PARALLEL_RANK" in os.environ:
        rank = int(os.environ["DATA_PARALLEL_RANK"])
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(os.environ["DATA_PARALLEL_ADDRESS"], options.processes, rank)
        train(rank, options)
        return 0
    if options.processes == 1:
        train(0, options)
        return 0
    try:
        socket.gethostbyname(socket.gethostname())  # gloo asks for the address of this machine
    except OSError:
        parser.error(f"--processes: the name of this machine, {socket.gethostname()}, has no address. Add the line '127.0.0.1 {socket.gethostname()}' to /etc/hosts")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    started = [subprocess.Popen([sys.executable, *sys.argv], env=os.environ | {"DATA_PARALLEL_RANK": str(rank), "DATA_PARALLEL_ADDRESS": address})
               for rank in range(options.processes)]  # fmt: skip
    return wait(started)


if __name__ == "__main__":
    sys.exit(main())
