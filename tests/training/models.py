"""The networks of the matrix, as a user of JAX writes them: parameters, the loss of a batch, and batches on which training is work but stays stable.

Each is small, so that a library builds in seconds, and its layers have one shape, so that they share kernels. Targets have noise that no network
predicts: a loss that goes to 0 has no relative meaning.
"""
from typing import Callable, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

WIDTH, BATCH, BATCHES = 32, 32, 8


class Use:
    """How a network uses its parameters: stored values times `unit` (None: as they are), behind the products of matrices, so that these see
    the stored values; `bilinear(f, a, b)` computes a product (`reference.py` rounds its operands there)."""

    def __init__(self, unit=None, bilinear: Callable = lambda f, a, b: f(a, b)):
        self.unit, self.bilinear = unit, bilinear

    def value(self, parameter):
        return parameter if self.unit is None else parameter * self.unit

    def product(self, f, x, weight):
        return self.value(self.bilinear(f, x, weight))

    def dense(self, x, layer):
        """x @ w + b"""
        return self.product(jnp.matmul, x, layer["w"]) + self.value(layer["b"])


class Model(NamedTuple):
    """parameters(draw, depth, bias), bias the deviation of biases; loss(use, params, x, y); batch(draw, teacher); the rate of SGD."""
    parameters: Callable
    loss: Callable
    batch: Callable
    rate: float


def dense(draw, rows, columns, bias, gain=1.0):
    return {"w": draw.normal(size=(rows, columns)) * gain * rows**-0.5, "b": draw.normal(size=columns) * bias}


def norm(draw, bias):
    return {"gain": 1 + draw.normal(size=WIDTH) * bias, "bias": draw.normal(size=WIDTH) * bias}


def normalized(use, x, layer, axes):
    """Layer norm (axes -1) or, with the statistics of the batch, batch norm."""
    centred = x - x.mean(axes, keepdims=True)
    return centred * lax.rsqrt((centred**2).mean(axes, keepdims=True) + 1e-5) * use.value(layer["gain"]) + use.value(layer["bias"])


def squares(out, y):
    return jnp.mean((out - y) ** 2)


def cross_entropy(logits, labels):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1))


def vectors(draw, teacher):
    x = draw.normal(size=(BATCH, WIDTH))
    return x, np.tanh(x @ teacher.normal(size=(WIDTH, WIDTH)) * WIDTH**-0.5) + 0.5 * draw.normal(size=(BATCH, WIDTH))


def mlp_parameters(draw, depth, bias):
    return [dense(draw, WIDTH, WIDTH, bias, 2**0.5 if i + 1 < depth else 0.05) for i in range(depth)]


def mlp_loss(use, params, x, y):
    for layer in params[:-1]:
        x = jax.nn.relu(use.dense(x, layer))
    return squares(use.dense(x, params[-1]), y)


def residual_parameters(draw, depth, bias):
    blocks = [{"norm": norm(draw, bias), "up": dense(draw, WIDTH, 2 * WIDTH, bias), "down": dense(draw, 2 * WIDTH, WIDTH, bias, depth**-0.5)}
              for _ in range(depth)]  # fmt: skip
    return {"blocks": blocks, "norm": norm(draw, bias), "out": dense(draw, WIDTH, WIDTH, bias, 0.5)}


def residual_loss(use, params, x, y):
    for block in params["blocks"]:
        h = normalized(use, x, block["norm"], -1)
        x = x + use.dense(jax.nn.relu(use.dense(h, block["up"])), block["down"])
    return squares(use.dense(normalized(use, x, params["norm"], -1), params["out"]), y)


HEADS, TOKENS, LENGTH, ROWS = 2, 32, 16, 4


def transformer_parameters(draw, depth, bias):
    blocks = [{"norm1": norm(draw, bias), "qkv": dense(draw, WIDTH, 3 * WIDTH, bias), "out": dense(draw, WIDTH, WIDTH, bias, 0.5 * depth**-0.5),
               "norm2": norm(draw, bias), "up": dense(draw, WIDTH, 2 * WIDTH, bias), "down": dense(draw, 2 * WIDTH, WIDTH, bias, depth**-0.5)}
              for _ in range(depth)]  # fmt: skip
    table = {"tokens": draw.normal(size=(TOKENS, WIDTH)) * 0.5, "places": draw.normal(size=(LENGTH, WIDTH)) * 0.5}
    return {"table": table, "blocks": blocks, "norm": norm(draw, bias), "head": dense(draw, WIDTH, TOKENS, bias, 0.5)}


