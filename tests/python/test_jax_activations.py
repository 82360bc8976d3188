"""jax.nn's activations become the operators that policies name, whatever arithmetic this version of JAX makes of them."""
import re

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from oracle import check

from scalide.run_tool import run_tool
from scalide.jax import trace

ACTIVATIONS = {
    "relu": lambda x: jax.nn.relu(x),
    "gelu_tanh": jax.nn.gelu,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "silu": jax.nn.silu,
}
X = jnp.linspace(-4, 4, 24).reshape(4, 6)


def operators(program) -> list:
    return re.findall(r"= (\w+)\(", program.text)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("op", ACTIVATIONS)
def test_is_one_operator(op, dtype):
    for fn in (ACTIVATIONS[op], jax.jit(lambda x: ACTIVATIONS[op](x))):
        assert operators(trace(fn, X.astype(dtype))) == [op]
    assert operators(trace(ACTIVATIONS[op], X[0, 0].astype(dtype))) == [op]
    assert operators(trace(ACTIVATIONS[op], X.astype(dtype), symbolic=("b, _",))) == [op]


def test_other_names_of_them():
    assert operators(trace(lambda x: (jax.nn.swish(x), nn.gelu(x), nn.silu(x), nn.relu(x)), X)) == ["silu", "gelu_tanh", "silu", "relu"]
    assert operators(trace(lambda x: jax.nn.gelu(jax.nn.silu(2 * x)), X)) == ["mul", "silu", "gelu_tanh"]


def test_beside_their_gradients():
    """The forward value is the operator, the derivative stays arithmetic; both are JAX's."""
    for op, fn in ACTIVATIONS.items():
        both = jax.value_and_grad(lambda x, fn=fn: jnp.sum(fn(x) ** 2))
        found = operators(trace(both, X))
        assert found.count(op) == 1 and len(found) > 4, found
    check({op: (fn, (X / 2,)) for op, fn in ACTIVATIONS.items()})  # below -2 JAX's gelu adds 1 to a tanh of which hardly a place differs from -1


def test_near_misses_stay_arithmetic():
    def gelu(x, c, half):
        return x * (half * (1.0 + jnp.tanh(np.float32(np.sqrt(2 / np.pi)) * (x + c * x**3))))

    def named(x, y):
        return jnp.maximum(x, y)

    assert operators(trace(lambda x: gelu(x, np.float32(0.044715), np.float32(0.5)), X)) == ["gelu_tanh"]
    misses = {
        "constant": lambda x: gelu(x, np.float32(0.0447), np.float32(0.5)),
        "factor": lambda x: gelu(x, np.float32(0.044715), np.float32(0.25)),
        "other argument": lambda x: (x + 1) * jax.nn.sigmoid(x),
        "rows": lambda x: x[:1] * jax.nn.sigmoid(x[1:2]),
    }
    for name, fn in misses.items():
        assert not set(operators(trace(fn, X))) & set(ACTIVATIONS), name
    named.__name__ = "relu"  # which says nothing
    jitted, relu_of_1 = jax.jit(named), jax.custom_jvp(lambda x: jitted(x, 1.0))
    relu_of_1.defjvp(lambda primals, tangents: (jitted(primals[0], 1.0), tangents[0]))
    assert "relu" not in operators(trace(lambda x: relu_of_1(x), X))


def test_rows_of_policies_match_them(tmp_path):
    """bf16 stores what they return in 16 bits."""
    program = trace(lambda x, w: [fn(x) @ w for fn in ACTIVATIONS.values()], X, X.T)
    text = run_tool(program, "build", "--numerics", "bf16", "--dump-after", "assign_numerics", "--output", tmp_path)
    for op in ACTIVATIONS:
        (result,) = re.findall(rf"(\w+) = {op}\(", text)
        assert f"convert_element_type({result}) {{dtype: bf16" in text or f"({result}) {{dtype: bf16" in text, op


def test_softmax_and_log_softmax():
    check({"softmax": (jax.nn.softmax, (X,)), "log_softmax": (lambda x: jax.nn.log_softmax(x, axis=0), (X,)), "flax": (nn.softmax, (X,))})
