"""Scaled arithmetic in ten minutes: every statement is checked by an assert."""
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

import scalide.jax as jsa

np.seterr(over="ignore")  # f16 overflows on purpose

# A ScaledArray is data and one scale. It stands for the same array whatever the scale is.
a = np.array([1, 2], np.float16)
for scale in (0.5, 1, 4):
    scaled = jsa.as_scaled_array(a, scale=np.float32(scale))
    assert isinstance(scaled, jsa.ScaledArray) and scaled.dtype == np.float16
    np.testing.assert_array_equal(np.asarray(scaled), a)
print("1, 2 with scale 4:", scaled)

# So f16 holds what is too large or too small for it, and f8 too.
large = np.array([2, 4], np.float32) * 2**16
assert np.isinf(large.astype(np.float16)).all()
held = jsa.as_scaled_array(large, scale=np.float32(2**17)).astype(np.float16)
np.testing.assert_array_equal(np.asarray(held, dtype=np.float32), large)
beyond = jsa.as_scaled_array(jnp.array([400, 448, 512], jnp.float32), scale=np.float32(128)).astype(jnp.float8_e4m3fn)
np.testing.assert_array_equal(beyond.to_array(np.float32), [384, 448, 512])


# scalify: a function of plain arrays becomes one of ScaledArrays. Without them it is what it was.
@jsa.scalify
def add(a, b):
    return a + b


b = np.array([3, 6], np.float16)
np.testing.assert_array_equal(add(a, b), a + b)
total = add(jsa.as_scaled_array(a, scale=np.float32(2)), jsa.as_scaled_array(b, scale=np.float32(4)))
assert isinstance(total, jsa.ScaledArray)
np.testing.assert_array_equal(np.asarray(total), a + b)
print("their sum:", total)
with jsa.ScalifyConfig(rounding_mode=jsa.Pow2RoundMode.NONE):  # scales are powers of two unless told otherwise
    print("with the scale as it comes:", add(jsa.as_scaled_array(a, scale=np.float32(2)), jsa.as_scaled_array(b, scale=np.float32(4))))

# Scales follow unit scaling: the product of normal numbers stays near 1, and in the range of f16.
random = np.random.RandomState(0)
x, y = random.randn(16, 1024).astype(np.float32) * 128, random.randn(1024, 8).astype(np.float32) * 64
product = jsa.scalify(jnp.dot)(jsa.as_scaled_array(x, scale=np.float32(128)).astype(np.float16), jsa.as_scaled_array(y, scale=np.float32(64)).astype(np.float16))
assert 0.5 < np.std(np.asarray(product.data, np.float32)) < 2 and np.isinf((x @ y).astype(np.float16)).any()
np.testing.assert_allclose(np.asarray(product, dtype=np.float32), x @ y, rtol=0.01, atol=0.01 * np.std(x @ y))
print("a product of standard deviation", np.std(x @ y), "has the scale", product.scale)

# Where statistics say more than the operators, rescale by a norm. The value stays.
wide = jsa.as_scaled_array(random.randn(1024).astype(np.float32) * 64, scale=np.float32(4))
rescaled = jsa.ops.dynamic_rescale_l2(wide)
assert 0.5 < np.std(rescaled.data) < 2
np.testing.assert_array_equal(np.asarray(rescaled), np.asarray(wide))
assert jsa.ops.dynamic_rescale_max(a) is a  # nothing to do for plain arrays

# Casts act in one direction: on values, or on cotangents.
rounded = jsa.scalify(lambda v: jsa.ops.reduce_precision_on_forward(v, ml_dtypes.float8_e4m3fn))(jsa.as_scaled_array(np.array([17.0, 19.0]), scale=np.float32(2)))
np.testing.assert_array_equal(np.asarray(rounded), [16, 20])

# Gradients are taken inside; jit goes around.
step = jax.jit(jsa.scalify(jax.value_and_grad(lambda w, x: jnp.mean(jnp.tanh(x @ w) ** 2))))
w = jsa.as_scaled_array(random.randn(64, 4).astype(np.float16), scale=np.float32(1))
images = jsa.as_scaled_array(random.randn(32, 64).astype(np.float16), scale=np.float32(1))
value, gradient = step(w, images)
print("loss", float(np.asarray(value)), "gradient's scale", gradient.scale)
