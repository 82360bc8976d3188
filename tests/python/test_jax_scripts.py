"""examples/scalify: scripts as they are written for jax_scalify, trained on the digits, beside the same script in f32 without scales."""
import importlib
import pathlib
import subprocess
import sys

import numpy as np
import pytest

FOLDER = pathlib.Path(__file__).parents[2] / "examples" / "scalify"
sys.path.insert(0, str(FOLDER))

# Largest relative difference of a loss. f16 has 11 bits and the losses are means over 1500 examples; the products of the f8 script have 4.
# The state of Adam in f16 with one scale for a tensor loses second moments below 2^-24 of the largest.
SCRIPTS = {"digits_f16": 0.002, "digits_f8": 0.04, "digits_flax": 0.1, "digits_cnn": 0.003}


@pytest.mark.parametrize("name", SCRIPTS)
def test_losses_are_those_of_f32(name, partitionable):
    script = importlib.import_module(name)
    plain, plain_accuracy = script.train(scalify=False, epochs=3)
    scaled, scaled_accuracy = script.train(scalify=True, epochs=3)
    assert plain[-1] < 0.85 * plain[0]
    np.testing.assert_allclose(scaled, plain, rtol=SCRIPTS[name])
    assert abs(scaled_accuracy - plain_accuracy) < 0.03


def test_f16_needs_its_scales():
    """Gradients of a loss * 2^-20 are zero in plain f16; in scaled f16 they are as exact as those of the loss."""
    import digits_f16
    import jax

    import scalide.jax as jsa

    images, labels = digits_f16.load("train")
    arguments = digits_f16.init_params(), (images[:100], labels[:100]), np.float32(2.0**-20)

    def gradients(params, batch, factor):
        return jax.grad(lambda p: digits_f16.loss(p, batch) * factor)(params)

    exact = jax.jit(gradients)(*jsa.tree.astype(arguments, np.float32))
    plain = jax.jit(gradients)(*jsa.tree.astype(arguments, np.float16))
    scaled = jax.jit(jsa.scalify(gradients))(*jsa.tree.astype(jsa.as_scaled_array(arguments, np.float32(0.125)), np.float16))
    for (w, _), (w_plain, _), (w_scaled, _) in zip(exact, plain, scaled):
        norm = np.linalg.norm(w)
        assert np.linalg.norm(w_scaled.to_array(np.float32) - w) < 0.02 * norm
        assert np.linalg.norm(np.asarray(w_plain, np.float32) - w) > 0.5 * norm


def test_quickstart_runs():
    subprocess.run([sys.executable, FOLDER / "quickstart.py"], check=True)
