"""Programs that consist of loops, at any size, as users of JAX write them: recurrent networks, state space models, a GPT of stacked layers, solvers,
filters and decoders. A model is a loss of parameters and data; its parameters are a tree of f32 arrays."""
from __future__ import annotations

import dataclasses
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

ADAM = optax.adam(1e-2)


@dataclasses.dataclass
class Model:
    """`outputs` gives what the model predicts and `loss` what training minimizes, both of (params, *data)."""

    outputs: Callable
    loss: Callable
    params: Any
    data: tuple

    def step(self, params, state, *data):
        """A training step with Adam."""
        value, gradient = jax.value_and_grad(self.loss)(params, *data)
        updates, state = ADAM.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, value

    def moments(self):
        """The state of Adam after some steps. After the first step, the update of a gradient near 0 would be noise."""
        count, draw = np.int32(10), np.random.default_rng(1)
        mu = jax.tree.map(lambda p: np.asarray(draw.normal(size=p.shape) * 0.03, np.float32), self.params)
        nu = jax.tree.map(lambda p: np.full(p.shape, 1e-2, np.float32), self.params)
        first, *rest = ADAM.init(self.params)
        return (first._replace(count=count, mu=mu, nu=nu), *rest)


class Draw:
    """Random arrays."""

    def __init__(self, seed: int = 0):
        self.generator = np.random.default_rng(seed)

    def normal(self, *shape, scale=1.0):
        return np.asarray(self.generator.normal(size=shape) * scale, np.float32)

    def weight(self, *shape):
        return self.normal(*shape, scale=shape[-2] ** -0.5)

    def tokens(self, count, *shape):
        return self.generator.integers(0, count, shape).astype(np.int32)


def cross_entropy(logits, targets):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], -1))


def language_model(cell: Callable, params: dict, carry, steps: int, batch: int, tokens: int, draw: Draw) -> Model:
    """Predicts each next token with a recurrent cell."""

    def outputs(params, x, y):
        return lax.scan(lambda h, e: cell(params, h, e), carry, params["embed"][x])[1] @ params["head"]

    x = draw.tokens(tokens, steps + 1, batch)
    return Model(outputs, lambda params, x, y: cross_entropy(outputs(params, x, y), y), params, (x[:-1], x[1:]))


def lstm(steps: int, batch=2, width=8, tokens=11) -> Model:
    draw = Draw()
    params = {"embed": draw.normal(tokens, width), "w": draw.weight(width, 4 * width), "u": draw.weight(width, 4 * width),
              "b": np.zeros(4 * width, np.float32), "head": draw.weight(width, tokens)}  # fmt: skip

    def cell(p, state, x):
        h, c = state
        i, f, g, o = jnp.split(x @ p["w"] + h @ p["u"] + p["b"], 4, -1)
        c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zeros = np.zeros((batch, width), np.float32)
    return language_model(cell, params, (zeros, zeros), steps, batch, tokens, draw)


def gru(steps: int, batch=2, width=8, tokens=11) -> Model:
    draw = Draw()
    params = {"embed": draw.normal(tokens, width), "w": draw.weight(width, 3 * width), "u": draw.weight(width, 3 * width), "head": draw.weight(width, tokens)}

    def cell(p, h, x):
        xr, xz, xn = jnp.split(x @ p["w"], 3, -1)
        hr, hz, hn = jnp.split(h @ p["u"], 3, -1)
        r, z = jax.nn.sigmoid(xr + hr), jax.nn.sigmoid(xz + hz)
        h = (1 - z) * jnp.tanh(xn + r * hn) + z * h
        return h, h

    return language_model(cell, params, np.zeros((batch, width), np.float32), steps, batch, tokens, draw)


