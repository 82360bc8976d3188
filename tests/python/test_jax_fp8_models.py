"""FP8 in models as users write them: layers of Flax under its transformations, and plain JAX under the policies, beside jax.jit."""
import itertools
import pickle

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import slow_unless
from flax.linen import fp8_ops
from oracle import errors
from test_jax_fp8 import OPS, STATE, as_flax_rounds, as_max, check_training, drawn, same, step_of, variables_of

import scalide
import scalide.jax

pytestmark = [pytest.mark.usefixtures("partitionable"), pytest.mark.filterwarnings("ignore:The Fp8DotGeneralOp is deprecated")]


class Layer(nn.Module):
    """A residual block that nn.scan can repeat."""

    op: type

    @nn.compact
    def __call__(self, x, _=None):
        return x + nn.tanh(nn.Dense(x.shape[-1], dot_general_cls=self.op)(nn.LayerNorm()(x))), None


class Model(nn.Module):
    kind: str
    op: type

    @nn.compact
    def __call__(self, x):
        op, over_layers = {"dot_general_cls": self.op}, {"variable_axes": {"params": 0, STATE: 0}, "split_rngs": {"params": True}}
        if self.kind == "two_axes":
            return nn.DenseGeneral((3, 5), axis=(-2, -1), **op)(x)
        if self.kind == "batch_axis":
            return nn.DenseGeneral((3, 5), batch_dims=(0,), **op)(x)
        if self.kind == "attention":
            return nn.MultiHeadDotProductAttention(num_heads=2, qkv_dot_general_cls=self.op, out_dot_general_cls=self.op)(x, x)
        if self.kind == "vmap":
            return nn.vmap(nn.Dense, in_axes=0, **over_layers)(5, **op)(x)
        if self.kind == "remat":
            x = nn.relu(nn.remat(nn.Dense)(7, **op)(x))
            return nn.remat(nn.Dense, policy=jax.checkpoint_policies.dots_saveable)(4, **op)(x)
        if self.kind == "tied":
            layer = nn.Dense(x.shape[-1], **op)
            return layer(nn.relu(layer(x)))
        inner = nn.remat(Layer) if self.kind == "scan_of_remat" else Layer
        x, _ = nn.scan(inner, length=3, **over_layers)(self.op)(x, None)
        return nn.Dense(4, **op)(x)


SHAPES = {"two_axes": ((7, 4, 6), (7, 3, 5)), "batch_axis": ((3, 4, 6), (3, 4, 3, 5)), "attention": ((3, 5, 8), (3, 5, 8)), "vmap": ((3, 1, 65), (3, 1, 5)),
          "remat": ((6, 8), (6, 4)), "tied": ((6, 8), (6, 8)), "scan": ((6, 8), (6, 4)), "scan_of_remat": ((6, 8), (6, 4))}  # fmt: skip


@as_flax_rounds
@pytest.mark.parametrize("kind, name", slow_unless(lambda kind, name: name == OPS[0] or kind in ("tied", "attention"), itertools.product(SHAPES, [OPS[0], OPS[-1]])))
def test_transformed_layers_train_as_in_flax(kind, name):
    x, y = SHAPES[kind]
    check_training(Model(kind, getattr(fp8_ops, name)), drawn(0, *x), y, steps=3)


@as_flax_rounds
@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("value", [0.0, 1e30, np.inf, np.nan, 1e-30, 1e-42])
def test_extreme_inputs_leave_the_state_of_flax(name, value, step_of_tied):
    """The state after an extreme batch, and after a usual batch from that state."""
    step, library, variables = step_of_tied(name)
    usual, y = drawn(1, 6, 8), drawn(2, 6, 8)
    extreme = usual.copy()
    extreme[1] = value
    for x in (extreme, usual):
        want = step(variables, x, y)
        same(library(variables, x, y)[1][STATE], want[1][STATE], errors(lambda *args: step(*args)[1][STATE], (variables, x, y), want[1][STATE]))
        variables = {"params": variables["params"], STATE: want[1][STATE]}


@pytest.fixture(scope="module")
def step_of_tied():
    known = {}

    def make(name):
        if name not in known:
            module, x = Model("tied", getattr(fp8_ops, name)), drawn(0, 6, 8)
            variables, step = variables_of(module, x), step_of(module)
            known[name] = jax.jit(step), scalide.build(scalide.jax.trace(step, variables, x, x)), variables
        return known[name]

    return make


@as_flax_rounds
@pytest.mark.parametrize("form", ["unrolled", "rematerialized"])
def test_microbatches_without_a_scan(form):
    """State of the dtype fp32_max_grad that several calls read, outside of a scan and inside of jax.checkpoint."""
    module, batches = Model("tied", getattr(fp8_ops, OPS[-1])), drawn(0, 3, 6, 8)
    variables = variables_of(module, batches[0])

    def step(variables, batches):
        def loss(variables):
            state = as_max(variables[STATE])

            def one(x):
                return jnp.mean(jnp.square(module.apply({"params": variables["params"], STATE: state}, x)))

            one = jax.checkpoint(one) if form == "rematerialized" else one
            return sum(one(x) for x in batches)

        return jax.value_and_grad(loss)(variables)

    want = jax.jit(step)(variables, batches)
    same(scalide.build(scalide.jax.trace(step, variables, batches))(variables, batches), want, errors(jax.jit(step), (variables, batches), want))


