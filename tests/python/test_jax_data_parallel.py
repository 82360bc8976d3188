"""examples/data_parallel/train.py: several processes and one train alike, and an error ends all of them."""
import os
import pathlib
import re
import subprocess
import sys

import jax
import pytest
from conftest import why_no_gloo

SCRIPT = pathlib.Path(__file__).parents[2] / "examples/data_parallel/train.py"

pytestmark = [pytest.mark.skipif(not hasattr(jax, "shard_map"), reason="the example needs jax.shard_map"),
              pytest.mark.skipif(why_no_gloo() is not None, reason=why_no_gloo() or "")]  # fmt: skip


def run(*options):
    return subprocess.run([sys.executable, SCRIPT, *options], capture_output=True, text=True, timeout=280, env=os.environ | {"XLA_FLAGS": ""})


def losses(text):
    return [float(loss) for loss in re.findall(r"^epoch \d+: loss (\S+)$", text, re.M)]


@pytest.mark.parametrize("policy, tolerance", [("f32", 2e-6), ("f8_master", 5e-3), ("f8_delayed", 1e-4)])
def test_processes_train_as_one(policy, tolerance):
    """The tolerance is of the loss. In f8_master, each process takes scales from its own part of the batch; in f8_delayed, all have the same."""
    alone, both = (run("--processes", str(count), "--epochs", "2", "--policy", policy) for count in (1, 2))
    assert alone.returncode == both.returncode == 0, alone.stderr + both.stderr
    assert losses(both.stdout) == pytest.approx(losses(alone.stdout), rel=tolerance) and len(losses(both.stdout)) == 2
    hashes = re.findall(r"^process (\d): .* parameters (\w{16})$", both.stdout, re.M)
    assert sorted(rank for rank, _ in hashes) == ["0", "1"] and len({digest for _, digest in hashes}) == 1


def test_errors():
    refused = run("--processes", "7")
    assert refused.returncode == 2 and "--batch: must divide 1500 and be a multiple of --processes, got 60 and 7" in refused.stderr
    ended = run("--policy", "f9")
    assert ended.returncode == 1 and "f9" in ended.stderr
    assert re.search(r"^process \d failed with exit code 1, so the others were ended$", ended.stderr, re.M)
