"""The causal transformer that byte_transformer.py and python_build.py train: layers with the norm first, attention with several heads, and an MLP of
four times the width. Parameters are a tree of f32 arrays."""
import jax
import jax.numpy as jnp
import numpy as np


def initial(draw, layers: int, tokens: int, length: int, width: int) -> dict:
    """Parameters, drawn from the NumPy generator `draw`. The last matmul of a branch is smaller in deeper networks (GPT-2)."""

    def weight(rows, columns, deviation=None):
        return (draw.normal(size=(rows, columns)) * (deviation or rows**-0.5)).astype(np.float32)

    def norm():
        return {"gain": np.ones(width, np.float32), "bias": np.zeros(width, np.float32)}

    def layer():
        return {"norm1": norm(), "qkv": weight(width, 3 * width), "out": weight(width, width, (2 * layers * width) ** -0.5),
                "norm2": norm(), "up": weight(width, 4 * width), "down": weight(4 * width, width, (8 * layers * width) ** -0.5)}  # fmt: skip

    return {"tokens": weight(tokens, width, 0.1), "positions": weight(length, width, 0.1), "layers": [layer() for _ in range(layers)],
            "norm": norm(), "head": weight(width, tokens)}  # fmt: skip


def normed(p, x):
    centred = x - jnp.mean(x, -1, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred * centred, -1, keepdims=True) + 1e-5) * p["gain"] + p["bias"]


def attention(p, x, heads: int):
    batch, length, width = x.shape
    q, k, v = jnp.split((x @ p["qkv"]).reshape(batch, length, heads, 3 * width // heads).transpose(0, 2, 1, 3), 3, -1)
    with jax.named_scope("scores"):
        scores = q @ k.transpose(0, 1, 3, 2) / (width // heads) ** 0.5
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, jnp.finfo(jnp.float32).min)
        values = jax.nn.softmax(scores) @ v
    return values.transpose(0, 2, 1, 3).reshape(batch, length, width) @ p["out"]


def loss(params, x, y, heads: int):
    """The mean cross-entropy in nats of the tokens y i32[batch, length] after the tokens x."""
    h = params["tokens"][x] + params["positions"]
    for p in params["layers"]:
        h = h + attention(p, normed(p["norm1"], h), heads)
        h = h + jax.nn.gelu(normed(p["norm2"], h) @ p["up"]) @ p["down"]
    logits = jax.nn.log_softmax(normed(params["norm"], h) @ params["head"])
    return -jnp.mean(jnp.take_along_axis(logits, y[..., None], -1))
