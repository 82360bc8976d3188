"""Updates that repeat: small steps in the same direction, which a rounded state has to add up as f32 does.

Each case is a step (state, *batch) -> (state, loss), its first state, one batch, and what counts as progress: a number made of the first
and the last state, which has to be between .99 and 1.01 of that of f32 (of `f8_master`, where the products are in f8)."""
from typing import Any, Callable, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np


class Case(NamedTuple):
    step: Callable
    state: Any
    batch: tuple
    steps: int
    progress: Callable  #: (first state, last state) -> number; the states as float64 arrays


def counter(steps):
    return Case(lambda state: ({"t": state["t"] + 1, "many": state["many"] + 1}, state["t"].sum()),
                {"t": np.zeros((), np.float32), "many": np.zeros((32, 32), np.float32)}, (), steps, lambda first, last: last["many"].mean())  # fmt: skip


def average(decay, steps):
    return Case(lambda state, x: (decay * state + (1 - decay) * x, state[0, 0]), np.zeros((32, 32), np.float32), (np.ones((32, 32), np.float32),), steps, lambda first, last: last.mean())


def weight_decay(rate, steps):
    w = np.random.default_rng(1).normal(size=(64, 64)).astype(np.float32)
    return Case(lambda w: (w - rate * w, jnp.sum(w * w)), w, (), steps, lambda first, last: np.abs(last).mean())


def rows_never_drawn(steps):
    """An embedding of which every batch draws the same rows; decay moves all."""
    table = np.random.default_rng(2).normal(size=(64, 32)).astype(np.float32)

    def step(table, rows):
        loss, gradient = jax.value_and_grad(lambda t: jnp.mean(jnp.square(t[rows])))(table)
        return table - 1e-2 * (gradient + 1e-2 * table), loss

    return Case(step, table, (np.arange(8, dtype=np.int32),), steps, lambda first, last: np.abs(last[8:]).mean())


def regression():
    random = np.random.default_rng(0)
    x = random.normal(size=(128, 32)).astype(np.float32)
    y = np.tanh(x @ random.normal(size=(32, 8)).astype(np.float32) / 5)
    weights = [(random.normal(size=(32, 64)) / 6).astype(np.float32), (random.normal(size=(64, 8)) / 8).astype(np.float32)]
    return weights, (x, y)


def loss_of(weights, x, y):
    return jnp.mean(jnp.square(jnp.tanh(x @ weights[0]) @ weights[1] - y))


def learned(first, last, batch):
    """By how much the loss of the weights has fallen, in f32: in f8 its own noise is as large as what 20,000 steps at 1e-5 reach."""
    return float(loss_of(first, *batch) - loss_of(last, *batch))


def descent(rate, steps):
    weights, batch = regression()

    def step(weights, x, y):
        loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
        return [w - rate * g for w, g in zip(weights, gradients)], loss

    return Case(step, weights, batch, steps, lambda first, last: learned(first, last, batch))


def adam(rate, steps):
    weights, batch = regression()
    zeros = [np.zeros_like(w) for w in weights]

    def step(state, x, y):
        weights, m, v, t = state
        t = t + 1
        loss, gradients = jax.value_and_grad(loss_of)(weights, x, y)
        m = [0.9 * a + 0.1 * g for a, g in zip(m, gradients)]
        v = [0.999 * a + 0.001 * g * g for a, g in zip(v, gradients)]
        size = rate * jnp.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        return ([w - size * a / (jnp.sqrt(b) + 1e-8) for w, a, b in zip(weights, m, v)], m, v, t), loss

    return Case(step, (weights, zeros, zeros, np.zeros((), np.float32)), batch, steps, lambda first, last: learned(first[0], last[0], batch))


def cases(scale: float = 1) -> dict:
    """By name; `scale` shortens all runs."""
    count = lambda steps: max(1, int(steps * scale))  # noqa: E731
    return {
        "counter": counter(count(100_000)),
        **{f"average of {decay}": average(decay, count(5 / (1 - decay))) for decay in (0.99, 0.999, 0.9999)},
        "weight decay": weight_decay(1e-4, count(10_000)),
        "rows never drawn": rows_never_drawn(count(5_000)),
        **{f"descent at {rate:g}": descent(rate, count(20_000)) for rate in (1e-2, 1e-3, 1e-4, 1e-5)},
        **{f"adam at {rate:g}": adam(rate, count(20_000)) for rate in (1e-2, 1e-3, 1e-4, 1e-5)},
    }
