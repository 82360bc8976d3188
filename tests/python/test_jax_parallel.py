"""scalide.jax.parallel: a function with collectives is cut at them, on four devices of one process and in two processes."""
import os

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"

import functools  # noqa: E402
import socket  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import textwrap  # noqa: E402

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
from jax import lax  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402
from conftest import why_no_gloo  # noqa: E402
from test_library import error_of  # noqa: E402

import scalide  # noqa: E402
from scalide.jax import TraceError, parallel  # noqa: E402
from scalide.jax.trace import argument_names  # noqa: E402

if hasattr(jax, "shard_map"):
    shard_map = jax.shard_map
else:  # JAX 0.4.33
    from jax.experimental.shard_map import shard_map as _shard_map

    shard_map = functools.partial(_shard_map, check_rep=False)

D, R = P("data"), P()


def normal(*shape):
    return np.asarray(np.random.default_rng(sum(shape)).normal(size=shape), np.float32)


def loss(w, x, y):
    return jnp.mean((jnp.tanh(x @ w["w"] + w["b"]) - y) ** 2)


def data_parallel(w, x, y):
    value, gradient = jax.value_and_grad(lambda w: lax.pmean(loss(w, x, y), "data"))(w)
    size = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(gradient)))
    return jax.tree.map(lambda w, g: w - 0.1 * g / jnp.maximum(1, size), w, gradient), value


def fully_sharded(w, x, y):
    value, gradient = jax.value_and_grad(lambda w: loss({"w": lax.all_gather(w, "data", tiled=True), "b": 0.0}, x, y))(w)
    return w - 0.1 * gradient / 4, lax.pmean(value, "data")


PARAMS = {"w": normal(4, 3), "b": normal(3)}
X, Y = normal(8, 4), normal(8, 3)
RING = [(i, (i + 1) % 4) for i in range(4)]
#: by name: the function, its arguments, and how arguments and results are divided
FUNCTIONS = {
    "data_parallel": (data_parallel, (PARAMS, X, Y), (R, D, D), (R, R)),
    "fully_sharded": (fully_sharded, (normal(4, 3), X, Y), (D, D, D), (D, R)),
    "tensor_parallel": (lambda x, a, b: lax.psum(jax.nn.gelu(x @ a) @ b, "data"), (X, normal(4, 8), normal(8, 5)), (R, P(None, "data"), D), R),
    "ring": (lambda x: lax.ppermute(jnp.sin(x), "data", RING) * 2 + lax.axis_index("data"), (X,), D, D),
    "all_to_all": (lambda x: lax.all_to_all(jnp.exp(x), "data", 1, 0, tiled=True) + 1, (X,), D, D),
    "scatter": (lambda x: lax.psum_scatter(jnp.exp(x), "data", scatter_dimension=1, tiled=True) + 1, (X,), D, D),
    "scale_of_all": (lambda x: x / lax.pmax(jnp.abs(x).max(), "data"), (X,), D, D),
    "loop_inside": (lambda x: lax.psum(lax.scan(lambda c, x: (c * 0.5 + jnp.tanh(x), None), 0 * x[0], x)[0], "data"), (X,), D, R),
    "jit_inside": (lambda x: jax.jit(lambda x: jax.nn.relu(lax.psum(jax.nn.silu(x), "data")))(x) + 1, (X,), D, R),
    "no_collective": (jnp.tanh, (X,), D, D),
    "keyword_of_trace": (lambda name, fn: lax.psum(name * fn, "data"), (X, X + 1), (D, D), R),
    "arguments": (lambda x: (x, lax.psum(x, "data")), (X,), D, (D, R)),
}  # fmt: skip


@pytest.fixture(scope="module")
def mesh():
    assert jax.device_count() == 4, "XLA_FLAGS must be read before JAX starts: run this file alone"
    return jax.sharding.Mesh(np.array(jax.devices()), ("data",))


def run(mesh, fn, args, in_specs, out_specs):
    return jax.jit(shard_map(fn, mesh=mesh, in_specs=in_specs, out_specs=out_specs))(*args)