@as_flax_rounds
def test_fifty_steps_of_adamw():
    optax = pytest.importorskip("optax")
    module, x = Model("remat", getattr(fp8_ops, OPS[0])), drawn(0, 9, 16)
    variables = variables_of(module, x)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.linear_schedule(0.0, 1e-2, 10)))

    def step(variables, state, x, y):
        value, gradients = jax.value_and_grad(lambda variables: jnp.mean(jnp.square(module.apply(variables, x) - y)))(variables)
        updates, state = optimizer.update(gradients["params"], state, variables["params"])
        return value, {"params": optax.apply_updates(variables["params"], updates), STATE: gradients[STATE]}, state

    library = scalide.build(scalide.jax.trace(step, variables, optimizer.init(variables["params"]), x, drawn(1, 9, 4), donate_argnums=(0, 1)))

    def train(step, variables):
        state, losses = optimizer.init(variables["params"]), []
        for i in range(50):
            loss, variables, state = step(variables, state, drawn(i, 9, 16) * np.float32(1 + i % 7), drawn(50 + i, 9, 4))
            losses.append(float(loss))
        return np.float32(losses), variables, state

    want = train(jax.jit(step), variables)
    same(train(library, variables), want, errors(lambda variables: train(jax.jit(step), variables), (variables,), want))


def plain(kind):
    """A model without FP8 in it, and its parameters."""
    params = {"layers": drawn(0, 3, 8, 8) / 3, "head": drawn(1, 8, 4) / 3}

    def model(params, x):
        layers = params["layers"]
        if kind == "scan":
            x, _ = jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, layers)
        elif kind == "fori_loop":
            x = jax.lax.fori_loop(0, 3, lambda i, x: jnp.tanh(x @ layers[i]), x)
        elif kind == "cond":
            x = jax.lax.cond(jnp.sum(x) > 0, lambda x: jnp.tanh(x @ layers[0]), lambda x: jnp.tanh(-x @ layers[1]), x)
        elif kind == "checkpoint":
            x = jax.checkpoint(lambda x: jnp.tanh(jnp.tanh(x @ layers[0]) @ layers[1]))(x)
        elif kind == "vmap":
            x = jax.vmap(lambda w: jnp.tanh(x @ w))(layers).mean(0)
        elif kind == "tied":
            x = jnp.tanh(jnp.tanh(x @ params["head"]) @ params["head"].T)
        return x @ params["head"]

    def step(params, x, y):
        value, gradients = jax.value_and_grad(lambda params: jnp.mean(jnp.square(model(params, x) - y)))(params)
        return value, jax.tree.map(lambda p, g: p - 0.05 * g, params, gradients)

    return step, params


@pytest.mark.parametrize("kind, numerics", [*(("scan", numerics) for numerics in ("f8_block", "f8_row", "mxfp8", "f8_master")),
                                            *((kind, "f8_delayed") for kind in ("scan", "fori_loop", "cond", "checkpoint", "vmap", "tied"))])  # fmt: skip
def test_plain_models_resume_with_the_same_bits(kind, numerics):
    """Eight steps with changing batches: losses near f32, and the same bits from a state that went through a file after four."""
    step, params = plain(kind)
    batches = [(drawn(10 + i, 9, 8) * np.float32(1 + 0.1 * i), drawn(30 + i, 9, 4)) for i in range(8)]
    library, jitted = scalide.build(scalide.jax.trace(step, params, *batches[0], donate_argnums=0), numerics=numerics), jax.jit(step)

    def train(params, state, batches):
        losses = []
        for batch in batches:
            if state:
                (loss, params), state = library(params, *batch, state)
            else:
                loss, params = library(params, *batch)
            losses.append(loss)
        return losses, params, state

    first, params_now, state = train(params, library.init(), batches[:4])
    whole = train(params_now, state, batches[4:])
    resumed = train(*pickle.loads(pickle.dumps((params_now, state))), batches[4:])
    assert [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(whole)] == [np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(resumed)]
    for batch, loss in zip(batches, first + whole[0]):
        want, params = jitted(params, *batch)
        np.testing.assert_allclose(loss, want, rtol=0.1)


def test_each_step_of_a_scan_has_its_own_history():
    """The layers of a scan are the parts of one stacked array. Each is a tensor with a history of its own, named by its index."""
    step, params = plain("scan")
    x, y = drawn(3, 9, 8), drawn(4, 9, 4)
    library = scalide.build(scalide.jax.trace(step, params, x, y), numerics="f8_delayed")
    _, state = library(params, x, y, library.init())
    assert [name for name in state if name.startswith("params.") and name.endswith("history")] == [
        *(f"params.layers.{i}.amax_history" for i in range(3)), "params.head.amax_history"]  # fmt: skip
    for i in range(3):
        assert state[f"params.layers.{i}.amax_history"][0] == np.abs(params["layers"][i]).max()


def test_tied_weights_have_one_history():
    """Two layers that read one array, also transposed, share its scale and its history."""
    step, params = plain("tied")
    library = scalide.build(scalide.jax.trace(step, params, drawn(3, 9, 8), drawn(4, 9, 4)), numerics="f8_delayed")
    assert [name for name in library.init() if name.startswith("params.")] == ["params.head.amax_history", "params.head.scale"]
