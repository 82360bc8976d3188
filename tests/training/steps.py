"""A training step of the matrix, and what JAX makes of it in f32."""
import jax
import numpy as np

import models
import optimizers


def step_of(name: str, depth: int, optimizer: str, use=models.Use):
    """step(params, state, x, y[, factors]) -> params, state, loss; `factors` = {"weight": 2^j, "loss": 2^k}: parameters are stored times the one,
    the loss is taken times the other, and f32 gives the digits that it gives without."""
    model = models.model(name, depth)
    update = optimizers.OPTIMIZERS[optimizer][1]

    def step(params, state, x, y, factors=None):
        weight, scale = (factors["weight"], factors["loss"]) if factors else (None, None)

        def scaled(params):
            return optimizers.times(model.loss(use(None if weight is None else 1 / weight), params, x, y), scale)

        loss, gradients = jax.value_and_grad(scaled)(params)
        gradient = None if weight is None else scale / weight
        params, state = update(np.float32(model.rate), (weight, gradient), params, state, gradients)
        return params, state, loss

    return step


def start(name: str, depth: int, optimizer: str, bias: float, weight: float = 1.0):
    """Parameters (times `weight`), the optimizer's state, batches."""
    params, batches = models.data(name, depth, bias)
    params = jax.tree.map(lambda p: p * np.float32(weight), params)
    return params, jax.tree.map(np.asarray, optimizers.OPTIMIZERS[optimizer][0](params)), batches


def losses_in_jax(name: str, depth: int, optimizer: str, bias: float, steps: int, use=models.Use, batches: int | None = None):
    """The loss of every step, by jax.jit, on the first `batches` batches."""
    step = jax.jit(step_of(name, depth, optimizer, use))
    params, state, drawn = start(name, depth, optimizer, bias)
    batches = drawn[:batches]
    losses = []
    for i in range(steps):
        params, state, loss = step(params, state, *batches[i % len(batches)])
        losses.append(loss)
    return np.asarray(losses, np.float64)


def deviations(losses, wanted, floor=0.05):
    """How far each loss is from the one wanted, relative to it or, where it is small, to `floor` of the first; infinite where it is none."""
    distance = np.abs(losses - wanted) / np.maximum(wanted, floor * wanted[0])
    return np.where(np.isfinite(distance), distance, np.inf)
