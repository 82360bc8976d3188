"""Tests Program.compare on trainings of a small transformer that a policy breaks: the report must name the cause."""
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import scalide
from scalide.jax import trace

BATCH, LENGTH, WIDTH, HEADS, BLOCKS, CLASSES = 4, 8, 16, 4, 2, 8


def norm(x):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)


def block(p, x):
    with jax.named_scope("attention"):
        h = norm(x)
        q, k, v = ((h @ p[name]).reshape(BATCH, LENGTH, HEADS, WIDTH // HEADS) for name in ("wq", "wk", "wv"))
        with jax.named_scope("scores"):
            scores = jnp.einsum("bshe,bthe->bhst", q, k) * (WIDTH // HEADS) ** -0.5
        x = x + jnp.einsum("bhst,bthe->bshe", jax.nn.softmax(scores), v).reshape(BATCH, LENGTH, WIDTH) @ p["wo"]
    with jax.named_scope("mlp"):
        return x + jax.nn.gelu(norm(x) @ p["w1"]) @ p["w2"]


def loss(params, x, y, scale):
    for i in range(BLOCKS):
        with jax.named_scope(f"block{i}"):
            x = block(params[f"block{i}"], x)
    with jax.named_scope("head"):
        logits = norm(x).mean(1) @ params["head"]
    with jax.named_scope("loss"):
        return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * y, -1)) * scale


def step_of(scale):
    def step(params, x, y):
        value, gradient = jax.value_and_grad(loss)(params, x, y, scale)
        return jax.tree.map(lambda w, g: w - 0.1 * g, params, gradient), value

    return step


def first_values():
    draw = np.random.default_rng(0)
    shapes = {"wq": (WIDTH, WIDTH), "wk": (WIDTH, WIDTH), "wv": (WIDTH, WIDTH), "wo": (WIDTH, WIDTH), "w1": (WIDTH, 2 * WIDTH), "w2": (2 * WIDTH, WIDTH)}
    params = {f"block{i}": {name: 0.2 * draw.normal(size=shape).astype(np.float32) for name, shape in shapes.items()} for i in range(BLOCKS)}
    params["head"] = 0.2 * draw.normal(size=(WIDTH, CLASSES)).astype(np.float32)
    return params, draw.normal(size=(BATCH, LENGTH, WIDTH)).astype(np.float32), np.eye(CLASSES, dtype=np.float32)[draw.integers(0, CLASSES, BATCH)]


PARAMS, X, Y = first_values()


@pytest.fixture(scope="module")
def program():
    return trace(step_of(1.0), PARAMS, X, Y, donate_argnums=0)


def policy(folder, text):
    path = folder / "own.yaml"
    path.write_text(f"policy: own\ndoc: One rule of a user.\n{text}\n")
    return str(path)


def first_beyond(found):
    return found.tensors[found.first_beyond]


def test_healthy(program):
    found = program.compare(PARAMS, X, Y, numerics=("f32", "f8_master"))
    assert found.first_beyond is None and found.verdict.startswith("No tensor is beyond its limit.")
    assert found.uncompared == ()
    value = next(row for row in found.tensors if row.tensor == "out.1")
    exact, rounded = (scalide.build(program, numerics=name)(PARAMS, X, Y)[1] for name in ("f32", "f8_master"))
    assert math.isclose(value.error, abs(rounded - exact) / exact, rel_tol=0.02)  # kernels sum in another order than the interpreter
    assert re.search(r"^v\d+ +False +f32, f32 .* block0/attention +\S*test_jax_compare.py:\d+", repr(found), re.MULTILINE)


def test_a_rule_puts_a_block_into_e5m2(program, tmp_path):
    own = policy(tmp_path, 'extends: f8_master\nrules:\n  - {op: dot_general, operand: primal, scope: "block0/mlp/**", scale: {by: max}, store: f8_e5m2}')
    found = program.compare(PARAMS, X, Y, numerics=("f8_master", own))
    different = next(row for row in found.tensors if row.error)
    assert different.formats[1] == "f8_e5m2" and different.policy == "own.yaml:5" and different.scope == "block0/mlp"
    assert "The first tensor that differs is" in found.verdict and "by own.yaml:5" in found.verdict
    found = program.compare(PARAMS, X, Y, numerics=("f32", own), bisect="params.head")
    assert re.search(r"single rounding in the forward pass is 0.05\d+, in the copy of \S+ in f8_e5m2 \(.*block0/mlp.*\), by own.yaml:5", found.verdict)
    scopes = [each.name for each in found.bisection if each.kind == "scope"]
    assert scopes[0] in ("block0", "block0/mlp"), found.bisection
    (own_rule,) = [each for each in found.bisection if each.name.startswith("own.yaml:5")]
    (gradients,) = [each for each in found.bisection if each.name.startswith("f8_master.yaml:7")]
    assert own_rule.share > 0.15 > gradients.share, found.bisection


def test_cotangents_without_a_scale(tmp_path):
    own = policy(tmp_path, "extends: f8_master\nrules:\n  - {op: dot_general, operand: cotangent, store: f8_e5m2}")
    program = trace(step_of(1e-5), PARAMS, X, Y, donate_argnums=0)
    found = program.compare(PARAMS, X, Y, numerics=("f32", own))
    first = first_beyond(found)
    assert first.copy and first.formats == ("f32", "f8_e5m2") and first.policy == "own.yaml:5" and first.zeros > 0
    assert first.inputs < first.limit
    assert re.search(r"So the error is made here, by the rounding to f8_e5m2, by own.yaml:5: \d+ of \d+ elements become 0", found.verdict)
    kept = program.compare(PARAMS, X, Y, numerics=("f32", own), bisect="params.block0.wq").bisection
    assert next(each for each in kept if each.kind == "rule").name.startswith("own.yaml:5")


def test_an_outlier_under_delayed_scaling(program):
    library = scalide.build(program, numerics="f8_delayed")
    state = library.init(PARAMS, X, Y)
    normal = program.compare(PARAMS, X, Y, numerics=("f32", "f8_delayed"), state=state)
    assert normal.first_beyond is None, normal.verdict
    outlier = PARAMS | {"block0": PARAMS["block0"] | {"wv": 1000 * PARAMS["block0"]["wv"]}}
    found = program.compare(outlier, X, Y, numerics=("f32", "f8_delayed"), state=state)
    first = first_beyond(found)
    assert first.tensor == "params.block0.wv" and first.copy and first.saturated > 200 and first.policy == "f8_delayed.yaml:8"
    assert first.inputs == 0 and first.scope == "block0/attention"
    assert "elements saturate" in found.verdict


def test_scores_in_f16_without_a_scale(program, tmp_path):
    own = policy(tmp_path, 'rules:\n  - {op: dot_general, result: any, scope: "block1/attention/scores/**", store: f16}')
    large = {name: np.array(value) for name, value in PARAMS["block1"].items()}
    for name in ("wq", "wk"):
        large[name][:, 8:12] *= 1e4  # head 2
    found = program.compare(PARAMS | {"block1": large}, X, Y, numerics=("f32", own))
    first = first_beyond(found)
    assert first.copy and first.formats == ("f32", "f16") and first.policy == "own.yaml:4" and first.scope.startswith("block1/attention/scores")
    assert first.index[1] == 2 and first.saturated > 0 and first.amax[1] == 65504  # batch, head, query, key
    assert "elements saturate" in found.verdict and "test_jax_compare.py:" in found.verdict


def test_filters_and_mistakes(program):
    rows = program.compare(PARAMS, X, Y, numerics=("f32", "bf16"), scope="head/**").tensors
    assert rows and {row.scope for row in rows} == {"head"}
    (new, *_) = program.compare(PARAMS, X, Y, numerics=("f32", "f16_scaled"), tensor="params.head").tensors
    assert new.tensor == "params.head"
    with pytest.raises(ValueError, match="numerics must be two policies, the reference and the policy under test, got 'f32'"):
        program.compare(PARAMS, X, Y, numerics="f32")
    with pytest.raises(scalide.BuildError, match="must be two different policies, got 'f32' twice"):
        program.compare(PARAMS, X, Y, numerics=("f32", "f32"))
    with pytest.raises(scalide.BuildError, match="unknown policy 'f8_mastre'. Did you mean 'f8_master'?"):
        program.compare(PARAMS, X, Y, numerics=("f32", "f8_mastre"))
    with pytest.raises(TypeError, match="step"):
        program.compare(PARAMS, X, numerics=("f32", "bf16"))
