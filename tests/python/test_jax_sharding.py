"""scalide.jax.call(batch=): a sharded batch stays where it is, each of four devices runs its part."""
import os

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"

import re  # noqa: E402

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from jax.sharding import NamedSharding, PartitionSpec as P  # noqa: E402
from test_library import error_of  # noqa: E402

import scalide  # noqa: E402
from scalide.jax import ScaledArray, call, trace, vjp  # noqa: E402

PARAMS = {"w": jnp.linspace(-1, 1, 12).reshape(4, 3), "b": jnp.ones(3)}
X = jnp.linspace(0, 1, 32).reshape(8, 4)


def layer(params, x, rate):
    return jnp.tanh(x @ params["w"] + params["b"]) * rate


@pytest.fixture(scope="module")
def mesh():
    assert jax.device_count() == 4, "XLA_FLAGS must be read before JAX starts: run this file alone"
    return jax.sharding.Mesh(np.array(jax.devices()).reshape(4), ("data",))


@pytest.fixture(scope="module")
def forward():
    return scalide.build(trace(layer, PARAMS, X, 2.0, symbolic=(None, "b, ...", None)))


@pytest.fixture(scope="module")
def backward():
    out = jax.eval_shape(layer, PARAMS, X, 2.0)
    return scalide.build(trace(vjp(layer), out, PARAMS, X, 2.0, symbolic=("b, ...", None, "b, ...", None)))


def sharded(mesh, x, *spec):
    return jax.device_put(x, NamedSharding(mesh, P(*spec)))


def collectives(jitted, *args):
    return re.findall(r"= .*? (all-gather|all-reduce|all-to-all|collective-permute)(?:-start)?\(", jitted.lower(*args).compile().as_text())


def test_each_device_runs_its_part(mesh, forward):
    x, want = sharded(mesh, X, "data"), layer(PARAMS, X, 2.0)
    divided = jax.jit(call(forward, batch="b"))
    got = divided(PARAMS, x, 2.0)
    np.testing.assert_allclose(got, want, rtol=1e-6)
    assert got.sharding.spec[0] == "data" and not collectives(divided, PARAMS, x, 2.0)
    gathered = jax.jit(call(forward))
    np.testing.assert_array_equal(gathered(PARAMS, x, 2.0), got)
    assert "all-gather" in collectives(gathered, PARAMS, x, 2.0)  # what batch saves
    within = jax.jit(lambda x: jnp.sum(call(forward, batch="b")(PARAMS, x * 2, 2.0)))
    np.testing.assert_allclose(within(x), layer(PARAMS, X * 2, 2.0).sum(), rtol=1e-5)
    assert "all-gather" not in collectives(within, x)
    np.testing.assert_allclose(divided(PARAMS, sharded(mesh, X, None, "data"), 2.0), want, rtol=1e-6)  # another axis is gathered
    np.testing.assert_allclose(divided(PARAMS, X, 2.0), want, rtol=1e-6)
    for eager in (x, X):
        np.testing.assert_allclose(call(forward, batch="b")(PARAMS, eager, 2.0), want, rtol=1e-6)


def test_a_sharding_without_a_mesh_is_gathered(forward):
    if not hasattr(jax.sharding, "PositionalSharding"):
        pytest.skip("every sharding of this JAX has a mesh")
    x = jax.device_put(X, jax.sharding.PositionalSharding(jax.devices()).reshape(2, 2))
    with pytest.warns(UserWarning, match="layer: batch='b' has no effect on arrays that are not sharded over a mesh"):
        np.testing.assert_allclose(jax.jit(call(forward, batch="b"))(PARAMS, x, 2.0), layer(PARAMS, X, 2.0), rtol=1e-6)


def test_gradients_are_summed(mesh, forward, backward):
    generated = call(forward, backward, batch="b")

    def loss(f, params, x, rate):
        return jnp.sum(f(params, x, rate) ** 2)

    of = jax.jit(jax.grad(loss, argnums=(1, 2, 3)), static_argnums=0)
    x = sharded(mesh, X, "data")
    got, want = of(generated, PARAMS, x, 2.0), jax.grad(loss, argnums=(1, 2, 3))(layer, PARAMS, X, 2.0)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), got, want)
    assert got[1].sharding.spec[0] == "data" and set(collectives(of, generated, PARAMS, x, 2.0)) == {"all-reduce"}


def test_two_axes_of_a_mesh(forward):
    mesh = jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 2), ("data", "model"))
    x, params = sharded(mesh, X, "data"), jax.tree.map(lambda w: sharded(mesh, w, *[None] * (w.ndim - 1)), PARAMS)
    np.testing.assert_allclose(jax.jit(call(forward, batch="b"))(params, x, 2.0), layer(PARAMS, X, 2.0), rtol=1e-6)
    both = sharded(mesh, X, ("data", "model"))
    got = jax.jit(call(forward, batch="b"))(params, both, 2.0)
    np.testing.assert_allclose(got, layer(PARAMS, X, 2.0), rtol=1e-6)
    assert got.sharding.spec[0] == ("data", "model")


def test_vmap(mesh, forward):
    if not hasattr(jax, "ffi"):
        pytest.skip("the FFI of this JAX has no vmap")
    rates = jnp.array([1.0, 2.0])
    got = jax.jit(jax.vmap(call(forward, batch="b"), (None, None, 0)))(PARAMS, sharded(mesh, X, "data"), rates)
    np.testing.assert_allclose(got, jax.vmap(layer, (None, None, 0))(PARAMS, X, rates), rtol=1e-6)


def test_what_cannot_be_divided(forward, tmp_path):
    assert error_of(call, forward, batch="n") == "ValueError: layer: batch must be an extent of an argument, got 'n'. The symbols are: b."

    def refused(fn, *args, symbolic):
        return error_of(call, scalide.build(trace(fn, *args, symbolic=symbolic)), batch="b")

    assert refused(lambda x: x.sum(), X, symbolic=("b, ...",)).startswith(
        "ValueError: lambda.out: results must have the axis b when batch='b', got out: f32[]. Compute results of the whole batch outside")
    assert "extents must be b or not contain it" in refused(lambda x: jnp.concatenate([x, x]), X, symbolic=("b, ...",))
    assert "a scale belongs to the whole array" in refused(lambda x: x * 2, ScaledArray(X, 1.0), symbolic=("b, ...",))
    alone = scalide.Library(scalide.build(forward.program, output=tmp_path).path)
    assert "'batch' needs the program of the library" in error_of(call, alone, batch="b")
