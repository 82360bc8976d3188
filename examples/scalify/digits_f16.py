"""A perceptron from scratch, everything in scaled f16: parameters without a master copy, SGD. Only the lines with `jsa` make it so.

Usage: digits_f16.py (the same in plain f32: digits_f16.py --plain)
"""
import jax
import jax.numpy as jnp
import numpy as np
from digits_data import accuracy, batches, cross_entropy, load, main

import scalide.jax as jsa

LAYERS, WIDTH, RATE, BATCH = [64, 128, 128, 10], 0.1, 0.1, 100


def init_params(seed=0):
    random = np.random.RandomState(seed)
    return [(WIDTH * random.randn(m, n), WIDTH * random.randn(n)) for m, n in zip(LAYERS[:-1], LAYERS[1:])]


def predict(params, images):
    activations = images
    for w, b in params[:-1]:
        activations = jnp.maximum(jnp.dot(activations, w) + b, 0)
    w, b = params[-1]
    return jnp.dot(activations, w) + b


def loss(params, batch):
    images, labels = batch
    # Labels are 0 or 1, gradients of the mean are small: a scale that suits both.
    labels = jsa.lax.rebalance(labels, np.float32(1 / 8))
    return cross_entropy(predict(params, images), labels)


def update(params, batch):
    gradients = jax.grad(loss)(params, batch)
    return [(w - RATE * dw, b - RATE * db) for (w, b), (dw, db) in zip(params, gradients)]


def train(scalify=True, epochs=4):
    """The losses of all training examples after each epoch, in f32, and the accuracy of the test examples."""
    images, labels = load("train")
    params, step = init_params(), jax.jit(update)
    if scalify:
        params = jsa.as_scaled_array(params, scale=np.float32(WIDTH))
        params = jsa.tree.astype(params, np.float16)
        step = jax.jit(jsa.scalify(update))
    losses, steps = [], len(images) // BATCH
    for i, batch in enumerate(batches(images, labels, BATCH, epochs)):
        if scalify:
            batch = jsa.tree.astype(jsa.as_scaled_array(batch, scale=np.float32(1)), np.float16)
        with jsa.ScalifyConfig(rounding_mode=jsa.Pow2RoundMode.DOWN, scale_dtype=np.float32):
            params = step(params, batch)
        if (i + 1) % steps == 0:
            losses.append(float(loss(jsa.asarray(params, dtype=np.float32), (images, labels))))
    test_images, test_labels = load("test")
    return losses, accuracy(predict(jsa.asarray(params, dtype=np.float32), test_images), test_labels)


if __name__ == "__main__":
    main(train, __doc__)
