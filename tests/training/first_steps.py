#!/usr/bin/env python3
"""The first 20 steps of ten small networks under f8_delayed, with the scales of `init()` (all 1) and of `init(batch)`, compared with JAX in f32.
No other test has these networks. Prints the largest relative deviation of the loss. For comparison, it trains f8_master and bf16 too: if bf16 is far
from f32, a network is no fair measure.

Usage: PYTHONPATH=BUILD/python SCALIDE_TOOL=BUILD/generators/scalide BUILD/venv/bin/python first_steps.py [--steps N] [--seeds N] [NETWORK ...]
"""
import argparse

import jax
import jax.numpy as jnp
import numpy as np
import optimizers

import scalide
import scalide.jax

POLICY, OTHERS, STEPS, BATCH, VOCABULARY = "f8_delayed", ("f8_master", "bf16"), 20, 128, 32


class Drawn(dict):
    """Parameters, drawn when a network first names them."""

    def __init__(self, seed):
        super().__init__()
        self.random = np.random.default_rng(seed)

    def __call__(self, name, *shape):
        if name not in self:
            terms = int(np.prod(shape[:-1])) if len(shape) == 4 else shape[-2] if len(shape) > 1 else 1
            self[name] = (self.random.normal(size=shape) / np.sqrt(terms)).astype(np.float32)
        return self[name]


class Given(dict):
    """The same parameters in a step."""

    def __call__(self, name, *shape):
        return self[name]


def norm(x):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)


def cross_entropy(logits, labels):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1))


