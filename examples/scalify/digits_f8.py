"""digits_f16.py with the operands of matrix products in one byte: e4m3 on the way forward, e5m2 on the way back, gradients of the logits
rescaled by their norm.

Usage: digits_f8.py (the same in plain f32: digits_f8.py --plain)
"""
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from digits_data import accuracy, batches, cross_entropy, load, main
from digits_f16 import BATCH, RATE, WIDTH, init_params

import scalide.jax as jsa


def predict(params, images, f8=True):
    forward = jsa.ops.reduce_precision_on_forward if f8 else lambda x, dtype: x
    backward = jsa.ops.reduce_precision_on_backward if f8 else lambda x, dtype: x
    activations = images
    for w, b in params[:-1]:
        w = forward(w, ml_dtypes.float8_e4m3fn)
        activations = forward(activations, ml_dtypes.float8_e4m3fn)
        outputs = backward(jnp.dot(activations, w), ml_dtypes.float8_e5m2)
        activations = jnp.maximum(outputs + b, 0)
    w, b = params[-1]
    logits = backward(jnp.dot(forward(activations, ml_dtypes.float8_e4m3fn), w), ml_dtypes.float8_e5m2)
    return jsa.ops.dynamic_rescale_l2_grad(logits + b)


def loss(params, batch, f8=True):
    images, labels = batch
    return cross_entropy(predict(params, images, f8), labels)


def update(params, batch, f8):
    gradients = jax.grad(loss)(params, batch, f8)
    return [(w - RATE * dw, b - RATE * db) for (w, b), (dw, db) in zip(params, gradients)]


def train(scalify=True, epochs=4):
    """As in digits_f16.py; the plain run is in f32 without the casts."""
    images, labels = load("train")
    params, step = init_params(), jax.jit(update, static_argnums=2)
    if scalify:
        params = jsa.tree.astype(jsa.as_scaled_array(params, scale=np.float32(WIDTH)), np.float16)
        step = jax.jit(jsa.scalify(update, static_argnums=2), static_argnums=2)
    losses, steps = [], len(images) // BATCH
    for i, batch in enumerate(batches(images, labels, BATCH, epochs)):
        if scalify:
            batch = jsa.tree.astype(jsa.as_scaled_array(batch, scale=np.float32(1)), np.float16)
        params = step(params, batch, scalify)
        if (i + 1) % steps == 0:
            losses.append(float(loss(jsa.asarray(params, dtype=np.float32), (images, labels), f8=False)))
    test_images, test_labels = load("test")
    return losses, accuracy(predict(jsa.asarray(params, dtype=np.float32), test_images, f8=False), test_labels)


if __name__ == "__main__":
    main(train, __doc__)
