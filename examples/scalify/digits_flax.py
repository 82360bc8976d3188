"""A Flax module trained with optax's Adam; weights and the optimizer's state in scaled f16. Neither library knows of it.

Usage: digits_flax.py (the same in plain f32: digits_flax.py --plain)
"""
import jax
import numpy as np
import optax
from digits_data import accuracy, batches, cross_entropy, load, main
from flax import linen as nn

import scalide.jax as jsa

BATCH = 100


class Perceptron(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Dense(features=128)(x))
        x = nn.relu(nn.Dense(features=128)(x))
        return nn.Dense(features=10)(x)


model = Perceptron()
optimizer = optax.adam(learning_rate=0.001, eps=2**-16)


def loss(params, batch):
    images, labels = batch
    return cross_entropy(model.apply(params, images), labels)


def update(params, state, batch):
    gradients = jax.grad(loss)(params, batch)
    changes, state = optimizer.update(gradients, state, params)
    return optax.apply_updates(params, changes), state


def train(scalify=True, epochs=4):
    """The losses of all training examples after each epoch, in f32, and the accuracy of the test examples."""
    images, labels = load("train")
    params = model.init(jax.random.PRNGKey(42), images[:1])
    state, step = optimizer.init(params), jax.jit(update)
    if scalify:
        params = jsa.tree.astype(jsa.as_scaled_array(params, scale=np.float32(1)), np.float16)
        state = jsa.tree.astype(jsa.as_scaled_array(state, scale=np.float32(0.0001)), np.float16, floating_only=True)
        step = jax.jit(jsa.scalify(update))
    losses, steps = [], len(images) // BATCH
    for i, batch in enumerate(batches(images, labels, BATCH, epochs)):
        if scalify:
            batch = jsa.as_scaled_array(jsa.tree.astype(batch, np.float16), scale=np.float32(1))
        params, state = step(params, state, batch)
        if (i + 1) % steps == 0:
            losses.append(float(loss(jsa.asarray(params, dtype=np.float32), (images, labels))))
    test_images, test_labels = load("test")
    return losses, accuracy(model.apply(jsa.asarray(params, dtype=np.float32), test_images), test_labels)


if __name__ == "__main__":
    main(train, __doc__)
