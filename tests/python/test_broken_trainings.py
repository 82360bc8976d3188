"""Broken trainings whose cause is known: the first line of one command must name the tensor, its place and the mechanism."""
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from training_runs import Training, draws, sgd, write_policy

import scalide

numbers = draws(0)
TARGET = numbers(16, 8)


def batches(count, change=lambda number, x: x):
    """Batches of an MLP; `change` may change the inputs of a step."""
    made = []
    for number in range(count):
        x = numbers(16, 16)
        made.append((change(number, x.copy()), np.tanh(x @ TARGET)))
    return made


def mlp(p, x, y):
    with jax.named_scope("hidden"):
        h = jax.nn.relu(x @ p["w1"])
    with jax.named_scope("middle"):
        h = jax.nn.relu(h @ p["w2"])
    with jax.named_scope("head"):
        return jnp.mean((h @ p["w3"] - y) ** 2)


def mlp_values():
    return {"w1": numbers(16, 32, by=0.3), "w2": numbers(32, 32, by=0.25), "w3": numbers(32, 8, by=0.25)}


def attention(p, x, y):
    with jax.named_scope("attention"):
        q, k, v = (jnp.einsum("bsd,dhe->bhse", x, p[name]) for name in ("wq", "wk", "wv"))
        with jax.named_scope("scores"):
            scores = jnp.einsum("bhse,bhte->bhst", q, k) * 0.5
        mixed = jnp.einsum("bhst,bhte->bhse", jax.nn.softmax(scores), v)
    with jax.named_scope("head"):
        return jnp.mean((jnp.einsum("bhse,hed->bsd", mixed, p["wo"]) - y) ** 2)


def attention_values(large):
    """The second of four heads has large queries and keys."""
    values = {name: numbers(8, 4, 4, by=0.3) for name in ("wq", "wk", "wv")} | {"wo": numbers(4, 4, 8, by=0.3)}
    for name in ("wq", "wk"):
        values[name][:, 2] *= large
    return values


def sequences(count):
    return [(numbers(2, 8, 8), numbers(2, 8, 8)) for _ in range(count)]


def test_1a_scores_of_one_head_overflow_in_f32(tmp_path):
    training = Training(tmp_path, sgd(attention, 0.1), attention_values(np.float32(1e22)), sequences(3), "f16_master")
    assert re.match(r"bad: \S+ \(\S+ in attention/\S+, test_broken_trainings.py:\d+\) has an infinity or a NaN in step 0. The tensors before it "
                    r"are finite, so it comes from dot_general in attention/scores/\S+ \(test_broken_trainings.py:\d+\), whose result can reach \S+, "
                    r"and f32 ends at 3.40282e\+38\.", training.report()[0]), training.report()  # fmt: skip
    found = training.library.first_non_finite(attention_values(np.float32(1e22)), *sequences(1)[0], interpret="stored")
    assert "attention/scores" in found.tensor and dict(zip(found.axes, found.index))["h"] == 2


def test_1b_scores_saturate_in_f16_without_a_scale(tmp_path):
    own = write_policy(tmp_path, 'rules:\n  - {op: dot_general, result: any, scope: "**/scores/**", store: f16}')
    training = Training(tmp_path, sgd(attention, 0.1), attention_values(np.float32(1e3)), sequences(3), own)
    assert re.match(r'bad: v\d+ \(stored in attention/scores, .*\): up to \S+ % of its elements saturate, from step 0 on. Its largest magnitude is \S+, which is \S+ '
                    r"times the largest number that f16 holds without a scale", training.report()[0]), training.report()  # fmt: skip
    verdict = training.program.compare(attention_values(np.float32(1e3)), *sequences(1)[0], numerics=("f32", own)).verdict
    assert re.match(r"The first tensor beyond its limit is the copy of v\d+ in f16 \(dot_general in attention/scores/.*the rounding to f16, by own.yaml:4: "
                    r"\d+ of \d+ elements saturate", verdict), verdict  # fmt: skip


def test_2_the_logarithm_of_a_probability_of_zero(tmp_path):
    def entropy(p, x, y):
        with jax.named_scope("hidden"):
            h = jax.nn.relu(x @ p["w1"])
        with jax.named_scope("loss"):
            return -jnp.mean(jnp.sum(jnp.log(jax.nn.softmax(h @ p["w2"])) * y, -1))

    def batch(number):
        x = numbers(16, 16)
        x[3] *= 100 if number == 37 else 1
        return x, np.eye(8, dtype=np.float32)[numbers.random.integers(0, 8, 16)]

    training = Training(tmp_path, sgd(entropy, 0.1), {"w1": numbers(16, 32, by=0.3), "w2": numbers(32, 8, by=0.3)}, [batch(n) for n in range(40)], "f8_master")
    assert re.search(r"in step 37\. The tensors before it are finite, so it comes from log in loss \(test_broken_trainings.py:\d+\), whose operand can be 0\.",
                     training.report()[0]), training.report()  # fmt: skip


def test_3_gradients_become_zero_without_a_scale(tmp_path):
    own = write_policy(tmp_path, "extends: f8_master\nrules:\n  - {op: dot_general, operand: cotangent, store: f8_e5m2}")
    training = Training(tmp_path, sgd(lambda *args: mlp(*args) * 1e-5, 1e4), mlp_values(), batches(12), own)
    first, second = training.report()[:2]
    assert re.match(r"bad: v\d+ \(dot_general.rhs in head, test_broken_trainings.py:\d+\): 100 % of its elements become 0 by rounding to f8_e5m2", first), first
    assert "is exactly 0 in 12 of 12 lines" in second and "Nothing before this operator trains" in second
    states = training.library.check(training.last, *batches(1)[0]).states
    assert [row.zero_updates for row in states if row.tensor == "params.w1"] == [16 * 32]


