"""Broken trainings of several kinds, as users of low precision meet them. None of them was used to write the first form of the report: its
first line must name the tensor, its place and the mechanism."""
import re

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from training_runs import Training, draws, sgd, write_policy

numbers = draws(1)
HERE = r"test_unseen_trainings.py:\d+"


def classes(count, kinds):
    return np.eye(kinds, dtype=np.float32)[numbers.random.integers(0, kinds, count)]


def first_line(training, pattern):
    lines = training.report()
    assert re.match(pattern, lines[0]), "\n".join(lines)


def test_learning_rate_after_warm_up(tmp_path):
    def loss(p, x, y):
        with jax.named_scope("hidden"):
            h = jax.nn.gelu(x @ p["w1"])
        with jax.named_scope("head"):
            return jnp.mean((h @ p["w2"] - y) ** 2)

    def step(p, x, y, rate):
        value, gradient = jax.value_and_grad(loss)(p, x, y)
        return jax.tree.map(lambda w, g: w - rate * g, p, gradient), value

    batches = [(numbers(32, 16), numbers(32, 8), np.float32(1e-3 * (number + 1) if number < 20 else 10)) for number in range(30)]
    training = Training(tmp_path, step, {"w1": numbers(16, 32, by=0.3), "w2": numbers(32, 8, by=0.3)}, batches, "f8_master")
    first_line(training, r"bad: rate \(argument, .*\): its largest magnitude grows 500 times from step 19 to step 20, from 0.02 to 10. It stays there")


def test_dead_relu_layer(tmp_path):
    def loss(p, x, y):
        with jax.named_scope("first"):
            h = jax.nn.relu(x @ p["w1"] + p["b1"])
        with jax.named_scope("second"):
            h = jax.nn.relu(h @ p["w2"] + p["b2"])
        with jax.named_scope("head"):
            return jnp.mean((h @ p["w3"] - y) ** 2)

    first = {"w1": numbers(16, 32, by=0.3), "b1": np.zeros(32, "f4"), "w2": numbers(32, 32, by=0.2), "b2": np.full(32, -100, "f4"), "w3": numbers(32, 8)}
    training = Training(tmp_path, sgd(loss, 0.05), first, [(numbers(32, 16), numbers(32, 8)) for _ in range(12)], "bf16")
    first_line(training, rf"bad: v\d+ \(dot_general.lhs in head, {HERE}\) is exactly 0 in 12 of 12 lines of statistics. Its operator is relu in second \({HERE}\)")


def test_softmax_without_maximum_in_f16(tmp_path):
    def loss(p, x, y):
        with jax.named_scope("hidden"):
            h = jax.nn.relu(x @ p["w1"])
        with jax.named_scope("softmax"):
            e = jnp.exp(h @ p["w2"])
            return -jnp.mean(jnp.sum(e / jnp.sum(e, -1, keepdims=True) * y, -1))

    first = {"w1": numbers(16, 32, by=0.3).astype("f2"), "w2": numbers(32, 8, by=0.6).astype("f2")}
    batches = [(numbers(16, 16, by=1 if number < 9 else 3).astype("f2"), classes(16, 8).astype("f2")) for number in range(12)]
    training = Training(tmp_path, sgd(loss, np.float16(0.1)), first, batches)
    first_line(training, rf"bad: v\d+ \(stored in softmax, {HERE}\): up to \S+ % of its elements saturate, from step 9 on. Its largest magnitude is \S+, which is "
                         rf"\S+ times the largest number that f16 holds without a scale. Its operator is exp in softmax \({HERE}\)")  # fmt: skip
    assert any("so it comes from exp in softmax" in line for line in training.report()[:3]), training.report()


def test_mask_of_a_whole_row(tmp_path):
    def loss(p, x, mask, y):
        with jax.named_scope("attention"):
            q, k, v = x @ p["wq"], x @ p["wk"], x @ p["wv"]
            with jax.named_scope("mask"):
                scores = jnp.where(mask[:, None, :], jnp.einsum("bse,bte->bst", q, k) * 0.25, -jnp.inf)
            with jax.named_scope("softmax"):
                a = jax.nn.softmax(scores)
            mixed = jnp.einsum("bst,bte->bse", a, v)
        with jax.named_scope("head"):
            return jnp.mean((mixed @ p["wo"] - y) ** 2)

    batches = []
    for number in range(15):
        mask = np.arange(8)[None] < numbers.random.integers(1, 9, (4, 1))
        mask[2] &= number != 12
        batches.append((numbers(4, 8, 16), mask, numbers(4, 8, 16)))
    training = Training(tmp_path, sgd(loss, 0.1), {name: numbers(16, 16, by=0.25) for name in ("wq", "wk", "wv", "wo")}, batches, "f8_master")
    first_line(training, rf"bad: v\d+ \(stored in attention/softmax, {HERE}\) has an infinity or a NaN in step 12. The tensors before it are finite, so it comes "
                         rf"from sub in attention/softmax \({HERE}\), which subtracts infinities that select_n in attention/mask writes, if a whole row has them")  # fmt: skip


