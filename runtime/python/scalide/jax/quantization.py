"""jax_scalify.quantization: powers of two as 8-bit exponents (e8m0). NumPy arrays give NumPy arrays. Scalide has operators with the same names."""
from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from .core import get_numpy_api, pow2_round_down


def pow2_truncate(x):
    """Truncates x to a power of two and keeps its sign. Subnormal numbers become zero; NaN and infinities stay."""
    api = get_numpy_api(x)
    truncated = api.where(abs(x) < jnp.finfo(x.dtype).smallest_normal, 0, api.sign(x) * pow2_round_down(x))
    return api.where(api.isfinite(x), truncated, x).astype(x.dtype)


def as_e8m0(x):
    """Converts f32 or bf16 powers of two to 8-bit exponents (u8, bias 127). Other numbers are truncated to a power of two first.

    Zero, subnormal and negative numbers give 0. Infinity and NaN give 255.

    Raises:
        TypeError: The dtype is not f32 or bf16.
    """
    if x.dtype not in (np.float32, jnp.bfloat16):
        raise TypeError(f"as_e8m0.x: must be f32 or bf16 (8 exponent bits), got {x.dtype}. Convert it first.")
    api = get_numpy_api(x)
    wide = x.astype(np.float32)
    return api.where(wide < 0, 0, (wide.view(np.uint32) >> 23) & 255).astype(np.uint8)


def from_e8m0(code, dtype):
    """Converts 8-bit exponents (u8) to powers of two (f32 or bf16). 255 gives NaN. Raises TypeError if the dtype of `code` is not u8."""
    if code.dtype != np.uint8:
        raise TypeError(f"from_e8m0.code: must be u8, got {code.dtype}.")
    api = get_numpy_api(code)
    word = code.astype(np.uint32)
    bits = api.where(word == 0, 1 << 22, word << 23)  # 2^-127 is subnormal
    return api.where(word == 255, np.nan, bits.astype(np.uint32).view(np.float32)).astype(dtype)
