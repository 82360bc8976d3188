"""Optimizers in plain jnp, each (start, update): start(params) -> state; update(rate, factors, params, state, gradients) -> (params, state).

`factors` are (parameter, gradient): stored parameters and gradients are that many times their usual values, and the update is that many times the
usual one. With powers of two f32 gives the same digits as with (1, 1). None is (1, 1) without the multiplications.
"""
import jax
import jax.numpy as jnp


def times(value, factor, divisor=None):
    """value * factor / divisor, where None is 1."""
    value = value if factor is None else value * factor
    return value if divisor is None else value / divisor


def mapped(fn, *trees):
    """fn of the leaves, whose results are so many trees."""
    leaves, tree = jax.tree.flatten(trees[0])
    results = [fn(*parts) for parts in zip(leaves, *map(jax.tree.leaves, trees[1:]))]
    return tuple(jax.tree.unflatten(tree, part) for part in zip(*results))


def zeros(params):
    return jax.tree.map(jnp.zeros_like, params)


def sgd(rate, factors, params, state, gradients):
    parameter, gradient = factors
    rate = times(rate, parameter, gradient)
    return jax.tree.map(lambda p, g: p - rate * g, params, gradients), state


def momentum(rate, factors, params, state, gradients):
    parameter, gradient = factors
    rate = times(rate / 5, parameter, gradient)

    def update(p, m, g):
        m = 0.9 * m + g
        return p - rate * m, m

    return mapped(update, params, state, gradients)


def adam(rate, factors, params, state, gradients, decay=0.0):
    parameter, gradient = factors
    rate, epsilon = rate / 200, times(1e-8, gradient)
    count = state["count"] + 1
    corrections = 1 - 0.9**count, 1 - 0.999**count

    def update(p, m, v, g):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * (g * g)
        direction = (m / corrections[0]) / (jnp.sqrt(v / corrections[1]) + epsilon)
        p_next = p - times(rate, parameter) * direction
        return (p_next - rate * decay * p if decay else p_next), m, v

    params, m, v = mapped(update, params, state["m"], state["v"], gradients)
    return params, {"m": m, "v": v, "count": count}


def adamw(*args):
    return adam(*args, decay=0.1)


def moments(params):
    return {"m": zeros(params), "v": zeros(params), "count": jnp.zeros((), jnp.float32)}


OPTIMIZERS = {"sgd": (lambda params: {}, sgd), "momentum": (zeros, momentum), "adam": (moments, adam), "adamw": (moments, adamw)}
