"""The step of an MLP that a generator in C++ made (mlp_step.cpp): the losses of JAX in f32."""
import os
import subprocess

import numpy as np

import models
import scalide
import steps
from cells import AT_ONCE, DELAYED, tolerance
from harness import CACHE, shown, stored, wanted, write

DEPTH, COUNT = 4, 30


#: Of every check; with --part dsl, the other policies too.
FAST = ("f32", "f16_scaled", "f8_scaled", "f8_delayed")


def pytest_generate_tests(metafunc):
    metafunc.parametrize("policy", FAST if metafunc.config.getoption("--part") == "fast" else (*AT_ONCE, *DELAYED))


def library_of(policy, folder):
    rate = models.model("mlp", DEPTH).rate
    parameters = [f"depth={DEPTH}", f"width={models.WIDTH}", f"rows={models.BATCH}", f"rate={rate}"]
    options = [option for parameter in parameters for option in ("-p", parameter)]
    subprocess.run([os.environ["SCALIDE_TRAINING_GENERATOR"], "build", "mlp_step", "-n", policy, "--shared", "--cache", CACHE, "-o", folder, *options],
                   check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    return scalide.Library(folder / "libmlp_step.so")


def test_losses_follow_f32(policy, tmp_path):
    library = library_of(policy, tmp_path)
    arguments = {argument.name: argument for argument in library.arguments}
    params, _, batches = steps.start("mlp", DEPTH, "sgd", 0.0)
    state = {f"{key}{i}": stored(layer[key], arguments[f"{key}{i}"]) for i, layer in enumerate(params) for key in ("w", "b")}
    state |= library.init()
    losses = []
    for i in range(COUNT):
        x, y = batches[i % len(batches)]
        state = dict(zip(library.results, library(x=x, y=y, **state)))
        losses.append(float(state.pop("loss")))
    other = wanted("mlp", DEPTH, "sgd", 0.0, COUNT)
    off = steps.deviations(np.asarray(losses), other)
    at = int(np.argmax(off))
    write({"dsl": f"mlp, {DEPTH}", "policy": policy, "deviation": float(off[at]), "refused": "", "wrong": {}})
    assert off[at] <= tolerance(policy), f"mlp-{DEPTH}-sgd-{policy}-dsl: {shown(losses, other, at)} (off by {off[at]:.2g})"