def test_gradients_underflow_in_f16_without_a_loss_scale(tmp_path):
    def loss(p, x, y):
        with jax.named_scope("first"):
            h = jnp.tanh(x @ p["w1"])
        with jax.named_scope("second"):
            h = jnp.tanh(h @ p["w2"])
        with jax.named_scope("head"):
            return jnp.mean((h @ p["w3"] - y) ** 2) * 1e-3

    own = write_policy(tmp_path, "rules:\n  - {op: dot_general, operand: any, store: f16}")
    first = {"w1": numbers(16, 64, by=0.3), "w2": numbers(64, 64, by=0.1), "w3": numbers(64, 32, by=0.01)}
    training = Training(tmp_path, sgd(loss, 100.0), first, [(numbers(64, 16), numbers(64, 32, by=0.01)) for _ in range(12)], own)
    first_line(training, rf"bad: v\d+ \(dot_general.rhs in head, {HERE}\): \S+ % of its elements become 0 by rounding to f16, and \S+ % become subnormal.* or scale the loss")


def test_batch_norm_with_an_epsilon_below_f16(tmp_path):
    def loss(p, x, y):
        with jax.named_scope("conv"):
            h = jax.lax.conv_general_dilated(x, p["k"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        with jax.named_scope("norm"):
            variance = ((h - h.mean((0, 1, 2))) ** 2).mean((0, 1, 2))
            h = (h - h.mean((0, 1, 2))) / jnp.sqrt(variance + np.float16(1e-8)) * p["g"]
        with jax.named_scope("head"):
            return jnp.mean((jax.nn.relu(h).mean((1, 2)) @ p["w"] - y) ** 2)

    first = {"k": numbers(3, 3, 2, 8, by=0.3).astype("f2"), "g": np.ones(8, "f2"), "w": numbers(8, 4, by=0.5).astype("f2")}
    batches = [(numbers(4, 6, 6, 2, by=0 if number == 9 else 1).astype("f2"), numbers(4, 4).astype("f2")) for number in range(12)]
    training = Training(tmp_path, sgd(loss, np.float16(0.01)), first, batches)
    first_line(training, rf"bad: v\d+ \(stored in norm, {HERE}\) has an infinity or a NaN in step 9. The tensors before it are finite, so it comes from div in "
                         rf"norm \({HERE}\), whose divisor can be 0")  # fmt: skip


def test_updates_below_the_spacing_of_bf16(tmp_path):
    def loss(p, x, y):
        def cell(h, x):
            h = jnp.tanh(h @ p["wh"] + x @ p["wx"])
            return h, h

        with jax.named_scope("rnn"):
            h, _ = jax.lax.scan(cell, jnp.zeros((8, 16), x.dtype), x)
        with jax.named_scope("head"):
            return jnp.mean((h @ p["wo"] - y) ** 2)

    first = {name: numbers(*shape, by=0.2).astype(ml_dtypes.bfloat16) for name, shape in {"wh": (16, 16), "wx": (4, 16), "wo": (16, 4)}.items()}
    batches = [(numbers(6, 8, 4).astype(ml_dtypes.bfloat16), numbers(8, 4).astype(ml_dtypes.bfloat16)) for _ in range(12)]
    training = Training(tmp_path, sgd(loss, ml_dtypes.bfloat16(1e-4)), first, batches)
    first_line(training, r"bad: params.w\w \(argument, .*\): its updates are at most \S+ in all lines, which is less than half the spacing of bf16 \(\S+\)")
    states = training.library.check(training.last, *batches[0]).states
    assert sum(row.unmoved for row in states) > 0.9 * sum(row.elements for row in states)


def mse(p, x, y):
    with jax.named_scope("hidden"):
        h = jnp.tanh(x @ p["w1"])
    with jax.named_scope("head"):
        return jnp.mean((h @ p["w2"] - y) ** 2)


def mse_values(dtype="f4", by=1):
    return {"w1": numbers(16, 32, by=0.3 * by).astype(dtype), "w2": numbers(32, 8, by=0.3).astype(dtype)}


def mse_batches(count, dtype="f4"):
    return [(numbers(16, 16).astype(dtype), numbers(16, 8).astype(dtype)) for _ in range(count)]


def test_residual_stream_that_explodes_in_depth(tmp_path):
    def loss(p, x, y):
        for i in range(8):
            with jax.named_scope(f"layer{i}"):
                x = x + 4 * jax.nn.relu(x @ p[f"w{i}"])
        with jax.named_scope("head"):
            return jnp.mean((x @ p["wo"] - y) ** 2)

    own = write_policy(tmp_path, "rules:\n  - {op: dot_general, operand: any, store: f16}")
    first = {f"w{i}": numbers(16, 16, by=0.6) for i in range(8)} | {"wo": numbers(16, 8, by=0.3)}
    training = Training(tmp_path, sgd(loss, 1e-16), first, mse_batches(4), own)
    first_line(training, rf"bad: v\d+ \(dot_general.lhs in layer(\d), {HERE}\): up to \S+ % of its elements saturate, from step 0 on.* holds without a scale. Its "
                         rf"operator is add in layer\d \({HERE}\)")  # fmt: skip


def test_moments_of_adam_below_f16(tmp_path):
    f16 = np.float16

    def step(state, x, y):
        value, gradient = jax.value_and_grad(mse)(state["p"], x, y)
        with jax.named_scope("adam"):
            m = jax.tree.map(lambda m, g: f16(0.9) * m + f16(0.1) * g, state["m"], gradient)
            v = jax.tree.map(lambda v, g: f16(0.999) * v + f16(0.001) * g * g, state["v"], gradient)
            p = jax.tree.map(lambda p, m, v: p - f16(1e-3) * m / (jnp.sqrt(v) + f16(1e-8)), state["p"], m, v)
        return {"p": p, "m": m, "v": v}, value

    p = jax.tree.map(lambda w: w * f16(0.3), mse_values("f2"))
    first = {"p": p, "m": jax.tree.map(np.zeros_like, p), "v": jax.tree.map(np.zeros_like, p)}
    training = Training(tmp_path, step, first, mse_batches(4, "f2"))
    first_line(training, rf"bad: v\d+ \(in adam, {HERE}\) has an infinity or a NaN in step 0. The tensors before it are finite, so it comes from div in adam "
                         rf"\({HERE}\), whose divisor can be 0")  # fmt: skip


def test_loss_scale_beyond_f16(tmp_path):
    def step(state, x, y):
        value, gradient = jax.value_and_grad(lambda p: mse(p, x, y) * state["scale"].astype(jnp.float16))(state["p"])
        gradient = jax.tree.map(lambda g: g.astype(jnp.float32) / state["scale"], gradient)
        is_good = jnp.all(jnp.stack([jnp.all(jnp.isfinite(g)) for g in jax.tree.leaves(gradient)]))
        p = jax.tree.map(lambda p, g: jnp.where(is_good, p - (0.05 * g).astype(p.dtype), p), state["p"], gradient)
        return {"p": p, "scale": jnp.where(is_good, state["scale"] * 4, state["scale"] / 2)}, value.astype(jnp.float32) / state["scale"]

    training = Training(tmp_path, step, {"p": mse_values("f2"), "scale": np.float32(1024)}, mse_batches(8, "f2"))
    first_line(training, rf"bad: v\d+ \(stored in head, {HERE}\) has an infinity or a NaN in step 3. The tensors before it are finite, so it comes from "
                         rf"convert_element_type \({HERE}\), whose result can reach 6.554e\+04, and f16 ends at 65504")  # fmt: skip


def test_one_corrupt_sample(tmp_path):
    batches = mse_batches(20)
    batches[17][0][5] = np.nan
    training = Training(tmp_path, sgd(mse, 0.05), mse_values(), batches, "f16_master")
    first_line(training, r"bad: batch.0 \(dot_general.lhs in hidden, .*\) has an infinity or a NaN in step 17. It is an argument, so the program does not make it")


def test_weights_that_saturate_tanh(tmp_path):
    training = Training(tmp_path, sgd(mse, 0.05), mse_values(by=100), mse_batches(8), "f8_delayed")
    first_line(training, rf"warn: v\d+ \(dot_general.lhs in head, {HERE}\) has the root mean square \S+, and its operator tanh in hidden \({HERE}\) ends at 1")


def test_long_sum_in_f16(tmp_path):
    def loss(p, x, y):
        with jax.named_scope("features"):
            h = jax.nn.relu(x @ p["w1"])
        with jax.named_scope("pool"):
            total = jax.lax.reduce(h * h, np.float16(0), jax.lax.add, (0, 1))
        with jax.named_scope("head"):
            return jnp.mean((total * np.float16(1e-4) * p["w2"] - y) ** 2)

    first = {"w1": numbers(8, 64, by=0.6).astype("f2"), "w2": np.float16(1)}
    training = Training(tmp_path, sgd(loss, np.float16(1e-3)), first, [(numbers(1100, 8).astype("f2"), np.float16(1)) for _ in range(3)])
    first_line(training, rf"bad: v\d+ \(stored in head, {HERE}\) has an infinity or a NaN in step 0. The tensors before it are finite, so it comes from reduce_sum in "
                         rf"pool \({HERE}\), whose largest magnitude is \S+, and f16 ends at 65504")  # fmt: skip


def test_stop_gradient_after_a_layer(tmp_path):
    def loss(p, x, y):
        with jax.named_scope("conv"):
            h = jax.nn.relu(jax.lax.conv_general_dilated(x, p["k"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
        with jax.named_scope("norm"):
            h = jax.lax.stop_gradient(h / (1e-5 + jnp.abs(h).mean()))
        with jax.named_scope("head"):
            return jnp.mean((h.mean((1, 2)) @ p["w"] - y) ** 2)

    first = {"k": numbers(3, 3, 2, 8, by=0.3), "w": numbers(8, 4, by=0.5)}
    training = Training(tmp_path, sgd(loss, 0.05), first, [(numbers(4, 6, 6, 2), numbers(4, 4)) for _ in range(6)], "f8_master")
    first_line(training, r"warn: params.k \(conv_general_dilated.rhs in conv, .*\) never changes, because its update is 0 for all data: no gradient reaches it")


def test_norm_of_an_embedding_that_is_zero(tmp_path):
    def loss(p, ids, y):
        with jax.named_scope("embedding"):
            e = p["table"][ids]
        with jax.named_scope("normalize"):
            e = e / jnp.sqrt(jnp.sum(e * e, -1, keepdims=True))
        with jax.named_scope("head"):
            return jnp.mean((e.mean(1) @ p["w"] - y) ** 2)

    first = {"table": np.concatenate([numbers(31, 16), np.zeros((1, 16), "f4")]), "w": numbers(16, 4)}
    batches = [(numbers.random.integers(0, 31, (8, 5)).astype("i4"), numbers(8, 4)) for _ in range(12)]
    batches[9][0][2, 3] = 31
    training = Training(tmp_path, sgd(loss, 0.1), first, batches, "bf16")
    first_line(training, rf"bad: v\d+ \(.*\) has an infinity or a NaN in step 9. The tensors before it are finite, so it comes from div in normalize \({HERE}\), "
                         "whose divisor can be 0")  # fmt: skip


def test_recurrence_that_explodes(tmp_path):
    def loss(p, x, y):
        with jax.named_scope("rnn"):
            h, _ = jax.lax.scan(lambda h, x: (h @ p["wh"] + x @ p["wx"], None), jnp.zeros((8, 16)), x)
        with jax.named_scope("head"):
            return jnp.mean((h @ p["wo"] - y) ** 2)

    first = {"wh": numbers(16, 16, by=3), "wx": numbers(4, 16), "wo": numbers(16, 4)}
    training = Training(tmp_path, sgd(loss, 0.1), first, [(numbers(50, 8, 4), numbers(8, 4)) for _ in range(3)], "f8_master")
    first_line(training, rf"bad: v\d+ \(\S+ in rnn, \S+\) has an infinity or a NaN in step 0. The tensors before it are finite, so it comes from scan in rnn "
                         rf"\({HERE}\), a loop whose numbers can grow in each of its steps")  # fmt: skip


def test_small_inputs_in_fp8_without_a_scale(tmp_path):
    own = write_policy(tmp_path, "rules:\n  - {op: dot_general, operand: primal, store: f8_e4m3fn}")
    training = Training(tmp_path, sgd(mse, 0.05), mse_values(), [(x * np.float32(3e-4), y) for x, y in mse_batches(8)], own)
    first_line(training, r"bad: batch.0 \(dot_general.lhs in hidden, .*\): 99.\d+ % of its elements become 0 by rounding to f8_e4m3fn")


def test_average_of_weights_in_f16(tmp_path):
    def step(state, x, y):
        value, gradient = jax.value_and_grad(mse)(state["p"], x, y)
        p = jax.tree.map(lambda w, g: w - 0.05 * g, state["p"], gradient)
        average = jax.tree.map(lambda a, w: np.float16(0.9999) * a + np.float16(0.0001) * w.astype(np.float16), state["average"], p)
        return {"p": p, "average": average}, value

    p = mse_values()
    training = Training(tmp_path, step, {"p": p, "average": jax.tree.map(lambda w: (w * 0.5 + 1).astype("f2"), p)}, mse_batches(8))
    first_line(training, r"bad: state.average.w1 \(argument, .*\): its updates are at most \S+ in all lines, which is less than half the spacing of f16")


def test_clipping_of_a_gradient_that_is_zero(tmp_path):
    def step(p, x, y, weight):
        value, gradient = jax.value_and_grad(lambda p: mse(p, x, y) * weight)(p)
        with jax.named_scope("clip"):
            norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(gradient)))
            gradient = jax.tree.map(lambda g: g * (jnp.minimum(norm, 1.0) / norm), gradient)
        return jax.tree.map(lambda w, g: w - 0.05 * g, p, gradient), value

    batches = [(*batch, np.float32(0 if number == 8 else 1)) for number, batch in enumerate(mse_batches(12))]
    training = Training(tmp_path, step, mse_values(), batches, "f16_master")
    first_line(training, rf"bad: v\d+ \(.*\) has an infinity or a NaN in step 8. The tensors before it are finite, so it comes from div in clip \({HERE}\), whose divisor")


def test_moments_that_are_reset(tmp_path):
    def step(state, x, y):
        value, gradient = jax.value_and_grad(mse)(state["p"], x, y)
        v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, state["v"], gradient)
        return {"p": jax.tree.map(lambda p, g, v: p - 1e-3 * g / (jnp.sqrt(v) + 1e-12), state["p"], gradient, v), "v": v}, value

    p = mse_values()
    small = jax.tree.map(lambda w: np.full_like(w, 1e-8), p)
    training = Training(tmp_path, step, {"p": p, "v": jax.tree.map(np.copy, small)}, mse_batches(24), "f8_master",
                        before=lambda number, state: state | {"v": jax.tree.map(np.copy, small)} if number == 20 else state)  # fmt: skip
    first_line(training, r"bad: state.v.w\d \(argument, .*\): its root mean square changes .* from step 19 to step 20, .* the state was changed between the steps")


def test_healthy_trainings(tmp_path):
    """A first state and a last gradient of a recurrence are 0, which is no fault."""
    def recurrence(p, x, y):
        def cell(h, x):
            h = jnp.tanh(h @ p["wh"] + x @ p["wx"])
            return h, h

        h, _ = jax.lax.scan(cell, jnp.zeros((8, 16)), x)
        return jnp.mean((h[-1] @ p["wo"] - y) ** 2)

    first = {"wh": numbers(16, 16, by=0.2), "wx": numbers(4, 16, by=0.3), "wo": numbers(16, 4, by=0.3)}
    cases = {"recurrence": (recurrence, first, [(numbers(6, 8, 4), numbers(8, 4)) for _ in range(40)], "f32")}
    cases |= {policy: (mse, mse_values(), mse_batches(40), policy) for policy in ("f8_master", "f8_delayed", "f16_scaled")}
    for name, (loss, values, batches, policy) in cases.items():
        (tmp_path / name).mkdir()
        lines = Training(tmp_path / name, sgd(loss, 0.05), values, batches, policy).report()
        assert lines[0].startswith("good: Nothing unusual was found"), (name, lines)


def test_token_out_of_range(tmp_path):
    """jax.numpy.take gives NaN for an index out of range."""
    def loss(p, ids, y):
        with jax.named_scope("embedding"):
            e = jnp.take(p["table"], ids, axis=0)
        with jax.named_scope("head"):
            return jnp.mean((e.mean(1) @ p["w"] - y) ** 2)

    batches = [(numbers.random.integers(0, 32, (8, 5)).astype("i4"), numbers(8, 4)) for _ in range(8)]
    batches[5][0][2, 3] = 40
    training = Training(tmp_path, sgd(loss, 0.1), {"table": numbers(32, 16), "w": numbers(16, 4)}, batches, "bf16")
    first_line(training, rf"bad: v\d+ \(.*\) has an infinity or a NaN in step 5. The tensors before it are finite, so it comes from gather in embedding \({HERE}\), "
                         "whose indices can be out of range")  # fmt: skip