def compare(got, wanted, tolerance):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * np.abs(b).max()), got, wanted)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_agrees_with_jax(mesh, name):
    fn, args, in_specs, out_specs = FUNCTIONS[name]
    if name == "fully_sharded" and not hasattr(jax, "shard_map"):
        pytest.skip("the gradient of all_gather needs the check of replication, and the FFI of this JAX has no rule for it")
    compare(run(mesh, parallel(fn), args, in_specs, out_specs), run(mesh, fn, args, in_specs, out_specs), 1e-6)


@pytest.mark.parametrize("numerics, tolerance", [("bf16", 2e-2), ("f8_master", 2e-1)])  # of the largest element: operands have 8 and 4 bits
def test_policies(mesh, numerics, tolerance):
    wanted = run(mesh, data_parallel, *FUNCTIONS["data_parallel"][1:])
    got = run(mesh, parallel(data_parallel, numerics=numerics), *FUNCTIONS["data_parallel"][1:])
    compare(got, wanted, tolerance)
    assert not np.array_equal(got[0]["w"], wanted[0]["w"])


@pytest.mark.skipif(not hasattr(jax, "shard_map"), reason="the gradient of pmean needs the check of replication, and the FFI of this JAX has no rule for it")
@pytest.mark.parametrize("axes", ["data", ("data",)])
def test_all_devices_share_the_state_of_a_policy(mesh, axes):
    """Four devices with a quarter of the batch round as one device with the whole batch, because scales are those of the largest amax."""
    _, args, specs, results = FUNCTIONS["data_parallel"]
    w, x, y = args

    def whole(w, x, y):
        value, gradient = jax.value_and_grad(loss)(w, x, y)
        return jax.tree.map(lambda w, g: w - 0.5 * g, w, gradient), value

    def part(w, x, y):
        value, gradient = jax.value_and_grad(lambda w: lax.pmean(loss(w, x, y), "data"))(w)
        return jax.tree.map(lambda w, g: w - 0.5 * g, w, gradient), value

    step = parallel(part, numerics="f8_delayed", axes=axes)
    state = jax.jit(shard_map(step.init, mesh=mesh, in_specs=specs, out_specs=R))(w, x, y)
    train = jax.jit(shard_map(step, mesh=mesh, in_specs=(*specs, R), out_specs=(results, R)), donate_argnums=3)
    alone = scalide.build(scalide.jax.trace(whole, w, x, y), numerics="f8_delayed")
    states, v = alone.init(), w
    for _ in range(4):
        (w, value), state = train(w, x, y, state)
        (v, expected), states = alone(v, x, y, states)
        np.testing.assert_allclose(value, expected, rtol=1e-5)
    compare(w, v, 1e-5)
    scales = [sorted(float(array) for name, array in each.items() if array.ndim == 0) for each in (state["part_0"], states)]
    assert scales[0] == scales[1] and len(set(scales[0])) > 1


def test_arguments_keep_their_names(mesh, tmp_path):
    """A policy matches the names of arguments in each part. An argument that it stores in another dtype must be given in it."""
    policy = tmp_path / "own.yaml"
    policy.write_text("policy: own\nrules: [{argument: params.w, store: bf16, optional: true}]\n")

    def update(params, gradient):
        return params["w"] * 2 + lax.pmean(gradient, "data") * params["w"]

    w, g = {"w": normal(8, 4)}, normal(8, 4)
    assert error_of(run, mesh, parallel(update, numerics=policy), (w, g), (D, D), D).startswith("TypeError: update_0.params.w: dtype must be bf16, got float32.")
    w = {"w": jnp.asarray(w["w"], jnp.bfloat16)}
    compare(run(mesh, parallel(update, numerics=policy), (w, g), (D, D), D), run(mesh, update, (w, g), (D, D), D), 1e-6)


def test_names_are_those_of_trace():
    """Of positional arguments, of more than there are parameters, and of keywords in any order."""
    tree = {"w": X, "b": [Y, X]}
    names = argument_names(lambda params, *more, z, a: None, (tree, X, Y), {"z": X, "a": tree})
    traced = scalide.jax.trace(lambda params, *more, z, a: params["w"], tree, X, Y, z=X, a=tree)
    assert names == ["params.b.0", "params.b.1", "params.w", "more.0", "more.1", "a.b.0", "a.b.1", "a.w", "z"]
    assert sorted(names) == sorted(spec.name for spec in traced.inputs)
    leaves = jax.tree.leaves(((tree, X, Y), {"z": X, "a": tree}))
    assert [leaf.shape for leaf in leaves] == [dict((spec.name, tuple(spec.shape)) for spec in traced.inputs)[name] for name in names]


