"""jax_scalify.quantization: powers of two as exponents of 8 bits (e8m0). NumPy arrays stay NumPy's. Scalide's operators of these names do the same in
programs."""
from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from .core import get_numpy_api, pow2_round_down


def pow2_truncate(x):
    """x truncated to a power of two, keeping its sign; zero and subnormals become zero, NaN and infinities stay."""
    api = get_numpy_api(x)
    truncated = api.where(abs(x) < jnp.finfo(x.dtype).smallest_normal, 0, api.sign(x) * pow2_round_down(x))
    return api.where(api.isfinite(x), truncated, x).astype(x.dtype)


def as_e8m0(x):
    """The codes (u8) of f32 or bf16 powers of two, the exponent with bias 127; numbers between two of them are truncated. Zero, subnormals and
    negative numbers are 0, infinity and NaN 255."""
    if x.dtype not in (np.float32, jnp.bfloat16):
        raise TypeError(f"as_e8m0.x: must be f32 or bf16 (8 exponent bits), got {x.dtype}. Convert it first.")
    api = get_numpy_api(x)
    wide = x.astype(np.float32)
    return api.where(wide < 0, 0, (wide.view(np.uint32) >> 23) & 255).astype(np.uint8)


def from_e8m0(code, dtype):
    """The powers of two (f32 or bf16) of codes (u8); 255 is NaN."""
    if code.dtype != np.uint8:
        raise TypeError(f"from_e8m0.code: must be u8, got {code.dtype}.")
    api = get_numpy_api(code)
    word = code.astype(np.uint32)
    bits = api.where(word == 0, 1 << 22, word << 23)  # 2^-127 is subnormal
    return api.where(word == 255, np.nan, bits.astype(np.uint32).view(np.float32)).astype(dtype)
