"""A convolutional Flax module, optax's SGD with momentum in a TrainState, everything in scaled f16. What is kept from step to step is rescaled by
its largest magnitude: nothing else would hold its scale, which grows with every update when the gradient's is larger than it should be.

Usage: digits_cnn.py (the same in plain f32: digits_cnn.py --plain)
"""
import jax
import jax.numpy as jnp
import numpy as np
import optax
from digits_data import accuracy, batches, cross_entropy, load, main
from flax import linen as nn
from flax.training.train_state import TrainState

import scalide.jax as jsa

BATCH = 100


class Convolutional(nn.Module):
    @nn.compact
    def __call__(self, x):
        for features in (8, 16):
            x = nn.relu(nn.Conv(features, kernel_size=(3, 3))(x))
            x = nn.avg_pool(x, window_shape=(2, 2), strides=(2, 2))
        x = nn.relu(nn.Dense(32)(x.reshape((len(x), -1))))
        return nn.Dense(10)(x)


def pictures(part):
    images, labels = load(part)
    return images.reshape(-1, 8, 8, 1), labels


def loss(params, apply, images, labels):
    return cross_entropy(apply({"params": params}, images), labels)


def update(state, images, labels):
    gradients = jax.grad(loss)(state.params, state.apply_fn, images, labels)
    state = state.apply_gradients(grads=gradients)
    rescaled = jax.tree_util.tree_map(jsa.ops.dynamic_rescale_max, (state.params, state.opt_state))
    return state.replace(params=rescaled[0], opt_state=rescaled[1])


def train(scalify=True, epochs=4):
    """The losses of all training examples after each epoch, in f32, and the accuracy of the test examples."""
    images, labels = pictures("train")
    model = Convolutional()
    params = model.init(jax.random.PRNGKey(0), images[:1])["params"]
    state, step = TrainState.create(apply_fn=model.apply, params=params, tx=optax.sgd(0.05, momentum=0.9)), jax.jit(update)
    if scalify:
        state = jsa.tree.astype(jsa.as_scaled_array(state, scale=np.float32(0.25)), np.float16, floating_only=True)
        step = jax.jit(jsa.scalify(update))
    losses, steps = [], len(images) // BATCH
    for i, batch in enumerate(batches(images, labels, BATCH, epochs)):
        if scalify:
            batch = jsa.tree.astype(jsa.as_scaled_array(batch, scale=np.float32(1)), np.float16)
        state = step(state, *batch)
        if (i + 1) % steps == 0:
            losses.append(float(loss(jsa.asarray(state.params, dtype=np.float32), model.apply, images, labels)))
    test_images, test_labels = pictures("test")
    logits = model.apply({"params": jsa.asarray(state.params, dtype=np.float32)}, jnp.asarray(test_images))
    return losses, accuracy(logits, test_labels)


if __name__ == "__main__":
    main(train, __doc__)
