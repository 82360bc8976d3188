"""Networks, filters, solvers and decoders that consist of loops: forward, and a training step with Adam, compiled, next to jax.jit; under policies
next to f32."""
import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn
from jax import lax
from loop_models import Draw, Model, adaptive_ode, beam_search, cross_entropy, generation, gpt, gru, kalman, lstm, mamba, rwkv
from oracle import interpreted

import scalide
from scalide.jax import trace

MODELS = {"lstm": lambda: lstm(300), "gru": lambda: gru(40), "mamba": lambda: mamba(30), "rwkv": lambda: rwkv(30), "gpt": lambda: gpt(6),
          "gpt.remat": lambda: gpt(6, remat=True), "kalman": lambda: kalman(1000)}  # fmt: skip

#: How far the outputs and the gradients of a policy may be from f32, as a part of their norm. A product of two f16 numbers is off by 2^-11, and
#: one of f8_e4m3fn and f8_e5m2 by 2^-3; roundings add up along the steps.
NEAR = {"f16_master": 0.003, "f8_master": 0.2}


def distance(got, want) -> float:
    """The norm of the difference of two trees, as a part of the norm of the second."""
    a, b = (np.concatenate([np.asarray(leaf, np.float64).ravel() for leaf in jax.tree.leaves(tree)]) for tree in (got, want))
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def same(got, want, rtol=2e-4, of_largest=2e-5):
    """Floats near, as sums of other orders make them; all others equal."""
    for (path, mine), theirs in zip(jax.tree_util.tree_leaves_with_path(got), jax.tree.leaves(want), strict=True):
        mine, theirs = np.asarray(mine), np.asarray(theirs)
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape), path
        if not np.issubdtype(theirs.dtype, np.floating):
            np.testing.assert_array_equal(mine, theirs, err_msg=str(path))
            continue
        largest = np.abs(theirs[np.isfinite(theirs)]).max(initial=0)
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=of_largest * largest, err_msg=str(path))


def compare(model: Model, near: dict) -> None:
    """f32 gives what jax.jit gives. A policy gives what f32 gives up to its roundings."""
    forward, step = (model.params, *model.data), (model.params, model.moments(), *model.data)
    programs = trace(model.outputs, *forward), trace(model.step, *step)
    assert all("= scan(" in program.text for program in programs)
    results = [scalide.build(program)(*args) for program, args in zip(programs, (forward, step))]
    same(results, [jax.jit(model.outputs)(*forward), jax.jit(model.step)(*step)])
    gradient = gradient_of(results[1][1], step[1])
    for policy, limit in near.items():
        outputs, (_, state, value) = (scalide.build(program, numerics=policy)(*args) for program, args in zip(programs, (forward, step)))
        distances = distance(outputs, results[0]), distance(gradient_of(state, step[1]), gradient), distance(value, results[1][2])
        assert max(distances) < limit, (policy, distances)


def gradient_of(after, before):
    """The gradient that a step of Adam got."""
    return jax.tree.map(lambda a, b: (np.asarray(a) - 0.9 * b) / 0.1, after[0].mu, before[0].mu)


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    compare(MODELS[name](), dict.fromkeys(NEAR, 1e-5) if name == "kalman" else NEAR)


DECODERS = {"beam_search": beam_search, "greedy": generation, "greedy.loops": lambda: generation(loops=True, layers=5),
            "sampled": lambda: generation(sampled=True), "ode": adaptive_ode}  # fmt: skip


@pytest.mark.parametrize("name", DECODERS)
def test_programs_without_a_gradient(name, partitionable):
    """Under a policy the interpreter, which rounds as kernels must, is the reference: another token changes all that follows."""
    fn, args = DECODERS[name]()
    program = trace(fn, *args)
    same(scalide.build(program)(*args), jax.jit(fn)(*args))
    for policy in NEAR:
        numerics = program.numerics(policy)
        same(scalide.build(numerics)(*args), interpreted(numerics, *args, mode="stored"), rtol=1e-3, of_largest=1e-3)


def carries_of(program, folder, numerics) -> dict:
    """The carries of all loops of the plan, by the shape of the array: whether a step reads and writes the same memory."""
    scalide.build(program, numerics=numerics, output=folder)
    plan = json.loads(next(folder.glob("*.json")).read_text())["programs"][0]
    shapes = {buffer["name"]: tuple(buffer["shape"]) for buffer in plan["buffers"]}
    carries = [carry for block in plan["blocks"] for carry in block.get("carries", [])]
    found = {}
    for carry in carries:
        found.setdefault(shapes[carry["before"]], []).append(carry["before"] == carry["after"])
    return found


@pytest.mark.parametrize("numerics", ["f32", "f8_master"])
@pytest.mark.parametrize("loops", [False, True], ids=["cache_of_each_layer", "cache_of_all_layers"])
def test_caches_are_updated_in_place(loops, numerics, tmp_path):
    """A step writes one row of each cache, and copies none."""
    fn, args = generation(loops=loops, layers=5 if loops else 2)
    found = carries_of(trace(fn, *args), tmp_path, numerics)
    shape, count = ((5, 2, 12, 2, 8), 4) if loops else ((2, 12, 2, 8), 4)
    assert found[shape] == [True] * count