def attention(use, x, block):
    q, k, v = (part.reshape(*part.shape[:2], HEADS, -1) for part in jnp.split(use.dense(x, block["qkv"]), 3, -1))
    scores = use.bilinear(lambda q, k: jnp.einsum("bqhd,bkhd->bhqk", q, k), q, k) / np.float32((WIDTH // HEADS) ** 0.5)
    places = jnp.arange(x.shape[1])
    masked = jnp.where(places[:, None] >= places[None], scores, jnp.finfo(jnp.float32).min)
    mixed = use.bilinear(lambda p, v: jnp.einsum("bhqk,bkhd->bqhd", p, v), jax.nn.softmax(masked), v)
    return use.dense(mixed.reshape(x.shape), block["out"])


def transformer_loss(use, params, x, y):
    x = use.value(params["table"]["tokens"][x]) + use.value(params["table"]["places"])
    for block in params["blocks"]:
        x = x + attention(use, normalized(use, x, block["norm1"], -1), block)
        x = x + use.dense(jax.nn.gelu(use.dense(normalized(use, x, block["norm2"], -1), block["up"])), block["down"])
    return cross_entropy(use.dense(normalized(use, x, params["norm"], -1), params["head"]), y)


def tokens(draw, teacher):
    """A random walk over the tokens; the next one depends on the last."""
    odds = np.exp(2 * teacher.normal(size=(TOKENS, TOKENS)))
    sums = (odds / odds.sum(1, keepdims=True)).cumsum(1)
    text = [draw.integers(0, TOKENS, ROWS)]
    for _ in range(LENGTH):
        text.append(np.minimum((draw.random((ROWS, 1)) > sums[text[-1]]).sum(1), TOKENS - 1))
    text = np.stack(text, 1).astype(np.int32)
    return text[:, :-1], text[:, 1:]


CLASSES, SIDE, IMAGES = 8, 8, 16


def convolution(x, kernel):
    return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def convolutional_parameters(draw, depth, bias):
    def kernel(inputs, gain=1.0):
        return draw.normal(size=(3, 3, inputs, WIDTH)) * gain * (9 * inputs) ** -0.5

    blocks = [{"kernel": kernel(WIDTH), "norm": norm(draw, bias)} for _ in range(depth)]
    for block in blocks:
        block["norm"]["gain"] *= depth**-0.5
    return {"stem": kernel(3), "blocks": blocks, "head": dense(draw, WIDTH, CLASSES, bias)}


def convolutional_loss(use, params, x, y):
    x = use.product(convolution, x, params["stem"])
    for block in params["blocks"]:
        x = x + normalized(use, use.product(convolution, jax.nn.relu(x), block["kernel"]), block["norm"], (0, 1, 2))
    return cross_entropy(use.dense(x.mean((1, 2)), params["head"]), y)


def images(draw, teacher):
    """Classes that overlap: one picture for each, and noise over it; one label in four is any."""
    pictures, labels = teacher.normal(size=(CLASSES, SIDE, SIDE, 3)), draw.integers(0, CLASSES, IMAGES)
    x = pictures[labels] + draw.normal(size=(IMAGES, SIDE, SIDE, 3))
    return x, np.where(draw.random(IMAGES) < 0.25, draw.integers(0, CLASSES, IMAGES), labels).astype(np.int32)


def lstm_parameters(draw, depth, bias):
    return {"cell": dense(draw, 2 * WIDTH, 4 * WIDTH, bias), "out": dense(draw, WIDTH, WIDTH, bias)}


def lstm_loss(use, params, x, y):
    """`depth` steps of one cell over x[depth, batch, feature]."""
    h = c = jnp.zeros(x.shape[1:], jnp.float32)
    for step in x:
        i, f, g, o = jnp.split(use.dense(jnp.concatenate([step, h], -1), params["cell"]), 4, -1)
        c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return squares(use.dense(h, params["out"]), y)


def sequences(depth):
    def batch(draw, teacher):
        x = draw.normal(size=(depth, BATCH, WIDTH))
        seen = x[-2:].mean(0) @ teacher.normal(size=(WIDTH, WIDTH)) * WIDTH**-0.5
        return x, np.tanh(seen) + 0.5 * draw.normal(size=(BATCH, WIDTH))

    return batch


def model(name: str, depth: int) -> Model:
    """By name; `depth` is of blocks, of the LSTM of time steps. What is deeper goes in smaller steps, so that f32 itself stays smooth."""
    slower = min(1.0, 4 / depth)
    return {
        "mlp": Model(mlp_parameters, mlp_loss, vectors, 0.05 * slower),
        "residual": Model(residual_parameters, residual_loss, vectors, 0.1 * slower),
        "transformer": Model(transformer_parameters, transformer_loss, tokens, 0.02 * slower),
        "convolutional": Model(convolutional_parameters, convolutional_loss, images, 0.02 * slower),
        "lstm": Model(lstm_parameters, lstm_loss, sequences(depth), 0.5 * slower),
    }[name]


NAMES = ("mlp", "residual", "transformer", "convolutional", "lstm")
DEPTHS = (2, 4, 8, 16, 32)


def arrays(tree):
    """Floats in f32, integers as they are."""
    return jax.tree.map(lambda a: np.asarray(a, np.float32) if a.dtype.kind == "f" else a, tree)


def data(name: str, depth: int, bias: float, seed: int = 0):
    """Parameters and the batches over which training goes round."""
    found = model(name, depth)
    params = found.parameters(np.random.default_rng([seed, 1]), depth, bias)
    teacher = [found.batch(np.random.default_rng([seed, 2, i]), np.random.default_rng([seed, 3])) for i in range(BATCHES)]
    return arrays(params), arrays(teacher)
