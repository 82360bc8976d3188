"""Whole functions, forward and gradient: what users have."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from oracle import check


def normals(seed, **shapes):
    """Arrays by name; weights are small, so that sums of products stay near 1."""
    draw = np.random.default_rng(seed)
    return {name: jnp.asarray(draw.normal(size=shape) / np.sqrt(shape[0] if len(shape) > 1 else 1), jnp.float32) for name, shape in shapes.items()}


def whole(fn, *args):
    check({"f": (fn, args)})  # with its vector-Jacobian product
    check({"grad": (jax.grad(lambda p, *rest: jnp.sum(fn(p, *rest) ** 2)), args)}, gradient=False)


def test_mlp():
    def loss(params, x, y):
        h = jax.nn.gelu(jax.nn.relu(x @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"])
        logits = h @ params["w3"]
        return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1))

    params = normals(0, w1=(20, 33), b1=(33,), w2=(33, 16), b2=(16,), w3=(16, 10))
    x, y = normals(1, x=(12, 20))["x"], jnp.arange(12) % 10
    check({"value_and_grad": (jax.value_and_grad(loss), (params, x, y))}, gradient=False)


def test_convolutional_net():
    """Convolution, batch norm with the statistics of the batch, pooling."""

    def forward(params, x):
        h = lax.conv_general_dilated(x, params["k1"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        mean, var = h.mean((0, 1, 2)), h.var((0, 1, 2))
        h = jax.nn.relu((h - mean) * lax.rsqrt(var + 1e-5) * params["gain"] + params["bias"])
        h = lax.reduce_window(h, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        h = jax.nn.silu(lax.conv_general_dilated(h, params["k2"], (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
        h = lax.reduce_window(h, 0.0, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "VALID") / 4
        return h.reshape(h.shape[0], -1) @ params["w"]

    params = normals(2, k1=(3, 3, 3, 8), gain=(8,), bias=(8,), k2=(3, 3, 8, 6), w=(6, 5))
    whole(forward, params, normals(3, x=(4, 8, 8, 3))["x"])


def layer_norm(x, gain, bias):
    centred = x - x.mean(-1, keepdims=True)
    return centred * lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-6) * gain + bias


def attention(q, k, v, mask):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(q.shape[-1]).astype(q.dtype)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(mask, scores, -1e9), -1), v)


def test_softmax_attention():
    draw = normals(4, q=(2, 7, 3, 4), k=(2, 9, 3, 4), v=(2, 9, 3, 4))
    whole(lambda p, mask: attention(p["q"], p["k"], p["v"], mask), draw, jnp.arange(9) < 7)
    whole(lambda p: jax.nn.dot_product_attention(p["q"], p["q"], p["v"][:, :7], is_causal=True), draw)


def test_transformer_block():
    heads, width = 4, 32

    def block(params, x):
        with jax.named_scope("attention"):
            h = layer_norm(x, params["g1"], params["b1"])
            q, k, v = (part.reshape(*part.shape[:2], heads, -1) for part in jnp.split(h @ params["qkv"], 3, -1))
            x = x + attention(q, k, v, jnp.tril(jnp.ones((x.shape[1],) * 2, bool))).reshape(x.shape) @ params["out"]
        with jax.named_scope("mlp"):
            h = layer_norm(x, params["g2"], params["b2"])
            return x + jax.nn.gelu(h @ params["up"]) @ params["down"]

    params = normals(5, g1=(width,), b1=(width,), qkv=(width, 3 * width), out=(width, width), g2=(width,), b2=(width,), up=(width, 64), down=(64, width))
    whole(block, params, normals(6, x=(2, 10, width))["x"])


def test_recurrent_cells():
    def lstm(params, state, x):
        c, h = state
        i, f, g, o = jnp.split(jnp.concatenate([x, h], -1) @ params["w"] + params["b"], 4, -1)
        c = jax.nn.sigmoid(f + 1) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return c, jax.nn.sigmoid(o) * jnp.tanh(c)

    def unrolled(params, c, h, xs):  # lax.scan of few steps
        (c, h), outs = lax.scan(lambda state, x: (lstm(params, state, x),) + (lstm(params, state, x)[1],), (c, h), xs)
        return jnp.concatenate([c, h, outs.reshape(-1, h.shape[-1])])

    params, states = normals(7, w=(14, 32), b=(32,)), normals(8, c=(3, 8), h=(3, 8), xs=(4, 3, 6))
    whole(lambda p, c, h, x: jnp.concatenate(lstm(p, (c, h), x)), params, states["c"], states["h"], states["xs"][0])
    whole(unrolled, params, states["c"], states["h"], states["xs"])


def test_embedding_and_normalisations():
    def forward(params, ids):
        h = params["table"][ids]
        rms = h * lax.rsqrt((h**2).mean(-1, keepdims=True) + 1e-6) * params["gain"]
        groups = rms.reshape(*rms.shape[:-1], 4, -1)
        groups = (groups - groups.mean(-1, keepdims=True)) / jnp.sqrt(groups.var(-1, keepdims=True) + 1e-5)
        return groups.reshape(h.shape) @ params["table"].T

    whole(forward, normals(9, table=(11, 16), gain=(16,)), jnp.asarray([[1, 5, 5], [0, 10, 2]], jnp.int32))


def test_half_precision():
    """f16 and bf16 with f32 losses; JAX rounds after each operation, we less often."""
    for dtype in (jnp.float16, jnp.bfloat16):
        params = jax.tree.map(lambda a: a.astype(dtype), normals(10, w1=(24, 40), w2=(40, 8)))
        x = normals(11, x=(16, 24))["x"].astype(dtype)
        check({"grad": (jax.grad(lambda p, x: (jax.nn.relu(x @ p["w1"]) @ p["w2"]).astype(jnp.float32).var()), (params, x))}, gradient=False)


def test_checkpoint_and_custom_rules():
    @jax.custom_vjp
    def clipped(x):
        return x * 2

    clipped.defvjp(lambda x: (clipped(x), None), lambda _, ct: (jnp.clip(ct, -0.1, 0.1),))

    @jax.custom_jvp
    def odd(x):
        return jnp.sin(x)

    odd.defjvp(lambda primals, tangents: (odd(primals[0]), 3 * tangents[0]))
    x = normals(12, x=(5, 6))["x"]
    check({"vjp": (lambda x: jnp.sum(clipped(x) ** 2), (x,)), "jvp": (lambda x: jnp.sum(odd(x) ** 2), (x,)),
           "checkpoint": (jax.checkpoint(lambda x: jnp.sum(jnp.sin(jnp.sin(x)))), (x,)), "vmap": (jax.vmap(lambda r: jnp.outer(r, r).sum(0)), (x,)),
           "jit": (jax.jit(lambda x: jax.jit(jnp.tanh)(x) + 1), (x,)), "hessian": (jax.hessian(lambda x: jnp.sum(jnp.tanh(x[0]) ** 3)), (x,))})  # fmt: skip