def test_pmap():
    x = normal(4, 2, 3)
    got = jax.pmap(parallel(lambda x: lax.psum(jnp.exp(x), "data") * 2), axis_name="data")(x)
    compare(got, np.broadcast_to(np.exp(x).sum(0) * 2, x.shape), 1e-6)


def test_what_cannot_be_cut(mesh):
    looped = parallel(lambda x: lax.scan(lambda c, x: (lax.pmax(c + x, "data") + 0 * x, None), x[0], x)[0])
    with pytest.raises(TraceError, match=r"test_jax_parallel.py:\d+:\d+ .*: scan: must not contain collectives in scalide.jax.parallel. Move them out"):
        run(mesh, looped, (X,), D, D)
    assert error_of(run, mesh, parallel(data_parallel, numerics="f8_delayed"), *FUNCTIONS["data_parallel"][1:]).startswith(
        "ValueError: scalide.jax.parallel: axes must name the axes of the mesh over which devices share the state of policy f8_delayed, such as ")
    assert error_of(run, mesh, parallel(data_parallel, numerics="f8_delayed", axes="data"), *FUNCTIONS["data_parallel"][1:]).startswith(
        "TypeError: data_parallel: the last argument must be the state of policy f8_delayed, a dict, got ")


PROCESS = """
    import sys
    import jax
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(sys.argv[2], 2, int(sys.argv[1]))
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import NamedSharding, PartitionSpec as P
    from scalide.jax import parallel

    def step(w, x, y):
        value, gradient = jax.value_and_grad(lambda w: jax.lax.pmean(jnp.mean((jnp.tanh(x @ w) - y) ** 2), "data"))(w)
        return w - 0.1 * gradient, value

    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
    draw = np.random.default_rng(0)
    arrays = [np.asarray(draw.normal(size=shape), np.float32) for shape in ((4, 3), (8, 4), (8, 3))]
    specs = (P(), P("data"), P("data"))
    w, x, y = (jax.make_array_from_callback(a.shape, NamedSharding(mesh, spec), lambda i, a=a: a[i]) for a, spec in zip(arrays, specs))
    train = jax.jit(jax.shard_map(parallel(step), mesh=mesh, in_specs=specs, out_specs=(P(), P())), donate_argnums=0)
    for _ in range(5):
        w, value = train(w, x, y)
    print("result", np.asarray(w.addressable_data(0)).tobytes().hex(), float(value.addressable_data(0)))
    if sys.argv[1] == "0":
        w, x, y = arrays
        for _ in range(5):
            gradient = jax.grad(lambda w: jnp.mean((jnp.tanh(x @ w) - y) ** 2))(w)
            w = w - 0.1 * gradient
        print("alone", np.asarray(w).tobytes().hex())
"""


@pytest.mark.skipif(not hasattr(jax, "shard_map"), reason="JAX 0.4.33 names the option otherwise")
@pytest.mark.skipif(why_no_gloo() is not None, reason=why_no_gloo() or "")
def test_two_processes():
    """Both processes have the same bits after five steps of data-parallel training over gloo, and agree with one process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    environment = os.environ | {"XLA_FLAGS": ""}
    started = [subprocess.Popen([sys.executable, "-c", textwrap.dedent(PROCESS), str(rank), address], stdout=subprocess.PIPE, text=True, env=environment)
               for rank in range(2)]  # fmt: skip
    try:
        printed = [process.communicate(timeout=240)[0] for process in started]
    finally:
        for process in started:
            process.kill()
    results = [next(line.split()[1:] for line in text.splitlines() if line.startswith("result")) for text in printed]
    assert results[0] == results[1]
    alone = next(line.split()[1] for line in printed[0].splitlines() if line.startswith("alone"))
    got, wanted = (np.frombuffer(bytes.fromhex(text), np.float32) for text in (results[0][0], alone))
    np.testing.assert_allclose(got, wanted, rtol=1e-5)
