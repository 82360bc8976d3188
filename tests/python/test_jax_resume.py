"""A training that is killed and resumed from its checkpoint has all bits of a training without a break: parameters, moments, random key, and the
state of the policy."""
import hashlib
import os
import signal
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

STEPS, SAVED, KILLED = 20, 10, 13


def train(library_file, folder, killed):
    """Trains to the step STEPS, from the latest checkpoint if there is one, and prints a hash of all bits. The process kills itself after `killed`."""
    import pickle

    import scalide

    with open(library_file, "rb") as file:
        library, params = pickle.load(file)
    x, y = (np.random.default_rng(seed).standard_normal(shape).astype(np.float32) for seed, shape in ((1, (16, 32)), (2, (16, 8))))
    tree = {"params": library.convert(params, 0), "momentum": library.convert(params, 1), "key": np.uint32([3, 4]), "policy": library.init()}
    checkpoints = scalide.Checkpoints(folder)
    first = 0
    if checkpoints.latest() is not None:
        tree, first = checkpoints.restore(like=tree, library=library), checkpoints.latest()
        assert first == SAVED
    for step in range(first + 1, STEPS + 1):
        result = library(tree["params"], tree["momentum"], tree["key"], x, y, *([tree["policy"]] if tree["policy"] else []))
        (params, momentum, key), policy = result if tree["policy"] else (result, {})
        tree = {"params": params, "momentum": momentum, "key": key, "policy": policy}
        if step == SAVED:
            checkpoints.save(step, tree, library=library)
        if step == killed:
            os.kill(os.getpid(), signal.SIGKILL)
    content, _ = scalide.saving.content_of(tree)
    print(hashlib.sha256(b"".join(name.encode() + array.tobytes() for name, array in sorted(content.items()))).hexdigest(), len(content))


@pytest.mark.parametrize("numerics", ["f32", "f16_scaled", "f8_delayed", "f8_scaled"])
def test_resumed_training_has_the_same_bits(tmp_path, numerics):
    import pickle

    import jax
    import jax.numpy as jnp

    import scalide
    from scalide.jax import trace

    def loss(params, key, x, y):
        hidden = jnp.tanh(x @ params["w"] + params["b"])
        kept = jax.random.uniform(key, hidden.shape) < 0.75
        return jnp.mean((jnp.where(kept, hidden, 0) @ params["v"] - y) ** 2)

    def step(params, momentum, key, x, y):
        keys = jax.random.split(key)
        gradients = jax.grad(loss)(params, keys[0], x, y)
        momentum = jax.tree_util.tree_map(lambda m, g: 0.9 * m + g, momentum, gradients)
        return jax.tree_util.tree_map(lambda p, m: p - 0.05 * m, params, momentum), momentum, keys[1]

    random = np.random.default_rng(0)
    params = {"w": random.standard_normal((32, 64)).astype(np.float32) / 6, "b": np.zeros(64, np.float32), "v": random.standard_normal((64, 8)).astype(np.float32) / 8}
    program = trace(step, params, params, np.uint32([3, 4]), np.zeros((16, 32), np.float32), np.zeros((16, 8), np.float32), donate_argnums=(0, 1, 2))
    library = scalide.build(program, numerics=numerics)
    if numerics != "f32":
        assert library.init(), "the policy has state"
    with open(tmp_path / "library", "wb") as file:
        pickle.dump((library, params), file)

    def run(folder, killed=0):
        return subprocess.run([sys.executable, __file__, tmp_path / "library", tmp_path / folder, str(killed)], capture_output=True, text=True)

    whole = run("whole")
    assert whole.returncode == 0, whole.stderr
    killed = run("broken", KILLED)
    assert killed.returncode == -signal.SIGKILL and not killed.stdout, killed.stderr
    resumed = run("broken")
    assert resumed.returncode == 0 and resumed.stdout == whole.stdout, resumed.stderr
    # Without the checkpoint, the bits are others: the arrays take part.
    other = scalide.Checkpoints(tmp_path / "broken")
    assert other.metadata()["scalide.program"] == library.hash
    bf16 = SimpleNamespace(numerics="bf16", hash="")
    with pytest.raises(ValueError, match=f"broken, step 10: the checkpoint is for policy {numerics}, and the library has policy bf16. Convert the file"):
        other.restore(library=bf16)
    tree = other.restore()
    tree["key"] = tree["key"] + np.uint32(1)
    other.save(SAVED, tree, overwrite=True)
    assert run("broken").stdout not in ("", whole.stdout)


if __name__ == "__main__":
    train(sys.argv[1], sys.argv[2], int(sys.argv[3]))