def test_4_one_batch_spoils_the_moments_of_adam(tmp_path):
    def step(state, x, y):
        value, gradient = jax.value_and_grad(mlp)(state["params"], x, y)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["m"], gradient)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, state["v"], gradient)
        return {"params": jax.tree.map(lambda p, m, v: p - 0.01 * m / (jnp.sqrt(v) + 1e-8), state["params"], m, v), "m": m, "v": v}, value

    zeros = jax.tree.map(np.zeros_like, mlp_values())
    first = {"params": mlp_values(), "m": zeros, "v": {name: value.copy() for name, value in zeros.items()}}
    training = Training(tmp_path, step, first, batches(30, lambda number, x: x * np.float32(1e6 if number == 20 else 1)), "f16_scaled")
    first, second = training.report()[:2]
    assert re.match(r"bad: x \(dot_general.lhs in hidden, .*\): its largest magnitude grows \S+ times from step 19 to step 20", first), first
    assert re.match(r"bad: state.m.w\d .*: its largest magnitude grows \S+ times from step 20 to step 21.* It stays there afterwards", second), second


def test_5_a_rule_puts_a_layer_into_e5m2(tmp_path):
    own = write_policy(tmp_path, 'extends: f8_master\nrules:\n  - {op: dot_general, operand: primal, scope: "hidden", scale: {by: max}, store: f8_e5m2}')
    training = Training(tmp_path, sgd(mlp, 0.05), mlp_values(), batches(8), own)
    assert re.match(r"warn: batch.0 \(dot_general.lhs in hidden, .*\) is stored in f8_e5m2, which has 2 bits of mantissa, in the forward pass",
                    training.report()[0]), training.report()  # fmt: skip
    verdict = training.program.compare(mlp_values(), *batches(1)[0], numerics=("f8_master", own)).verdict
    assert "The first tensor that differs is the copy of batch.0 in f8_e5m2" in verdict and "by own.yaml:5" in verdict


def test_6_an_outlier_under_delayed_scaling(tmp_path):
    """The outlier saturates in its step. Afterwards, the history keeps its amax."""
    training = Training(tmp_path, sgd(mlp, 0.01), mlp_values(), batches(48, lambda number, x: x * np.float32(1000 if number == 37 else 1)), "f8_delayed")
    first, second = training.report()[:2]
    assert re.match(r"bad: batch.0 \(dot_general.lhs in hidden, .*\): from step 38 to step 47, its scale is \S+ times larger for its values than before.* "
                    r"The cause is step 37, in which its largest magnitude is", first), first  # fmt: skip
    assert re.match(r"bad: batch.0 .*: up to (100|9\d\S*) % of its elements saturate, from step 37 on", second), second
    (misfit,) = training.library.check(training.last, *batches(1)[0], training.state).misfits
    assert misfit.tensor == "batch.0" and "times too large" in misfit.problem


def with_scale(tree, name, factor):
    array = tree[name]
    return tree | {name: scalide.ScaledArray(array.data, np.float32(array.scale) * np.float32(factor))}


@pytest.mark.parametrize("factor", [1024, 3])
def test_7_a_checkpoint_with_a_wrong_scale(tmp_path, factor):
    """The step before has written other numbers."""
    training = Training(tmp_path, sgd(mlp, 0.01), mlp_values(), batches(24), "f8_scaled",
                        before=lambda number, params: with_scale(params, "w2", factor) if number == 20 else params)  # fmt: skip
    (first, *_) = training.report()
    assert re.match(r"bad: params.w2 \(dot_general.rhs in middle, .*\): its .* from step 19 to step 20,", first), first
    wrote, read = map(float, re.search(r"Step 19 wrote the root mean square (\S+), and step 20 reads (\S+): the state was changed", first).groups())
    assert read / wrote == pytest.approx(factor, rel=0.05)


@pytest.mark.filterwarnings("ignore:ScaledArray.scale")
def test_7_a_checkpoint_with_a_scale_of_zero_infinity_or_nan(tmp_path):
    training = Training(tmp_path, sgd(mlp, 0.01), mlp_values(), batches(24), "f8_scaled",
                        before=lambda number, params: with_scale(params, "w2", 0) if number == 20 else params)  # fmt: skip
    (first, *_) = training.report()
    assert re.match(r"bad: params.w2 .* is exactly 0 from step 20 on.* Step 19 wrote the root mean square \S+, and step 20 reads 0", first), first
    params = training.library.convert(mlp_values())
    for factor, problem in {np.inf: "must be finite", np.nan: "must be finite", -1: "must not be negative"}.items():
        with pytest.raises(ValueError, match=f"ScaledArray.scale: {problem}"):
            with_scale(params, "w2", factor)


def test_8_an_infinity_in_the_data(tmp_path):
    def change(number, x):
        x[3, 2] = np.inf if number == 20 else x[3, 2]
        return x

    training = Training(tmp_path, sgd(mlp, 0.01), mlp_values(), batches(24, change), "f8_delayed")
    assert re.match(r"bad: batch.0 \(dot_general.lhs in hidden, .*\) has an infinity or a NaN in step 20. It is an argument, so the program does not make it",
                    training.report()[0]), training.report()  # fmt: skip
