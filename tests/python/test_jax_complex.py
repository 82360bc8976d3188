"""Complex values between real arguments and results: FFTs, and arithmetic on what they return. The reference is NumPy in 64 bits, or JAX."""
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import scalide
from scalide.jax import TraceError, trace
from scalide.jax.complex_values import _PARTWISE
from scalide.jax.primitives import RULES

random = np.random.default_rng(11)
X, Y, K = (np.float32(random.standard_normal(shape)) for shape in ((3, 12), (4, 5, 9), (12,)))


def spectral_filter(x, k):
    """A circular convolution, as in FNet and in the Fourier neural operator."""
    return jnp.fft.irfft(jnp.fft.rfft(x) * jnp.fft.rfft(k), x.shape[-1])


FUNCTIONS = {
    "amplitude": (lambda x: jnp.abs(jnp.fft.rfft(x)), (X,)),
    "power": (lambda x: jnp.square(jnp.abs(jnp.fft.rfft(x, axis=0))), (X,)),
    "filter": (spectral_filter, (X, K)),
    "odd length": (lambda x: jnp.fft.irfft(jnp.fft.rfft(x) * (2 - 1j), 9), (Y,)),
    "padded": (lambda x: jnp.fft.irfft(jnp.fft.rfft(x, 16)[..., 1:6], 12), (X,)),
    "mixing": (lambda x: jnp.fft.fft2(x).real, (Y,)),
    "rfft2": (lambda x: jnp.fft.irfft2(jnp.fft.rfft2(x) / 3, x.shape[-2:]), (Y,)),
    "rfftn": (lambda x: jnp.imag(jnp.fft.rfftn(x)), (Y,)),
    "ifft": (lambda x: jnp.fft.ifft(lax.complex(x, x[::-1])).imag, (X,)),
    "shifted": (lambda x: jnp.abs(jnp.fft.fftshift(jnp.fft.fft(x), 1)), (X,)),
    "arithmetic": (lambda x, k: (lambda z: jnp.real(z * jnp.conj(z) + z**3 / (z - 2j)))(lax.complex(x, x * k)), (X, K)),
    "movement": (lambda x: jnp.sum(jnp.concatenate([jnp.fft.rfft(x), jnp.fft.rfft(2 * x)]).T.reshape(3, -1), 1).imag, (X,)),
    "choice": (lambda x: (lambda z: jnp.where(jnp.abs(z) > 2, z, 0).real)(jnp.fft.fft(x)), (X,)),
    "phase": (lambda x: jnp.real(jnp.exp(1j * x)), (X,)),
    "unit": (lambda x: (lambda z: (z / jnp.abs(z)).imag)(jnp.fft.rfft(x)), (X,)),
    "equal": (lambda x: (jnp.fft.fft(x) == jnp.fft.fft(x)), (X,)),
}


def in_64_bits(fn, args):
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        return jax.tree_util.tree_map(np.asarray, fn(*(np.float64(arg) for arg in args)))
    finally:
        jax.config.update("jax_enable_x64", before)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name):
    """A sum of n terms, each with a few roundings: 40 units in the last place of the largest element."""
    fn, args = FUNCTIONS[name]
    result, exact = scalide.build(trace(fn, *args))(*args), in_64_bits(fn, args)
    assert result.shape == exact.shape
    np.testing.assert_allclose(result, exact, atol=40 * 2.0**-24 * max(1, np.abs(exact).max()), rtol=0)


@pytest.mark.parametrize("name", ["amplitude", "filter", "odd length", "mixing", "rfft2", "arithmetic", "phase", "unit"])
def test_gradients(name):
    fn, args = FUNCTIONS[name]
    gradient = jax.grad(lambda *args: jnp.sum(jnp.sin(fn(*args))), tuple(range(len(args))))
    for found, exact in zip(scalide.build(trace(gradient, *args))(*args), in_64_bits(gradient, args), strict=True):
        np.testing.assert_allclose(found, exact, atol=100 * 2.0**-24 * max(1, np.abs(exact).max()), rtol=0)


def test_division_reaches_the_ends_of_the_range():
    x = np.float32([1e30, 1e-30, 3.0])
    result = scalide.build(trace(lambda x: jnp.real(lax.complex(x, x) / lax.complex(x, -x)) + jnp.imag(lax.complex(x, x) / lax.complex(x, -x)), x))(x)
    np.testing.assert_array_equal(result, np.ones(3, np.float32))  # (1 + i) / (1 - i) = i


def test_division_by_zero_and_by_infinities():
    inf = np.inf
    parts = [np.float32(part) for part in ([1, 1, 0, inf, 1, 1, 2], [1, -1, 0, 1, 2, 2, 3], [0, 0, 0, 2, inf, inf, -inf], [0, 0, 0, 1, 0, inf, 1])]

    def divide(a, b, c, d):
        quotient = lax.complex(a, b) / lax.complex(c, d)
        return quotient.real, quotient.imag

    for found, wanted in zip(scalide.build(trace(divide, *parts))(*parts), divide(*parts), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_a_transform_is_one_operator():
    """Policies match its matmul, and `explain` shows it."""
    text = trace(lambda x: jnp.abs(jnp.fft.rfft(x)), X).text
    assert len(re.findall(r"= rfft\(", text)) == 1


@pytest.mark.parametrize("fn, message", [
    (jnp.fft.rfft, "result out: dtypes must be real, got complex64. Return the real and the imaginary part"),
    (lambda x: {"a": x, "z": x + 1j}, "result out.z: dtypes must be real"),
    (lambda x: jnp.sin(jnp.fft.rfft(x)).real, "sin: has no rule for complex values, got complex64. Compute with real and imaginary parts"),
])  # fmt: skip
def test_refusals(fn, message):
    with pytest.raises(TraceError, match=re.escape(message)):
        trace(fn, X)


def test_every_primitive_by_parts_has_a_rule():
    assert set(RULES) >= _PARTWISE
