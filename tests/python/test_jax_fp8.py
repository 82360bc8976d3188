"""The FP8 layers of Flax (flax.linen.fp8_ops): recipes with amax histories, whose gradients replace the state."""
import itertools
import subprocess
import warnings

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import TOOL, slow_unless
from flax.linen import fp8_ops
from oracle import differs, errors

import scalide
import scalide.jax

warnings.filterwarnings("ignore", message="The Fp8DotGeneralOp is deprecated", category=DeprecationWarning)
pytestmark = pytest.mark.usefixtures("partitionable")  # Flax draws keys while it traces
STATE = fp8_ops.OVERWRITE_WITH_GRADIENT
OPS = [name for name in ("Fp8DotGeneralOp", "Fp8DirectDotGeneralOp", "NANOOFp8DotGeneralOp") if hasattr(fp8_ops, name)]
#: XLA of old versions converts f32 to FP8 through f16 on CPUs: just above a tie it rounds down (tests/upstream).
ROUNDS_TWICE = float(jax.jit(lambda x: x.astype(jnp.float8_e4m3fn))(np.float32(1.0625 + 2.0**-20))) != 1.125
as_flax_rounds = pytest.mark.skipif(ROUNDS_TWICE, reason="this XLA rounds f32 to FP8 twice")


def drawn(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def variables_of(module, x):
    return module.init(jax.random.key(0), x)


def step_of(module, rate=0.05):
    """A step of SGD that replaces the state of the recipe by its gradient."""

    def step(variables, x, y):
        def loss(variables):
            return jnp.mean(jnp.square(module.apply(variables, x).astype(jnp.float32) - y))

        value, gradients = jax.value_and_grad(loss)(variables)
        params = jax.tree.map(lambda p, g: p - rate * g, variables["params"], gradients["params"])
        return value, {"params": params, STATE: gradients[STATE]}

    return step


def train(step, variables, batches):
    losses = []
    for batch in batches:
        loss, variables = step(variables, *batch)
        losses.append(np.float32(loss))
    return np.array(losses), variables


def same(got, want, allowed=None):
    leaves = jax.tree.leaves(want)
    found = map(differs, jax.tree.leaves(got), leaves, allowed or [0.0] * len(leaves))
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(want)]
    problems = [f"{path}: {difference}" for path, difference in zip(paths, found, strict=True) if difference]
    assert not problems, "\n".join(problems)


class Dense(nn.Module):
    op: type
    dtype: jnp.dtype = jnp.float32

    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Dense(24, dot_general_cls=self.op, dtype=self.dtype)(x))
        return nn.Dense(16, dot_general_cls=self.op, dtype=self.dtype)(x)


class Einsum(nn.Module):
    equation: str
    shape: tuple

    @nn.compact
    def __call__(self, x):
        return fp8_ops.Fp8Einsum()(self.equation, x, self.param("kernel", nn.initializers.normal(), self.shape))


def with_params(variables, dtype):
    return variables | {"params": jax.tree.map(lambda leaf: leaf.astype(dtype), variables["params"])}


def check_training(module, x, y_shape, dtype="float32", steps=6):
    """Results may be as far from Flax as a rounding of the parameters to dtype moves them."""
    variables = variables_of(module, x)
    batches = [(drawn(2 * i, *x.shape) * (1 + i), drawn(2 * i + 1, *y_shape)) for i in range(steps)]
    step = step_of(module)
    library, jitted = scalide.build(scalide.jax.trace(step, variables, *batches[0], donate_argnums=0)), jax.jit(step)
    want = train(jitted, variables, batches)

    def moved(rounded, batches):
        return train(jitted, with_params(rounded, "float32"), batches)

    allowed = errors(moved, (with_params(variables, dtype), batches), want)
    same(train(library, variables, batches), want, allowed)


@as_flax_rounds
@pytest.mark.parametrize("name, dtype", slow_unless(lambda name, dtype: dtype == "float32" or name == OPS[0], itertools.product(OPS, ["float32", "bfloat16"])))
def test_dense_trains_as_in_flax(name, dtype):
    """Six steps from one state: losses, parameters, scales and histories."""
    check_training(Dense(getattr(fp8_ops, name), jnp.dtype(dtype)), drawn(0, 8, 32), (8, 16), dtype)


@pytest.mark.skipif(not hasattr(fp8_ops, "Fp8Einsum"), reason="this Flax has no Fp8Einsum")
@pytest.mark.parametrize("equation, x, kernel, y", [("bij,bjk->bik", (4, 6, 8), (4, 8, 5), (4, 6, 5)), ("bij,jhk->bhik", (4, 6, 8), (8, 2, 5), (4, 2, 6, 5))])
def test_einsum_trains_as_in_flax(equation, x, kernel, y):
    check_training(Einsum(equation, kernel), drawn(0, *x), y)


def as_max(tree):
    return jax.tree.map(lambda leaf: jax.lax.convert_element_type(leaf, fp8_ops.fp32_max_grad), tree)


