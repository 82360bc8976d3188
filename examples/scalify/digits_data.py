"""The digits of examples/digits as NumPy arrays, and what the training scripts share."""
import argparse
import pathlib

import jax.numpy as jnp
import numpy as np
from jax import lax

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "digits" / "data"
BRIGHTEST = 16  # pixels are counts from 0 to 16


def load(part):
    """Images f32 [n, 64] in [0, 1] and labels f32 [n, 10], one of them 1; part is "train" or "test"."""
    images = np.frombuffer((FOLDER / f"digits-{part}-images.idx3-ubyte").read_bytes(), np.uint8, offset=16)
    labels = np.frombuffer((FOLDER / f"digits-{part}-labels.idx1-ubyte").read_bytes(), np.uint8, offset=8)
    return images.reshape(len(labels), -1).astype(np.float32) / BRIGHTEST, np.eye(10, dtype=np.float32)[labels]


def batches(images, labels, size, epochs, seed=0):
    """Whole batches of shuffled examples, epoch by epoch."""
    random = np.random.RandomState(seed)
    for _ in range(epochs):
        order = random.permutation(len(images))
        for start in range(0, len(images) - size + 1, size):
            chosen = order[start : start + size]
            yield images[chosen], labels[chosen]


def log_softmax(logits):
    shifted = logits - lax.stop_gradient(jnp.max(logits, axis=1, keepdims=True))
    return shifted - jnp.log(jnp.sum(jnp.exp(shifted), axis=1, keepdims=True))


def cross_entropy(logits, labels):
    return -jnp.mean(jnp.sum(log_softmax(logits) * labels, axis=1))


def accuracy(logits, labels):
    return float(jnp.mean(jnp.argmax(logits, 1) == jnp.argmax(labels, 1)))


def main(train, doc):
    """The command line of a script: trains and prints."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plain", action="store_true", help="f32 and jax.jit alone")
    plain = parser.parse_args().plain
    losses, right = train(scalify=not plain)
    print(f"{'plain f32' if plain else 'scaled'}: losses {' '.join(f'{loss:.4f}' for loss in losses)}, test accuracy {right:.4f}")
