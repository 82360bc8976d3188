"""Optimizers and loss scaling of the C++ DSL (optimizer_step.cpp), compiled: the parameters of optax after each step, Shampoo by its formula
in f64, and a network with a scaler under several policies."""
import os
import subprocess

import jax
import numpy as np
import optax
import pytest

import scalide
from cells import AT_ONCE, DELAYED
from harness import CACHE, stored

RATE = 0.01
GENERATOR = os.environ["SCALIDE_TRAINING_GENERATOR"]
SHAPES = {"w": (6, 4), "b": (4,), "k": (2, 3, 5)}


#: Of every check; with --part dsl, the other policies too.
FAST = ("f32", "f16_scaled", "f8_master")


def pytest_generate_tests(metafunc):
    if "policy" in metafunc.fixturenames:
        is_fast = metafunc.config.getoption("--part") == "fast"
        metafunc.parametrize("policy", FAST if is_fast else (*AT_ONCE, *DELAYED))
        metafunc.parametrize("batch", [1, 65] if is_fast else [1, 65, 127])


def is_matrix(params):
    return {name: value.ndim > 1 for name, value in params.items()}


def of_optax(name):
    contrib = optax.contrib
    schedule = optax.warmup_cosine_decay_schedule(0, RATE, 4, 12)
    return {
        "adam_bf16": lambda: optax.adam(RATE, mu_dtype="bfloat16"),
        "adamw_mask": lambda: optax.adamw(RATE, weight_decay=0.1, mask=is_matrix),
        "lamb": lambda: optax.lamb(RATE, weight_decay=0.1),
        "rmsprop_momentum": lambda: optax.rmsprop(RATE, momentum=0.9, nesterov=True),
        "rmsprop_centered": lambda: optax.rmsprop(RATE, initial_scale=1.0, eps_in_sqrt=False, centered=True, bias_correction=True),
        "adafactor": lambda: optax.adafactor(RATE, min_dim_size_to_factor=3, momentum=0.9, weight_decay_rate=0.01, weight_decay_mask=is_matrix),
        "ema": lambda: optax.chain(optax.clip(0.5), optax.ema(0.9), optax.scale(-RATE)),
        "block_rms": lambda: optax.chain(optax.clip_by_block_rms(0.5), optax.scale_by_param_block_rms(), optax.scale_by_learning_rate(RATE)),
        "muon": lambda: contrib.muon(RATE, weight_decay=0.1),
        "muon_adaptive": lambda: contrib.muon(RATE, nesterov=False, adaptive=True, consistent_rms=0.2),
        "multi_steps": lambda: optax.MultiSteps(optax.adam(RATE), 3),
        "clipped_schedule": lambda: optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule, nesterov=True)),
    }[name]()