def test_a_table_that_is_read_later_is_not_overwritten(tmp_path):
    """The inner loop starts with the table, and the step reads the table after it, too."""

    def f(xs):
        def outer(table, x):
            new = lax.fori_loop(0, 99, lambda i, t: lax.dynamic_update_slice(t, (x * i)[None], (i % 5, 0)), table)
            return new, new.sum() - table.sum()

        return lax.scan(outer, jnp.ones((5, 3)), xs)

    xs = Draw().normal(7, 3)
    program = trace(f, xs)
    assert sorted(carries_of(program, tmp_path, "f32")[5, 3]) == [False, True]
    same(scalide.build(program)(xs), jax.jit(f)(xs))


def test_rows_of_parents_are_not_overwritten(tmp_path):
    """A step reads the rows of parents while it writes the rows of beams: the loop has two arrays of tokens."""
    fn, args = beam_search()
    assert carries_of(trace(fn, *args), tmp_path, "f32")[3, 9] == [False]


# Optimizers and layers of libraries.


def library_step(optimizer):
    model = gru(12)

    def step(params, state, *data):
        value, gradient = jax.value_and_grad(model.loss)(params, *data)
        updates, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, value

    return step, model


OPTIMIZERS = {"multi_steps": lambda: optax.MultiSteps(optax.sgd(0.1, momentum=0.9), every_k_schedule=3),
              "apply_if_finite": lambda: optax.apply_if_finite(optax.sgd(0.1, momentum=0.9), max_consecutive_errors=2)}  # fmt: skip


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_branches_of_optimizers(name):
    """Seven steps, of which the second has a gradient that is not finite if the optimizer skips it."""
    optimizer = OPTIMIZERS[name]()
    step, model = library_step(optimizer)
    state = optimizer.init(model.params)
    program = trace(step, model.params, state, *model.data)
    ours = {"f32": scalide.build(program), **{policy: scalide.build(program, numerics=policy) for policy in NEAR}}
    jitted = jax.jit(step)
    runs = {name: (model.params, state) for name in (*ours, "jax")}
    for number in range(7):
        for each, (params, state) in runs.items():
            given = params | {"head": params["head"] * np.float32(np.inf)} if number == 1 and name == "apply_if_finite" else params
            *_, params, state = (params, *(ours[each] if each in ours else jitted)(given, state, *model.data)[:2])
            runs[each] = (runs[each][0] if number == 1 and name == "apply_if_finite" else params), state
    same(runs["f32"], runs["jax"], rtol=1e-3, of_largest=1e-4)
    for policy, near in NEAR.items():
        change, wanted = (jax.tree.map(lambda a, b: a - b, runs[each][0], model.params) for each in (policy, "f32"))
        assert distance(change, wanted) < near, policy


def flax_models():
    class Block(nn.Module):
        @nn.compact
        def __call__(self, x, _):
            h = nn.LayerNorm()(x)
            x = x + nn.MultiHeadDotProductAttention(num_heads=2)(h, h, mask=nn.make_causal_mask(jnp.ones(x.shape[:2])))
            return x + nn.Dense(8)(nn.gelu(nn.Dense(16)(nn.LayerNorm()(x)))), None

    class Gpt(nn.Module):
        @nn.compact
        def __call__(self, tokens):
            x = nn.Embed(11, 8)(tokens)
            x, _ = nn.scan(nn.remat(Block), variable_axes={"params": 0}, split_rngs={"params": True}, length=6)()(x, None)
            return nn.Dense(11)(nn.LayerNorm()(x))

    class Recurrent(nn.Module):
        @nn.compact
        def __call__(self, tokens):
            x = nn.RNN(nn.OptimizedLSTMCell(8))(nn.Embed(11, 8)(tokens))
            return nn.Dense(11)(nn.RNN(nn.GRUCell(8), reverse=True, keep_order=True)(x))

    return {"nn.scan": Gpt(), "nn.RNN": Recurrent()}


def of_flax(name) -> Model:
    tokens = Draw().tokens(11, 2, 13)
    data = tokens[:, :-1], tokens[:, 1:]
    if name == "nnx.scan":
        outputs, params = of_nnx()
    else:
        module = flax_models()[name]
        outputs, params = lambda params, x, y: module.apply(params, x), module.init(jax.random.key(0), data[0])
    params = jax.tree.map(np.asarray, params)
    return Model(outputs, lambda params, x, y: cross_entropy(outputs(params, x, y), y), params, data)


def of_nnx():
    nnx = pytest.importorskip("flax.nnx")

    class Stack(nnx.Module):
        def __init__(self, rngs):
            @nnx.split_rngs(splits=6)
            @nnx.vmap(in_axes=0, out_axes=0)
            def layers(rngs):
                return nnx.Linear(8, 8, rngs=rngs)

            self.embed, self.layers, self.head = nnx.Embed(11, 8, rngs=rngs), layers(rngs), nnx.Linear(8, 11, rngs=rngs)

        def __call__(self, tokens):
            @nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
            def forward(x, layer):
                return x + nnx.gelu(layer(x))

            return self.head(forward(self.embed(tokens), self.layers))

    graph, params = nnx.split(Stack(nnx.Rngs(0)))
    return lambda params, x, y: nnx.merge(graph, params)(x), params


@pytest.mark.parametrize("name", ["nn.scan", "nn.RNN", "nnx.scan"])
def test_layers_of_flax(name):
    """The gradient of the layers with a norm of 8 numbers is sensitive: unrolled, f8_master is 0.42 from f32, too."""
    compare(of_flax(name), NEAR | ({"f8_master": 0.6} if name == "nn.scan" else {}))
