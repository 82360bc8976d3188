"""Optimizers of optax and modules of Flax."""
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax.training import train_state
from oracle import check, differs, errors

import scalide
from scalide.jax import trace

OPTIMIZERS = {
    "sgd": lambda: optax.sgd(0.1),
    "momentum": lambda: optax.sgd(0.1, momentum=0.9, nesterov=True),
    "adam": lambda: optax.adam(1e-2),
    "adamw": lambda: optax.adamw(1e-2, weight_decay=0.1),
    "rmsprop": lambda: optax.rmsprop(1e-2, momentum=0.5),
    "lion": lambda: optax.lion(1e-2),
    "lamb": lambda: optax.lamb(1e-2),
    "adafactor": lambda: optax.adafactor(1e-2, min_dim_size_to_factor=4),
    "radam": lambda: optax.radam(1e-2),
    "adagrad": lambda: optax.adagrad(1e-2),
    "novograd": lambda: optax.novograd(1e-2),
    "finite": lambda: optax.apply_if_finite(optax.sgd(0.1), 3),
    "every_second": lambda: optax.MultiSteps(optax.adam(1e-2), 2),
    "clipped": lambda: optax.chain(optax.clip_by_global_norm(0.5), optax.sgd(optax.cosine_decay_schedule(0.1, 100))),
}


def test_optimizers():
    """The second step, when states are no longer zero."""
    draw = np.random.default_rng(0)
    params = {"w": jnp.asarray(draw.normal(size=(8, 6)), jnp.float32), "b": jnp.asarray(draw.normal(size=6), jnp.float32)}
    cases = {}
    for name, make in OPTIMIZERS.items():
        optimizer = make()
        _, state = optimizer.update(jax.tree.map(jnp.ones_like, params), optimizer.init(params), params)

        def step(gradients, state, params, optimizer=optimizer):
            updates, state = optimizer.update(gradients, state, params)
            return optax.apply_updates(params, updates), state

        cases[name] = step, (jax.tree.map(jnp.sin, params), state, params)
    check(cases, gradient=False)


def test_one_cycle_schedules():
    """Their intervals are chosen by a product of bools and floats."""
    schedules = {name: getattr(optax, f"{name}_onecycle_schedule")(100, 1e-2) for name in ("linear", "cosine")}
    steps = np.int32([0, 3, 30, 31, 60, 84, 85, 99, 100, 150])
    check({name: (jax.vmap(schedule), (steps,)) for name, schedule in schedules.items()}, gradient=False, ulps=16)  # differences near 1
    optimizer = optax.adamw(schedules["cosine"])
    weights = {"w": jnp.linspace(-1, 1, 6)}
    check({"adamw": (lambda g, s, p: optimizer.update(g, s, p), (weights, optimizer.init(weights), weights))}, gradient=False)


def modules():
    return {
        "dense": (nn.Dense(5), (4, 7)),
        "conv": (nn.Conv(6, (3, 3), strides=2), (2, 9, 9, 3)),
        "layer_norm": (nn.LayerNorm(), (4, 16)),
        "group_norm": (nn.GroupNorm(2), (4, 8)),
        "rms_norm": (nn.RMSNorm(), (4, 16)),
        "attention": (nn.MultiHeadDotProductAttention(num_heads=2, qkv_features=8), (2, 5, 8)),
        "depthwise": (nn.Conv(4, (3,), feature_group_count=4), (2, 9, 4)),
        "transposed": (nn.ConvTranspose(3, (2, 2), strides=(2, 2)), (1, 4, 4, 2)),
        "stack": (nn.Sequential([nn.Dense(8), nn.relu, nn.Dense(3), nn.softmax]), (4, 6)),
    }


