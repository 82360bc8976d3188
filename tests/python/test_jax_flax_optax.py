"""Optimizers of optax and modules of Flax."""
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from oracle import check

OPTIMIZERS = {
    "sgd": lambda: optax.sgd(0.1),
    "momentum": lambda: optax.sgd(0.1, momentum=0.9, nesterov=True),
    "adam": lambda: optax.adam(1e-2),
    "adamw": lambda: optax.adamw(1e-2, weight_decay=0.1),
    "rmsprop": lambda: optax.rmsprop(1e-2, momentum=0.5),
    "lion": lambda: optax.lion(1e-2),
    "lamb": lambda: optax.lamb(1e-2),
    "adafactor": lambda: optax.adafactor(1e-2, min_dim_size_to_factor=4),
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
    check({"grad": (jax.value_and_grad(lambda params, x: jnp.sum(jnp.sin(module.apply(params, x))), argnums=(0, 1)), (params, x))}, gradient=False, tolerance=1e-4)


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