@pytest.mark.parametrize("steps", [3, 6])
def test_gradients_of_fp32_max_grad_are_added_by_max(steps):
    """The state is used in each step of a scan. The gradient is the largest of its new values."""

    def last(x, history, scale):
        history, scale = as_max((history, scale))
        x, _ = jax.lax.scan(lambda x, _: (fp8_ops.in_qdq(jnp.float32, jnp.float8_e4m3fn, x * 2, scale, history), None), x[None], None, length=steps)
        return x[0]

    args = np.float32(2.5), np.float32([3, 1, 2]), np.ones(1, np.float32)
    gradients = jax.grad(last, (0, 1, 2))
    got = scalide.build(scalide.jax.trace(gradients, *args))(*args)
    same(got, jax.jit(gradients)(*args))
    assert steps > 3 or got[1][0] == 6.0, "the largest amax of the steps, not the sum"


@as_flax_rounds
@pytest.mark.parametrize("name", OPS)
def test_microbatches_keep_the_largest_amax(name):
    """Gradients of parameters are added over microbatches, the state of the recipe is the maximum."""
    module = Dense(getattr(fp8_ops, name))
    batches = drawn(0, 3, 8, 32)
    variables = variables_of(module, batches[0])

    def step(variables, batches):
        def loss(variables):
            state = as_max(variables[STATE])

            def add(total, x):
                return total + jnp.mean(jnp.square(module.apply({"params": variables["params"], STATE: state}, x))), None

            return jax.lax.scan(add, 0.0, batches)[0]

        return jax.value_and_grad(loss)(variables)

    got, want = scalide.build(scalide.jax.trace(step, variables, batches))(variables, batches), jax.jit(step)(variables, batches)
    same(got, want, errors(jax.jit(step), (variables, batches), want))
    history = got[1][STATE]["Dense_0"][f"{name}_0"]["input_amax_history"]
    assert history[0] == np.abs(batches).max()


def test_matmuls_read_fp8(tmp_path):
    """No array of the matmuls is stored dequantized; `scalide explain` names the formats."""
    module, x = Dense(fp8_ops.Fp8DotGeneralOp), drawn(0, 256, 512)
    variables = variables_of(module, x)
    program = scalide.jax.trace(step_of(module), variables, x, drawn(1, 256, 16), donate_argnums=0)
    path = tmp_path / "step.scl"
    program.save(path)
    rows = subprocess.run([TOOL, "explain", path], check=True, capture_output=True, text=True).stdout.splitlines()
    formats = [row.split()[2] for row in rows if "convert_element_type.out" in row and not row.startswith("note")]
    assert formats == ["f8_e4m3fn"] * 4 + ["f8_e5m2"] * 2
    report = subprocess.run([TOOL, "inspect", path], check=True, capture_output=True, text=True).stdout
    assert report.count("contract  ") == 5 and "scatter" not in report


class Plain(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.Dense(24)(x))
        return nn.Dense(16)(x)


def test_recipe_in_the_model_and_in_the_policy():
    """One model with the layers of Flax, and without them under the policy f8_delayed: the same scales, and losses that differ by roundings."""
    module, x, y = Dense(fp8_ops.Fp8DotGeneralOp), drawn(0, 64, 32), drawn(1, 64, 16)
    variables = variables_of(module, x)
    params = variables["params"]

    def plain_step(params, x, y):
        value, gradients = jax.value_and_grad(lambda params: jnp.mean(jnp.square(Plain().apply({"params": params}, x) - y)))(params)
        return value, jax.tree.map(lambda p, g: p - 0.05 * g, params, gradients)

    in_model = scalide.build(scalide.jax.trace(step_of(module), variables, x, y, donate_argnums=0))
    in_policy = scalide.build(scalide.jax.trace(plain_step, params, x, y, donate_argnums=0), numerics="f8_delayed")
    state = in_policy.init()
    for i in range(10):
        batch = x * np.float32(1.5**i), y
        of_model, variables = in_model(variables, *batch)
        (of_policy, params), state = in_policy(params, *batch, state)
        np.testing.assert_allclose(of_policy, of_model, rtol=0.02)
        recipe = variables[STATE]["Dense_0"]["Fp8DotGeneralOp_0"]
        np.testing.assert_array_equal(state["x.amax_history"], recipe["input_amax_history"])
        np.testing.assert_allclose(state["params.Dense_0.kernel.amax_history"], recipe["kernel_amax_history"], rtol=0.01)


def test_a_primitive_without_a_rule_is_one_error_with_the_line():
    def step(x, history, scale):
        return fp8_ops.in_qdq(jnp.float32, jnp.float8_e4m3fn, jnp.linalg.eigvalsh(x), scale, history)

    with pytest.raises(NotImplementedError, match=r"test_jax_fp8.py:\d+.*JAX primitive 'eigh' is not supported"):
        scalide.jax.trace(step, np.ones((4, 4), np.float32), np.zeros(16, np.float32), np.ones(1, np.float32))