def build(program, folder, policy="f32", **parameters):
    options = [option for name, value in parameters.items() for option in ("-p", f"{name}={value}")]
    subprocess.run([GENERATOR, "build", program, "-n", policy, "--shared", "--cache", CACHE, "-o", folder, *options],
                   check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    return scalide.Library(folder / f"lib{program}.so")


def first_state(program, folder, **parameters):
    """The first values of the states, in f32."""
    state = build(program, folder, **parameters)(key=np.array([0, 42], np.uint32))
    names = build(program, folder, **parameters).results
    return dict(zip(names, state if isinstance(state, (list, tuple)) else [state], strict=True))


def problem(steps=10):
    """Parameters, and gradients of all steps: of several magnitudes, one of zeros."""
    random = np.random.default_rng(0)
    draw = lambda shape: random.standard_normal(shape).astype(np.float32)  # noqa: E731
    gradients = [{name: draw(shape) * np.float32(10.0 ** random.uniform(-2, 1)) for name, shape in SHAPES.items()} for _ in range(steps)]
    gradients[4] = jax.tree.map(np.zeros_like, gradients[4])
    return {name: draw(shape) for name, shape in SHAPES.items()}, gradients


def trajectory(optimizer, folder, params, gradients):
    """The parameters after each step of the compiled program."""
    library = build("optimizer_update", folder, optimizer=optimizer)
    has_state = len(library.results) > len(SHAPES)
    state = (first_state("optimizer_update_state", folder, optimizer=optimizer) if has_state else {}) | params
    for gradient in gradients:
        inputs = {f"gradient.{name}": value for name, value in gradient.items()}
        state = dict(zip(library.results, library(**inputs, **state), strict=True))
        yield {name: np.asarray(state[name]) for name in SHAPES}


def compare(got, expected, before, step, relative):
    for name in SHAPES:
        largest = np.max(np.abs(expected[name] - before[name]))
        tolerance = relative * largest + 2e-7 * np.max(np.abs(expected[name]))
        np.testing.assert_allclose(got[name], expected[name], rtol=0, atol=tolerance, err_msg=f"{name} in step {step}")


@pytest.mark.parametrize("name", ["adam_bf16", "adamw_mask", "lamb", "rmsprop_momentum", "rmsprop_centered", "adafactor", "ema", "block_rms",
                                  "muon", "muon_adaptive", "multi_steps", "clipped_schedule"])  # fmt: skip
def test_parameters_are_those_of_optax(name, tmp_path):
    params, gradients = problem()
    transformation = of_optax(name)
    state = transformation.init(params)
    expected, start = params, params
    for step, got in enumerate(trajectory(name, tmp_path, params, gradients)):
        updates, state = jax.jit(transformation.update)(gradients[step], state, expected)
        expected = jax.tree.map(np.asarray, optax.apply_updates(expected, updates))
        # optax multiplies a bf16 moment in bf16.
        compare(got, expected, start, step, 2.0**-6 if name == "adam_bf16" else 2e-4)


class ShampooInF64:
    """Distributed Shampoo with exact inverse roots."""

    def __init__(self, block, beta2, decay, start, nesterov, is_rmsprop):
        self.block, self.beta2, self.decay, self.start, self.nesterov, self.is_rmsprop = block, beta2, decay, start, nesterov, is_rmsprop
        self.state = {}

    def keep(self, key, initial, function):
        self.state[key] = function(self.state.get(key, initial))
        return self.state[key]

    def root(self, matrix, p):
        values, vectors = np.linalg.eigh(matrix + 1e-6 * np.linalg.norm(matrix) * np.eye(len(matrix)))
        return vectors @ np.diag(values ** (-1 / p)) @ vectors.T

    def preconditioned(self, name, gradient):
        result = np.empty_like(gradient)
        counts = [-(-extent // self.block) for extent in gradient.shape]
        for place in np.ndindex(*counts):
            part = tuple(slice(i * self.block, (i + 1) * self.block) for i in place)
            block = gradient[part]
            product = block
            for axis in range(block.ndim):
                others = [other for other in range(block.ndim) if other != axis]
                own = np.tensordot(block, block, (others, others))
                weight = 1 if self.beta2 == 1 else 1 - self.beta2
                first = 1e-6 * np.eye(len(own))
                statistic = self.keep((name, place, axis), first, lambda old, own=own, weight=weight: self.beta2 * old + weight * own)
                product = np.tensordot(product, self.root(statistic, 2 * block.ndim), ((0,), (0,)))
            result[part] = product
        return result

    def step(self, name, parameter, gradient, count):
        gradient = gradient.astype(np.float64)
        graft = gradient
        if self.is_rmsprop:
            square = self.keep((name, "graft"), 0, lambda old: self.beta2 * old + (1 - self.beta2) * gradient**2)
            graft = gradient / (np.sqrt(square) + 1e-10)
        update = self.preconditioned(name, gradient)
        update = update * np.linalg.norm(graft) / (np.linalg.norm(update) + 1e-25)
        update, graft = update + self.decay * parameter, graft + self.decay * parameter
        momentum = self.keep((name, "momentum"), 0, lambda old: 0.9 * old + update)
        graft_momentum = self.keep((name, "graft momentum"), 0, lambda old: 0.9 * old + graft)
        update, momentum = (update, momentum) if count >= self.start else (graft, graft_momentum)
        return parameter - RATE * (update + 0.9 * momentum if self.nesterov else momentum)


#: A column of a quantized momentum has 255 values.
@pytest.mark.parametrize("name, bound", [("shampoo", 5e-3), ("shampoo_quantized", 5e-2), ("shampoo_sgd", 5e-3)])
def test_shampoo_has_exact_roots(name, bound, tmp_path):
    reference = ShampooInF64(1024, 1, 0, 0, False, False) if name == "shampoo_sgd" else ShampooInF64(4, 0.999, 0.01, 2, True, True)
    params, gradients = problem(6)
    expected = {key: value.astype(np.float64) for key, value in params.items()}
    for step, got in enumerate(trajectory(name, tmp_path, params, gradients)):
        for key in SHAPES:
            after = reference.step(key, expected[key], gradients[step][key], step)
            allowed = bound * np.max(np.abs(after - params[key])) + 1e-6
            np.testing.assert_allclose(got[key], after, rtol=0, atol=allowed, err_msg=f"{key} in step {step}")
            expected[key] = after


def arrays_of(state):
    """Each array and scale of a state."""
    for value in state.values():
        yield from (np.asarray(value.data), np.asarray(value.scale)) if isinstance(value, scalide.ScaledArray) else (np.asarray(value),)


def is_number(array):
    return np.isfinite(array.astype(np.float32)).all()


def test_a_scaler_keeps_infinity_out(policy, batch, tmp_path):
    library = build("scaled_step", tmp_path, policy, batch=batch)
    arguments = {argument.name: argument for argument in library.arguments}
    first = first_state("scaled_step_state", tmp_path, batch=batch)
    state = {name: stored(value, arguments[name]) for name, value in first.items()} | library.init()
    random = np.random.default_rng(1)
    x = random.standard_normal((batch, 16)).astype(np.float32)
    y = x[:, :4] * x[:, 4:8]
    infinite = x.copy()
    infinite[0, 3] = np.inf

    def step(x, y, state):
        given = {"x": stored(x, arguments["x"]), "y": stored(y, arguments["y"])}
        results = dict(zip(library.results, library(**given, **state), strict=True))
        return float(results.pop("loss")), bool(results.pop("finite")), results

    losses = []
    for i in range(40):
        if i in (10, 11):
            before = {name: [array.copy() for array in arrays_of({name: value})] for name, value in state.items()}
            _, finite, state = step(infinite, y, state)
            assert not finite
            for name in first:
                assert name.startswith("loss_scale.") or all(map(np.array_equal, before[name], arrays_of({name: state[name]}))), name
        elif i == 20:
            _, finite, state = step(np.zeros_like(x), np.zeros_like(y), state)
            assert finite
        else:
            loss, finite, state = step(x, y, state)
            assert finite
            losses.append(loss)
        assert all(is_number(array) for array in arrays_of(state)), f"step {i}"
    assert losses[-1] < 0.5 * losses[0], losses
