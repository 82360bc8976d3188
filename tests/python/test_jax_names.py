"""What a leaf is called says nothing about what it is: `data` and `scale` are names as any."""
import jax
import jax.numpy as jnp
import numpy as np

import scalide
import scalide.jax as sj

X = np.arange(-3, 5, dtype=np.float32)


def check(function, *args):
    """The library gives what JAX gives, in the same tree, from NumPy arrays and from JAX's."""
    library, expected = scalide.build(sj.trace(function, *args)), function(*args)
    for given in (args, jax.tree.map(jnp.asarray, args)):
        got = library(*given)
        assert jax.tree.structure(got) == jax.tree.structure(expected)
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(expected)):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)


def test_a_plain_argument_called_scale_may_be_negative():
    def function(params, x):
        scale = params["scale"]
        return x * jnp.abs(scale), jnp.maximum(scale, 0.0), jnp.maximum(scale, -1.0) * x, jnp.where(scale < 0, 0.0, 1.0)

    for scale in (-2.0, -0.5, 0.5):
        check(function, {"scale": np.float32(scale)}, X)


def test_data_and_scale_are_two_arguments():
    check(lambda params: params["w"]["data"] * params["w"]["scale"], {"w": {"data": X, "scale": np.float32(-3)}})


def test_data_and_scale_are_two_results():
    def quantise(x):
        scale = jnp.max(jnp.abs(x)) / 127
        return {"data": jnp.round(x / scale).astype(jnp.int8), "scale": scale}

    check(quantise, X)
    check(lambda x: {"data": x * 0.5, "scale": jnp.sum(x)}, X)