def attention(p, name, x, memory, bias, heads=4, turn=lambda x: x):
    width = x.shape[-1]
    q, k, v = (jnp.einsum("btd,dhe->bthe", of, p(f"{name}.{part}", width, width).reshape(width, heads, -1))
               for part, of in (("q", x), ("k", memory), ("v", memory)))  # fmt: skip
    weights = jax.nn.softmax(jnp.einsum("bqhe,bkhe->bhqk", turn(q), turn(k)) / np.sqrt(width // heads) + bias)
    return jnp.einsum("bhqk,bkhe->bqhe", weights, v).reshape(x.shape) @ p(f"{name}.o", width, width)


def t5(p, source, target):
    """An encoder and a decoder with relative positions, RMS norms and a shared embedding."""
    width, embedding = 32, p("embedding", VOCABULARY, 32)

    def relative(name, length):
        offset = jnp.clip(jnp.arange(length)[None] - jnp.arange(length)[:, None], -7, 7) + 7
        return jnp.moveaxis(p(name, 15, 4)[offset], -1, 0)

    def dense(name, x):
        return (jax.nn.gelu(norm(x) @ p(f"{name}.up", width, 64)) * (norm(x) @ p(f"{name}.gate", width, 64))) @ p(f"{name}.down", 64, width)

    x, bias = embedding[source], relative("encoder.bias", source.shape[1])
    for i in range(2):
        x = x + attention(p, f"encoder{i}", norm(x), norm(x), bias)
        x = x + dense(f"encoder{i}", x)
    memory, y = norm(x), embedding[target[:, :-1]]
    length = y.shape[1]
    bias = relative("decoder.bias", length) + jnp.where(jnp.tril(jnp.ones((length, length))) > 0, 0, -1e9)
    for i in range(2):
        y = y + attention(p, f"decoder{i}", norm(y), norm(y), bias)
        y = y + attention(p, f"cross{i}", norm(y), memory, 0.0)
        y = y + dense(f"decoder{i}", y)
    return cross_entropy(norm(y) @ embedding.T, target[:, 1:])


def graph(p, nodes, edges, y):
    """Messages along edges, summed in each node, three times."""
    sources, targets = edges[:, 0], edges[:, 1]
    h = nodes @ p("in", 8, 32)
    for i in range(3):
        message = jax.nn.relu(jnp.concatenate([h[sources], h[targets]], -1) @ p(f"message{i}", 64, 32))
        total = jnp.zeros_like(h).at[targets].add(message)
        h = norm(h + jnp.tanh(jnp.concatenate([h, total], -1) @ p(f"update{i}", 64, 32)))
    return jnp.mean((jnp.mean(h.reshape(BATCH, -1, 32), 1) @ p("out", 32, 4) - y) ** 2)


def lstm(p, tokens):
    width, x = 48, p("embedding", VOCABULARY, 48)[tokens[:, :-1]]
    for i in range(2):
        w, u = p(f"w{i}", width, 4 * width), p(f"u{i}", width, 4 * width)

        def cell(carry, x, w=w, u=u):
            h, c = carry
            read, write, keep, new = jnp.split(x @ w + h @ u, 4, -1)
            c = jax.nn.sigmoid(keep + 1) * c + jax.nn.sigmoid(write) * jnp.tanh(new)
            h = jax.nn.sigmoid(read) * jnp.tanh(c)
            return (h, c), h

        zero = jnp.zeros((x.shape[0], width))
        x = jnp.swapaxes(jax.lax.scan(cell, (zero, zero), jnp.swapaxes(x, 0, 1))[1], 0, 1)
    return cross_entropy(x @ p("out", width, VOCABULARY), tokens[:, 1:])


def conv(x, w, stride=1):
    return jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def convnet(p, images, labels):
    x, channels = images, 3
    for i, wide in enumerate((16, 32, 32)):
        x, channels = jax.nn.relu(1.4 * conv(x, p(f"conv{i}", 3, 3, channels, wide), 2)), wide
    return cross_entropy(jnp.mean(x, (1, 2)) @ p("out", channels, 10), labels)


def mixer(p, images, labels):
    x = images.reshape(BATCH, 4, 4, 4, 4, 3).transpose(0, 1, 3, 2, 4, 5).reshape(BATCH, 16, 48) @ p("patch", 48, 32)
    for i in range(3):
        x = x + jnp.swapaxes(jax.nn.gelu(jnp.swapaxes(norm(x), 1, 2) @ p(f"tokens{i}.up", 16, 32)) @ p(f"tokens{i}.down", 32, 16), 1, 2)
        x = x + jax.nn.gelu(norm(x) @ p(f"channels{i}.up", 32, 64)) @ p(f"channels{i}.down", 64, 32)
    return cross_entropy(jnp.mean(norm(x), 1) @ p("out", 32, 10), labels)


def rotary(p, tokens):
    """A decoder whose queries and keys are turned by their position."""
    def turned(x):
        angle = jnp.arange(x.shape[1])[:, None] / 100 ** (jnp.arange(x.shape[-1] // 2) / (x.shape[-1] // 2))
        a, b = jnp.split(x, 2, -1)
        sin, cos = jnp.sin(angle)[:, None], jnp.cos(angle)[:, None]
        return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)

    x = p("embedding", VOCABULARY, 32)[tokens[:, :-1]]
    length = x.shape[1]
    causal = jnp.where(jnp.tril(jnp.ones((length, length))) > 0, 0, -1e9)
    for i in range(3):
        x = x + attention(p, f"layer{i}", norm(x), norm(x), causal, turn=turned)
        x = x + jax.nn.silu(norm(x) @ p(f"layer{i}.up", 32, 96)) @ p(f"layer{i}.down", 96, 32)
    return cross_entropy(norm(x) @ p("out", 32, VOCABULARY), tokens[:, 1:])


def experts(p, x, y):
    """Two layers of four experts. Each row takes two of them."""
    for i in range(2):
        gate = jax.nn.softmax(x @ p(f"router{i}", 24, 4))
        gate = jnp.where(gate >= jax.lax.top_k(gate, 2)[0][:, 1:], gate, 0)
        made = jnp.einsum("bed,edf->bef", jax.nn.relu(jnp.einsum("bd,edf->bef", x, p(f"up{i}", 4, 24, 48))), p(f"down{i}", 4, 48, 24))
        x = norm(x + jnp.einsum("be,bef->bf", gate / jnp.sum(gate, -1, keepdims=True), made))
    return jnp.mean((x @ p("out", 24, 4) - y) ** 2)


def autoencoder(p, x, noise):
    h = jnp.tanh(jnp.tanh(x @ p("encoder0", 64, 48)) @ p("encoder1", 48, 24))
    mean, width = h @ p("mean", 24, 8), h @ p("width", 24, 8)
    z = mean + jnp.exp(0.5 * width) * noise
    made = jnp.tanh(jnp.tanh(z @ p("decoder0", 8, 24)) @ p("decoder1", 24, 48)) @ p("decoder2", 48, 64)
    return jnp.mean(jnp.sum((made - x) ** 2, -1)) - 0.05 * jnp.mean(jnp.sum(1 + width - mean**2 - jnp.exp(width), -1))


def recurrent(p, x, y):
    """A gated recurrent network in a scan, which predicts the last value."""
    w, u = p("w", 4, 96), p("u", 32, 96)

    def cell(h, x):
        (z, r, n), (hz, hr, hn) = jnp.split(x @ w, 3, -1), jnp.split(h @ u, 3, -1)
        h = h + jax.nn.sigmoid(z + hz) * (jnp.tanh(n + jax.nn.sigmoid(r + hr) * hn) - h)
        return h, None

    h, _ = jax.lax.scan(cell, jnp.zeros((x.shape[0], 32)), jnp.swapaxes(x, 0, 1))
    return jnp.mean((h @ p("out", 32, 4) - y) ** 2)


def unet(p, images, noise):
    down0 = jax.nn.silu(conv(images + noise, p("down0", 3, 3, 3, 16)))
    down1 = jax.nn.silu(conv(down0, p("down1", 3, 3, 16, 24), 2))
    middle = jax.nn.silu(conv(down1, p("middle", 3, 3, 24, 24), 2))
    up1 = jnp.repeat(jnp.repeat(middle, 2, 1), 2, 2)
    up1 = jax.nn.silu(conv(jnp.concatenate([up1, down1], -1), p("up1", 3, 3, 48, 24)))
    up0 = jnp.repeat(jnp.repeat(up1, 2, 1), 2, 2)
    up0 = jax.nn.silu(conv(jnp.concatenate([up0, down0], -1), p("up0", 3, 3, 40, 16)))
    return jnp.mean((up0 @ p("out", 16, 3) - noise) ** 2)


def tokens_of(random, length=13):
    """Sequences with a rule: each token is the one before it plus a number of the sequence, at times with an error."""
    steps = random.integers(1, 4, (BATCH, 1)) * np.arange(length) + random.integers(0, VOCABULARY, (BATCH, 1))
    return ((steps + (random.random((BATCH, length)) < 0.1)) % VOCABULARY).astype(np.int32)


def normal(random, *shape):
    return random.normal(size=shape).astype(np.float32)


def images_of(random):
    labels = random.integers(0, 10, BATCH).astype(np.int32)
    waves = np.sin(np.arange(16)[None, :, None, None] * (1 + labels[:, None, None, None]) / 4 + np.arange(16)[None, None, :, None] / 3)
    return (waves + 0.5 * normal(random, BATCH, 16, 16, 3)).astype(np.float32), labels


def batch_of(name, random):
    if name in ("lstm", "rotary"):
        return (tokens_of(random),)
    if name == "t5":
        source = tokens_of(random)
        return source, source[:, ::-1].copy()
    if name == "graph":
        nodes, edges = normal(random, BATCH * 6, 8), random.integers(0, 6, (BATCH, 12, 2)) + 6 * np.arange(BATCH)[:, None, None]
        return nodes, edges.reshape(-1, 2).astype(np.int32), np.tanh(nodes.reshape(BATCH, 6, 8).mean(1)[:, :4] * 3) + 0.5 * normal(random, BATCH, 4)
    if name in ("convnet", "mixer"):
        return images_of(random)
    if name == "experts":
        x = normal(random, BATCH, 24)
        return x, np.sin(2 * x[:, :4]) + 0.5 * normal(random, BATCH, 4)
    if name == "autoencoder":
        return np.tanh(normal(random, BATCH, 4) @ np.sin(np.arange(256, dtype=np.float32)).reshape(4, 64)), normal(random, BATCH, 8)
    if name == "recurrent":
        x = np.cumsum(normal(random, BATCH, 10, 4), 1) / 3
        return x, x[:, -1] + 0.5 * normal(random, BATCH, 4)
    images, _ = images_of(random)
    return images, normal(random, *images.shape)


#: network: (loss, optimizer, rate). Adam divides its rate by 200 (optimizers.py).
NETWORKS = {
    "t5": (t5, "adam", 0.2),
    "graph": (graph, "adam", 0.2),
    "lstm": (lstm, "sgd", 0.5),
    "convnet": (convnet, "sgd", 0.02),
    "mixer": (mixer, "adam", 0.2),
    "rotary": (rotary, "adam", 0.2),
    "experts": (experts, "sgd", 0.02),
    "autoencoder": (autoencoder, "adam", 0.2),
    "recurrent": (recurrent, "sgd", 0.05),
    "unet": (unet, "adam", 0.4),
}


def step_of(name):
    """step(params, state, batch) -> loss, params, state of the optimizer"""
    loss, optimizer, rate = NETWORKS[name]

    def step(params, state, batch):
        value, gradients = jax.value_and_grad(lambda params: loss(Given(params), *batch))(params)
        return value, *optimizers.OPTIMIZERS[optimizer][1](rate, (None, None), params, state, gradients)

    return step


def start(name, seed, steps):
    """The first parameters and state of the optimizer, and a batch for each step."""
    random = np.random.default_rng([seed, 7])
    batches = [batch_of(name, random) for _ in range(steps)]
    drawn = Drawn(seed)
    NETWORKS[name][0](drawn, *batches[0])
    params = dict(drawn)
    return params, jax.tree.map(np.asarray, optimizers.OPTIMIZERS[NETWORKS[name][1]][0](params)), batches


def losses_of(run, params, state, batches):
    losses = []
    for batch in batches:
        loss, params, state = run(params, state, batch)
        losses.append(float(loss))
    return np.asarray(losses)


def keeping_state(library, state):
    """A step that passes the state of the policy from call to call."""
    kept = [state]

    def run(*given):
        result, kept[0] = library(*given, kept[0])
        return result

    return run


def measure(name, seeds=1, steps=STEPS, others=()):
    """The largest relative deviation of the loss from f32 of all seeds, by policy: with `init()`, with `init(batch)`, and of other policies."""
    params, state, batches = start(name, 0, steps)
    program = scalide.jax.trace(step_of(name), params, state, batches[0], donate_argnums=(0, 1), name=name)
    library, reference = scalide.build(program, numerics=POLICY), jax.jit(step_of(name))
    runs = {policy: scalide.build(program, numerics=policy) for policy in others}
    largest = {}
    for seed in range(seeds):
        params, state, batches = start(name, seed, steps)
        wanted = losses_of(reference, params, state, batches)
        runs |= {"init()": keeping_state(library, library.init()), "init(batch)": keeping_state(library, library.init(params, state, batches[0]))}
        for policy, run in runs.items():
            off = float(np.max(np.abs(losses_of(run, params, state, batches) / wanted - 1)))
            largest[policy] = max(largest.get(policy, 0), off)
    return largest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=f"default: {' '.join(NETWORKS)}")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seeds", type=int, default=1)
    arguments = parser.parse_args()
    columns = "init()", "init(batch)", *OTHERS
    print(f"| network | optimizer | {' | '.join(columns)} |\n|---|---|{'---|' * len(columns)}")
    for name in arguments.networks or NETWORKS:
        largest = measure(name, arguments.seeds, arguments.steps, OTHERS)
        print(f"| {name} | {NETWORKS[name][1]} | {' | '.join(f'{largest[column]:.2%}' for column in columns)} |", flush=True)


if __name__ == "__main__":
    main()
