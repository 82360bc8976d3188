"""The works as functions of JAX. `jax.jit` compiles them, and Scalide traces them, so both compute the same program."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from works import HEADS, RATE

F32, E4M3 = jnp.float32, jnp.float8_e4m3fn
IMAGES = ("NHWC", "HWIO", "NHWC")


def matmul(a, b):
    sums = {jnp.dtype("int8"): jnp.int32, jnp.dtype(E4M3): F32}.get(a.dtype, a.dtype)
    return lax.dot(a, b, preferred_element_type=sums)


def transposed_matmul(a, b):
    return a.T @ b


def dense_layers(params, x):
    for weight, bias in zip(params[:-2:2], params[1:-2:2]):
        x = jax.nn.relu(x @ weight + bias)
    return x @ params[-2] + params[-1]


def cross_entropy(scores, y):
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(scores) * y, axis=1))


def descent(loss, params):
    """Parameters after a step of gradient descent, then the loss before it."""
    value, gradients = jax.value_and_grad(loss)(params)
    return (*(p - jnp.asarray(RATE, p.dtype) * g for p, g in zip(params, gradients)), value)


def mlp_forward(*arrays):
    return dense_layers(arrays[:-1], arrays[-1])


def mlp_step(*arrays):
    *params, x, y = arrays
    return descent(lambda params: cross_entropy(dense_layers(params, x), y), params)


def cnn_step(*arrays):
    *params, x, y = arrays

    def loss(params):
        h = x
        for weight, bias in (params[:2], params[2:4]):
            h = jax.nn.relu(lax.conv_general_dilated(h, weight, (1, 1), "SAME", dimension_numbers=IMAGES) + bias)
            h = lax.reduce_window(h, np.zeros((), h.dtype), lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
        return cross_entropy(dense_layers(params[4:], h.reshape(h.shape[0], -1)), y)

    return descent(loss, params)


def layer_norm(x, gain, bias):
    wide = x.astype(F32)
    centred = wide - wide.mean(-1, keepdims=True)
    return (centred * lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * gain.astype(F32) + bias.astype(F32)).astype(x.dtype)


def layer_forward(*arrays):
    gain1, bias1, qkv, qkv_bias, out, out_bias, gain2, bias2, up, up_bias, down, down_bias, x = arrays
    batch, tokens, hidden = x.shape
    q, k, v = jnp.split((layer_norm(x, gain1, bias1) @ qkv + qkv_bias).reshape(batch, tokens, 3 * HEADS, -1), 3, axis=2)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(F32) * (hidden // HEADS) ** -0.5
    scores = jnp.where(jnp.tril(jnp.ones((tokens, tokens), bool)), scores, -1e9)
    x = x + jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores).astype(x.dtype), v).reshape(x.shape) @ out + out_bias
    return x + jax.nn.gelu(layer_norm(x, gain2, bias2) @ up + up_bias, approximate=True) @ down + down_bias


def layer_step(*arrays):
    """The gradients of a sum of the results for all parameters and the input."""
    return jax.grad(lambda arrays: layer_forward(*arrays).astype(F32).sum())(arrays)


def gelu_tanh(x):
    return jax.nn.gelu(x, approximate=True)


def gelu_erf(x):
    return jax.nn.gelu(x, approximate=False)


def bias_gelu(x, bias):
    return jax.nn.gelu(x + bias, approximate=True)


def softmax(x):
    return jax.nn.softmax(x.astype(F32)).astype(x.dtype)


def layer_norm_gradient(x, gain, bias, dy):
    return jax.vjp(layer_norm, x, gain, bias)[1](dy)


def rms_norm(x, gain):
    wide = x.astype(F32)
    return (wide * lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-5) * gain.astype(F32)).astype(x.dtype)


def cross_entropy_gradient(x, labels):
    def loss(x):
        return -jnp.take_along_axis(jax.nn.log_softmax(x.astype(F32)), labels[:, None], axis=1).mean()

    return jax.value_and_grad(loss)(x)


def adamw(p, m, v, g):
    """The first step of AdamW, with the moments in the dtype of the parameters."""
    wide, m, v = (array.astype(F32) for array in (g, m, v))
    m, v = 0.9 * m + 0.1 * wide, 0.999 * v + 0.001 * wide * wide
    new = p.astype(F32) * (1 - 1e-5) - 1e-3 * (m / 0.1) / (jnp.sqrt(v / 0.001) + 1e-8)
    return new.astype(p.dtype), m.astype(p.dtype), v.astype(p.dtype)


def to_e4m3(wide):
    return jnp.clip(wide, -448, 448).astype(E4M3)


def amax_cast(x, scale):
    return jnp.abs(x).max(), to_e4m3(x.astype(F32) * scale)


def amax_then_cast(x):
    scale = 448 / jnp.abs(x).max().astype(F32)
    return scale, to_e4m3(x.astype(F32) * scale)


def cast_transpose(x, scale):
    cast = to_e4m3(x.astype(F32) * scale)
    return cast, cast.T


def transpose(x):
    return x.T


def dropout(x, seed):
    return jnp.where(jax.random.bernoulli(jax.random.PRNGKey(seed), 0.9, x.shape), x / 0.9, 0).astype(x.dtype)


def maximum_middle(x):
    return x.max(1)


def mean_middle(x):
    return x.mean((1, 2))


def convolution(x, kernel):
    return lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=IMAGES)


def convolution_transposed(x, kernel):
    """Doubles the size of the images. The kernel is not mirrored."""
    return lax.conv_general_dilated(x, kernel, (1, 1), ((2, 2), (2, 2)), lhs_dilation=(2, 2), dimension_numbers=IMAGES)


def concatenation(*arrays):
    return jnp.concatenate(arrays, axis=1)


def roll(x):
    return jnp.roll(x, 1000, axis=1)


def embedding_gradient(table, ids, dy):
    return jax.vjp(lambda table: table[ids], table)[1](dy)[0]
