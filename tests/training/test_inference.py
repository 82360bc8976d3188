"""Networks on weights of any deviation, in all policies. One library a policy and depth: deviations are those of its arguments."""
import jax
import numpy as np
import pytest

import scalide
import scalide.jax as jsa
from cells import AT_ONCE, UNSCALED
from harness import CACHE, as_stored, write

WIDTH, ROWS = 64, 32
DEVIATIONS = tuple(10.0**power for power in range(-8, 9, 2))

#: The relative error of two layers. Each layer adds an error of its own to that of its operand, so d layers may have sqrt(d / 2) times as much.
TOLERANCES = {"f32": 1e-5, "f8": 0.06, "mxfp8": 0.06, "f16": 0.01, "bf16": 0.01, "state8": 1e-5}


def network(layers, x):
    for layer in layers[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ layers[-1]["w"] + layers[-1]["b"]


def layers_of(depth: int, deviation: float):
    """Two layers are both of the deviation; of more every other one is of its inverse, so that f32 can hold the values. Biases fit the values."""
    draw, layers, size = np.random.default_rng(depth), [], 1.0
    for i in range(depth):
        weight = deviation if depth == 2 or i % 2 == 0 else 1 / deviation
        size *= weight * WIDTH**0.5
        layers.append({"w": (draw.normal(size=(WIDTH, WIDTH)) * weight).astype(np.float32), "b": (draw.normal(size=WIDTH) * size * 0.1).astype(np.float32)})
    return layers


def in_f64(layers, x):
    for layer in layers[:-1]:
        x = np.maximum(x.astype(np.float64) @ layer["w"] + layer["b"], 0)
    return x @ layers[-1]["w"].astype(np.float64) + layers[-1]["b"]


@pytest.mark.parametrize("policy", [policy for policy in AT_ONCE if policy not in UNSCALED])
@pytest.mark.parametrize("depth", (2, 8))
def test_any_deviation(depth, policy):
    x = np.random.default_rng(0).normal(size=(ROWS, WIDTH)).astype(np.float32)
    library = scalide.build(jsa.trace(network, layers_of(depth, 1), x), numerics=policy, cache=CACHE)
    errors = {}
    for deviation in DEVIATIONS:
        layers = layers_of(depth, deviation)
        given, right = as_stored(library, layers, x), in_f64(layers, x)
        got = library(*given)
        got = got.to_array(np.float32) if isinstance(got, scalide.ScaledArray) else np.asarray(got, np.float32)
        error = float(np.linalg.norm(got - right) / np.linalg.norm(right))
        errors[deviation] = error if np.isfinite(error) else float("inf")
    allowed = TOLERANCES[policy.removeprefix("amp_").split("_")[0]] * (depth / 2) ** 0.5
    write({"inference": depth, "policy": policy, "worst": max(errors.values()), "allowed": allowed})
    wrong = {f"{deviation:g}": f"{error:.3g}" for deviation, error in errors.items() if not error <= allowed}
    assert not wrong, f"{depth} layers in {policy}: relative error by deviation {wrong}, not {allowed:.2g}"


def test_rows_do_not_change_each_other():
    """A request with a large or a broken row does not change the bits of other requests in its batch."""
    layers = layers_of(4, 1)
    x = np.random.default_rng(0).normal(size=(ROWS, WIDTH)).astype(np.float32)
    library = scalide.build(jsa.trace(network, layers, x), numerics="f8_weights", cache=CACHE)
    before = np.asarray(library(*as_stored(library, layers, x)), np.float32)
    for factor in (1e4, 1e6, 1e-20, np.nan):
        changed = x.copy()
        changed[3] *= factor
        after = np.asarray(library(*as_stored(library, layers, changed)), np.float32)
        np.testing.assert_array_equal(np.delete(after, 3, 0), np.delete(before, 3, 0), err_msg=str(factor))


def test_images_do_not_change_each_other():
    def features(weights, images):
        for weight in weights:
            images = jax.nn.relu(jax.lax.conv_general_dilated(images, weight, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
        return images

    random = np.random.default_rng(0)
    weights = [random.normal(size=shape).astype(np.float32) for shape in ((3, 3, 3, 8), (3, 3, 8, 4))]
    images = random.normal(size=(4, 6, 6, 3)).astype(np.float32)
    library = scalide.build(jsa.trace(features, weights, images), numerics="f8_weights", cache=CACHE)
    assert library.summary.startswith("f8_weights: 2 of 2 convolutions in f8, all scaled, 2 of them with one scale for each row"), library.summary
    before, right = np.asarray(library(*as_stored(library, weights, images))), np.asarray(features(weights, images))
    assert np.linalg.norm(before - right) < 0.1 * np.linalg.norm(right)
    images[1] *= 1e6
    after = np.asarray(library(*as_stored(library, weights, images)))
    np.testing.assert_array_equal(np.delete(after, 1, 0), np.delete(before, 1, 0))