def mamba(steps: int, batch=2, width=8, states=4, tokens=11) -> Model:
    """One block with a selective scan (Gu and Dao, 2023)."""
    draw, inner, rank = Draw(), 2 * width, 2
    params = {"embed": draw.normal(tokens, width), "in": draw.weight(width, 2 * inner), "conv": draw.normal(4, inner, scale=0.5), "bc": draw.weight(inner, 2 * states),
              "rank": draw.weight(inner, rank), "dt": draw.weight(rank, inner), "dt_bias": np.full(inner, -2, np.float32), "d": np.ones(inner, np.float32),
              "a_log": np.log(np.tile(np.arange(1, states + 1, dtype=np.float32), (inner, 1))), "out": draw.weight(inner, width),
              "head": draw.weight(width, tokens)}  # fmt: skip

    def outputs(p, x, y):
        residual = p["embed"][x]
        u, gate = jnp.split(residual @ p["in"], 2, -1)
        padded = jnp.pad(u, ((0, 0), (3, 0), (0, 0)))
        u = jax.nn.silu(sum(padded[:, k : k + steps] * p["conv"][k] for k in range(4)))
        b, c = jnp.split(u @ p["bc"], 2, -1)
        dt = jax.nn.softplus(u @ p["rank"] @ p["dt"] + p["dt_bias"])
        a = -jnp.exp(p["a_log"])

        def step(h, row):
            u, dt, b, c = row
            h = jnp.exp(dt[..., None] * a) * h + (dt * u)[..., None] * b[:, None]
            return h, jnp.einsum("bis,bs->bi", h, c)

        _, s = lax.scan(step, jnp.zeros((batch, inner, states)), [jnp.swapaxes(each, 0, 1) for each in (u, dt, b, c)])
        out = (jnp.swapaxes(s, 0, 1) + u * p["d"]) * jax.nn.silu(gate)
        return (residual + out @ p["out"]) @ p["head"]

    x = draw.tokens(tokens, batch, steps + 1)
    return Model(outputs, lambda params, x, y: cross_entropy(outputs(params, x, y), y), params, (x[:, :-1], x[:, 1:]))


def rwkv(steps: int, width=8, tokens=11) -> Model:
    """Time mixing and channel mixing of RWKV-4, with the running maximum that keeps the exponentials finite."""
    draw = Draw()
    params = {name: draw.weight(width, width) for name in ("k", "v", "r", "o", "ck", "cv", "cr")}
    params |= {name: draw.generator.uniform(size=width).astype(np.float32) for name in ("mix", "cmix", "decay", "first")}
    params |= {"embed": draw.normal(tokens, width), "head": draw.weight(width, tokens)}

    def cell(p, state, x):
        before, cbefore, num, den, top = state
        mixed = x * p["mix"] + before * (1 - p["mix"])
        k, v, r = mixed @ p["k"], mixed @ p["v"], jax.nn.sigmoid(mixed @ p["r"])
        high = jnp.maximum(top, p["first"] + k)
        e1, e2 = jnp.exp(top - high), jnp.exp(p["first"] + k - high)
        y = x + (r * (e1 * num + e2 * v) / (e1 * den + e2)) @ p["o"]
        high = jnp.maximum(top - jnp.exp(p["decay"]), k)
        e1, e2 = jnp.exp(top - jnp.exp(p["decay"]) - high), jnp.exp(k - high)
        cmixed = y * p["cmix"] + cbefore * (1 - p["cmix"])
        out = y + jax.nn.sigmoid(cmixed @ p["cr"]) * (jnp.square(jax.nn.relu(cmixed @ p["ck"])) @ p["cv"])
        return (x, y, e1 * num + e2 * v, e1 * den + e2, high), out

    zeros = np.zeros((1, width), np.float32)
    return language_model(cell, params, (zeros, zeros, zeros, zeros, zeros - 1e30), steps, 1, tokens, draw)


def norm(p, x):
    x = x - jnp.mean(x, -1, keepdims=True)
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * p


def gpt_parameters(draw: Draw, layers: int, width: int, tokens: int, length: int) -> dict:
    ones, deep = np.ones((layers, width), np.float32), (2 * layers) ** -0.5
    return {"embed": draw.normal(tokens, width), "positions": draw.normal(length, width, scale=0.1), "norm": ones[0], "layers": {
        "norm1": ones, "norm2": ones, "qkv": draw.weight(layers, width, 3 * width), "out": draw.weight(layers, width, width) * np.float32(deep),
        "up": draw.weight(layers, width, 4 * width), "down": draw.weight(layers, 4 * width, width) * np.float32(deep)}}  # fmt: skip


