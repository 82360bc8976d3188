"""What a low precision can reach: JAX in f32, with the operands of every product rounded to the formats of a policy, each at the best scale. Where
this is off by more than the tolerance, training itself spreads errors and no policy could pass: the matrix has no such cell (`test_reference.py`).
"""
import functools

import jax
import jax.numpy as jnp

import models

#: formats of values and of cotangents
FORMATS = {"bf16": (jnp.bfloat16, jnp.bfloat16), "f16": (jnp.float16, jnp.float16), "f8": (jnp.float8_e4m3fn, jnp.float8_e5m2)}


def rounded(array, dtype):
    """In `dtype` at the power of two that fills half of its range (formats with the exponents of f32 need none), and back."""
    if jnp.finfo(dtype).nexp == 8:
        return array.astype(dtype).astype(jnp.float32)
    largest = jnp.max(jnp.abs(array))
    scale = jnp.exp2(jnp.floor(jnp.log2(jnp.where(largest > 0, largest, 1)))) * (2 / float(jnp.finfo(dtype).max))
    return ((array / scale).astype(dtype)).astype(jnp.float32) * scale


def rounding_use(name: str):
    """`models.Use` with rounded operands."""
    values, cotangents = FORMATS[name]

    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def product(f, a, b):
        return f(rounded(a, values), rounded(b, values))

    def forward(f, a, b):
        a, b = rounded(a, values), rounded(b, values)
        return f(a, b), (a, b)

    def backward(f, operands, cotangent):
        return jax.vjp(f, *operands)[1](rounded(cotangent, cotangents))

    product.defvjp(forward, backward)
    return lambda unit: models.Use(unit, product)