@pytest.mark.parametrize("name", modules())
def test_modules(name):
    module, shape = modules()[name]
    x = jnp.asarray(np.random.default_rng(1).normal(size=shape), jnp.float32)
    params = module.init(jax.random.key(0), x)
    check({"grad": (jax.value_and_grad(lambda params, x: jnp.sum(jnp.sin(module.apply(params, x))), argnums=(0, 1)), (params, x))}, gradient=False)


def test_embedding():
    module, ids = nn.Embed(10, 6), jnp.asarray([[1, 2, 2], [9, 0, 3]], jnp.int32)
    params = module.init(jax.random.key(0), ids)
    check({"grad": (jax.value_and_grad(lambda params, ids: jnp.sum(jnp.sin(module.apply(params, ids)))), (params, ids))}, gradient=False)


def test_batch_norm_and_dropout(partitionable):
    x = jnp.asarray(np.random.default_rng(2).normal(size=(8, 6)), jnp.float32)
    norm = nn.BatchNorm(use_running_average=False)
    variables = norm.init(jax.random.key(0), x)
    dropout = nn.Dropout(0.4, deterministic=False)
    check({"batch_norm": (lambda variables, x: norm.apply(variables, x, mutable=["batch_stats"]), (variables, x)),
           "average": (lambda variables, x: nn.BatchNorm(use_running_average=True).apply(variables, x), (variables, x)),
           "dropout": (lambda x, key: dropout.apply({}, x, rngs={"dropout": key}), (x, jax.random.key(5)))},
          gradient=False)  # fmt: skip


class Classifier(nn.Module):
    train: bool = True

    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.BatchNorm(use_running_average=not self.train)(nn.Conv(4, (3, 3), use_bias=False)(x)))
        x = nn.max_pool(x, (2, 2), (2, 2)).reshape(len(x), -1)
        return nn.Dense(5)(nn.Dropout(0.3, deterministic=not self.train)(x))


class State(train_state.TrainState):
    batch_stats: dict
    key: jax.Array


def test_train_state(partitionable):
    """Statistics of batch norm, dropout, a chain of optax with a schedule; the state is donated and goes through several steps."""
    x, y = jnp.asarray(np.random.default_rng(3).normal(size=(8, 6, 6, 2)), jnp.float32), jnp.arange(8) % 5
    model = Classifier()
    variables = model.init({"params": jax.random.PRNGKey(1), "dropout": jax.random.PRNGKey(2)}, x)
    rate = optax.warmup_cosine_decay_schedule(0.0, 0.01, 3, 10)
    state = State.create(apply_fn=model.apply, tx=optax.chain(optax.clip_by_global_norm(1.0), optax.add_decayed_weights(1e-4), optax.adam(rate)),
                         params=variables["params"], batch_stats=variables["batch_stats"], key=jax.random.PRNGKey(3))  # fmt: skip

    def step(state, x, y):
        def loss(params):
            logits, updated = state.apply_fn({"params": params, "batch_stats": state.batch_stats}, x, mutable=["batch_stats"],
                                             rngs={"dropout": jax.random.fold_in(state.key, state.step)})  # fmt: skip
            return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean(), (updated, logits)

        (value, (updated, logits)), gradients = jax.value_and_grad(loss, has_aux=True)(state.params)
        state = state.apply_gradients(grads=gradients, batch_stats=updated["batch_stats"])
        return state, {"loss": value, "accuracy": (logits.argmax(-1) == y).mean(), "norm": optax.global_norm(gradients)}

    library, jitted = scalide.build(trace(step, state, x, y, donate_argnums=0)), jax.jit(step)

    def run(step, state):
        metrics = []
        for _ in range(4):
            state, found = step(state, x, y)
            metrics.append(found)
        return metrics, state

    (metrics, ours), want = run(library, state), run(jitted, state)
    assert isinstance(ours, State) and ours.step == 4
    allowed = errors(lambda state: run(jitted, state), (state,), want)
    problems = list(map(differs, jax.tree.leaves((metrics, ours)), jax.tree.leaves(want), allowed))
    assert not any(problems), problems