def gpt(layers: int, batch=2, length=8, width=16, heads=2, tokens=11, remat=False, unroll=1) -> Model:
    """A scan over the layers, whose parameters are stacked."""
    draw = Draw()
    params = gpt_parameters(draw, layers, width, tokens, length)

    def layer(h, p):
        q, k, v = jnp.split((norm(p["norm1"], h) @ p["qkv"]).reshape(batch, length, heads, -1).transpose(0, 2, 1, 3), 3, -1)
        scores = q @ k.swapaxes(-1, -2) * (width // heads) ** -0.5
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
        values = jax.nn.softmax(scores) @ v
        h = h + values.transpose(0, 2, 1, 3).reshape(batch, length, width) @ p["out"]
        return h + jax.nn.gelu(norm(p["norm2"], h) @ p["up"]) @ p["down"], None

    def outputs(params, x, y):
        h = params["embed"][x] + params["positions"]
        h, _ = lax.scan(jax.checkpoint(layer) if remat else layer, h, params["layers"], unroll=unroll)
        return norm(params["norm"], h) @ params["embed"].T * width**-0.5

    x = draw.tokens(tokens, batch, length + 1)
    return Model(outputs, lambda params, x, y: cross_entropy(outputs(params, x, y), y), params, (x[:, :-1], x[:, 1:]))


def scalars(steps: int, count=6) -> Model:
    """A filter whose carry is a dictionary of scalars, each of which follows its input and its neighbour (as in jax#40150)."""
    draw, names = Draw(), [f"s{i}" for i in range(count)]

    def outputs(p, u):
        @jax.named_scope("amp_stop")
        def step(state, u):
            new = {name: value + p["rate"] * (u - value) + p["mix"] * (state[names[i - 1]] - value) for i, (name, value) in enumerate(state.items())}
            return new, sum(new.values())

        return lax.scan(step, {name: jnp.float32(0.1) for name in names}, u)[1]

    return Model(outputs, lambda p, u: jnp.mean(outputs(p, u) ** 2), {"rate": np.float32(0.1), "mix": np.float32(0.05)}, (draw.normal(steps),))


def kalman(steps: int, states=4) -> Model:
    """The likelihood of a linear model with one observation per step. A filter needs f32: its scope keeps it from policies."""
    draw = Draw()
    params = {"a": np.eye(states, dtype=np.float32) * np.float32(0.9) + draw.normal(states, states, scale=0.05), "c": draw.normal(states),
              "q": np.full(states, -1, np.float32), "r": np.float32(-0.5)}  # fmt: skip

    def outputs(p, z):
        @jax.named_scope("amp_stop")
        def step(state, z):
            mean, cov = p["a"] @ state[0], p["a"] @ state[1] @ p["a"].T + jnp.diag(jnp.exp(p["q"]))
            error, spread = z - p["c"] @ mean, p["c"] @ cov @ p["c"] + jnp.exp(p["r"])
            gain = cov @ p["c"] / spread
            return (mean + gain * error, cov - jnp.outer(gain, p["c"] @ cov)), (mean, error * error / spread + jnp.log(spread))

        return lax.scan(step, (jnp.zeros(states), jnp.eye(states)), z)[1]

    return Model(outputs, lambda p, z: jnp.mean(outputs(p, z)[1]), params, (draw.normal(steps),))


# Programs without a gradient: functions and their arguments.


def adaptive_ode(states=3):
    """Solves an equation with Bogacki-Shampine steps, whose size follows the estimate of the error."""
    draw = Draw()

    def solve(w, y, end):
        def f(y):
            return jnp.tanh(y @ w) - 0.5 * y

        def step(state):
            t, y, h, taken, tried = state
            h = jnp.minimum(h, end - t)
            k1 = f(y)
            k2 = f(y + h / 2 * k1)
            k3 = f(y + h * 0.75 * k2)
            new = y + h / 9 * (2 * k1 + 3 * k2 + 4 * k3)
            low = y + h * (7 / 24 * k1 + k2 / 4 + k3 / 3 + f(new) / 8)
            error = jnp.max(jnp.abs(new - low)) / 1e-3
            fits = error <= 1
            t, y = jnp.where(fits, t + h, t), jnp.where(fits, new, y)
            return t, y, h * jnp.clip(0.9 * jnp.maximum(error, 1e-6) ** (-1 / 3), 0.2, 5), taken + fits, tried + 1

        return lax.while_loop(lambda s: (s[0] < end) & (s[4] < 500), step, (jnp.float32(0), y, jnp.float32(0.8), 0, 0))

    return solve, (draw.normal(states, states, scale=2 * (3 / states) ** 0.5), draw.normal(1, states), np.float32(6))


def decoder(layers=2, batch=2, length=12, width=16, heads=2, tokens=11, loops=False):
    """(decode, params): decode(params, caches, token, position) gives logits and the caches with a row more. With `loops`, a loop over the layers
    carries one array with the caches of all layers; otherwise each layer has its own."""
    params = gpt_parameters(Draw(), layers, width, tokens, length)

    def attend(q, k, v, position):
        scores = jnp.einsum("bhd,bthd->bht", q, k) * (width // heads) ** -0.5
        return jnp.einsum("bht,bthd->bhd", jax.nn.softmax(jnp.where(jnp.arange(length) <= position, scores, -1e9)), v)

    def layer(p, h, keys, values, position, number=None):
        q, k, v = jnp.split((norm(p["norm1"], h) @ p["qkv"]).reshape(batch, heads, -1), 3, -1)
        if number is None:
            keys, values = (lax.dynamic_update_slice(cache, row[:, None], (0, position, 0, 0)) for cache, row in ((keys, k), (values, v)))
            mixed = attend(q, keys, values, position)
        else:
            keys, values = (lax.dynamic_update_slice(cache, row[None, :, None], (number, 0, position, 0, 0)) for cache, row in ((keys, k), (values, v)))
            mixed = attend(q, keys[number], values[number], position)
        h = h + mixed.reshape(batch, width) @ p["out"]
        return h + jax.nn.gelu(norm(p["norm2"], h) @ p["up"]) @ p["down"], keys, values

    def decode(params, caches, token, position):
        h = params["embed"][token] + params["positions"][position]
        if loops:
            def over_layers(state, row):
                return layer(row[0], *state, position, row[1]), None

            (h, *caches), _ = lax.scan(over_layers, (h, *caches), (params["layers"], jnp.arange(layers)))
        else:
            made = []
            for number, (keys, values) in enumerate(caches):
                h, keys, values = layer(jax.tree.map(lambda p: p[number], params["layers"]), h, keys, values, position)
                made.append((keys, values))
            caches = made
        return norm(params["norm"], h) @ params["embed"].T * width**-0.5, caches

    shape = (batch, length, heads, width // heads)
    caches = [jnp.zeros((layers, *shape))] * 2 if loops else [(jnp.zeros(shape), jnp.zeros(shape))] * layers
    return decode, params, caches


def generation(sampled=False, **sizes):
    """Writes tokens until the caches are full: the most likely ones, or drawn ones."""
    decode, params, caches = decoder(**sizes)
    length, batch = sizes.get("length", 12), sizes.get("batch", 2)

    def generate(params, key, first):
        def step(state, _):
            caches, token, position, key = state
            logits, caches = decode(params, caches, token, position)
            key, own = jax.random.split(key)
            token = jax.random.categorical(own, logits / 0.8) if sampled else jnp.argmax(logits, -1)
            token = token.astype(jnp.int32)
            return (caches, token, position + 1, key), (token, logits)

        return lax.scan(step, (caches, first, 0, key), None, length=length)[1]

    return generate, (params, np.asarray([1, 2], np.uint32), np.arange(1, batch + 1, dtype=np.int32))


def beam_search(beams=3, steps=9, width=8, tokens=11, end=2):
    """Keeps the best beams, stops when all have ended, and gives their tokens, scores and lengths."""
    draw = Draw(4)

    def search(w, embed, head, start):
        def step(state):
            k, out, scores, h, done, lengths = state
            token = jnp.where(k > 0, out[:, jnp.maximum(k - 1, 0)], 1)
            h = jnp.tanh(h @ w + embed[token])
            logp = jax.nn.log_softmax(h @ head)
            logp = jnp.where(done[:, None], jnp.where(jnp.arange(tokens) == end, 0.0, -jnp.inf), logp)
            scores, flat = lax.top_k((scores[:, None] + logp).reshape(-1), beams)
            parent, token = flat // tokens, (flat % tokens).astype(jnp.int32)
            out = lax.dynamic_update_slice(out[parent], token[:, None], (0, k))
            lengths = lengths[parent] + ~done[parent]
            return k + 1, out, scores, h[parent], done[parent] | (token == end), lengths

        scores = jnp.where(jnp.arange(beams) == 0, 0.0, -jnp.inf)
        init = 0, jnp.full((beams, steps), end), scores, jnp.broadcast_to(start, (beams, width)), jnp.zeros(beams, bool), jnp.zeros(beams, jnp.int32)
        return lax.while_loop(lambda s: (s[0] < steps) & ~jnp.all(s[4]), step, init)[1:]

    return search, (draw.weight(width, width) * 2, draw.normal(tokens, width), draw.weight(width, tokens) * 2, draw.normal(width))
