"""examples/char_lm/train.py: its KV cache, a killed run, its messages."""
import importlib.util
import pathlib
import subprocess
import sys
import time

import jax
import numpy as np
import pytest

import scalide
import scalide.jax

SCRIPT = pathlib.Path(__file__).parents[2] / "examples/char_lm/train.py"


@pytest.fixture(scope="module")
def char_lm():
    spec = importlib.util.spec_from_file_location("char_lm_train", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tokens_with_a_cache_have_the_logits_of_the_whole_text(char_lm):
    params = char_lm.initial_params(2, 0)
    size = (1, char_lm.LENGTH, char_lm.HEADS, char_lm.WIDTH // char_lm.HEADS)
    caches = [tuple(np.zeros(size, np.float32) for _ in range(2)) for _ in params["layers"]]
    library = scalide.build(scalide.jax.trace(char_lm.next_logits, params, caches, np.int32(0), np.int32(0), donate_argnums=1))
    ids = np.random.default_rng(0).integers(0, 256, char_lm.LENGTH + 1).astype(np.int32)
    losses = []
    for position in range(char_lm.LENGTH):
        logits, caches = library.donate(params, caches, ids[position], np.int32(position))
        losses.append(-jax.nn.log_softmax(logits)[ids[position + 1]])
    np.testing.assert_allclose(np.mean(losses), jax.jit(char_lm.mean_loss)(params, ids[None]), rtol=1e-5)


def run(folder, *options):
    return subprocess.run([sys.executable, SCRIPT, "--folder", folder, *options], check=True, capture_output=True, text=True).stdout


def test_a_killed_run_goes_on_with_the_same_bits(tmp_path):
    options = ("--policy", "f8_scaled", "--layers", "1", "--steps", "30", "--every", "10")
    printed = run(tmp_path / "whole", *options, "--generate", "4")
    losses = [float(line.split()[-1]) for line in printed.splitlines() if line.startswith("held-out loss")]
    assert len(losses) == 3 and losses[-1] < losses[0] - 0.2 and "ms for each token, jax.jit" in printed, printed
    with subprocess.Popen([sys.executable, SCRIPT, "--folder", tmp_path / "killed", *options], stdout=subprocess.DEVNULL) as child:
        while child.poll() is None and not (tmp_path / "killed/checkpoint_10.safetensors").exists():
            time.sleep(0.01)
        child.kill()
    assert "resumed after step" in run(tmp_path / "killed", *options)
    whole, killed = ((tmp_path / name / "checkpoint_30.safetensors").read_bytes() for name in ("whole", "killed"))
    assert whole == killed


def test_a_folder_without_text_is_an_error(tmp_path):
    failed = subprocess.run([sys.executable, SCRIPT, "--text", tmp_path], capture_output=True, text=True)
    assert failed.returncode == 1 and f"{tmp_path}: must have text files with at least" in failed.stderr
