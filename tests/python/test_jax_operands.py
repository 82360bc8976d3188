"""An operand of a matmul is rounded in one way, whatever else reads the array, and whether it is stored or computed again."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from conftest import slow_unless

import scalide
import scalide.jax

POLICIES = ["f32", "bf16", "f16_master", "f16_scaled", "f8_master", "f8_scaled", "f8_row", "f8_block", "f8_delayed", "mxfp8"]

random = np.random.default_rng(7)
X, W, V = (np.float32(random.standard_normal(shape) * scale) for shape, scale in (((33, 64), 1), ((64, 96), 0.12), ((96, 32), 0.1)))

READERS = {
    "product": lambda h: h @ V[:, :8],
    "sum": lambda h: h * 2 + 1,
    "result": lambda h: h,
    "reduction": lambda h: jnp.sum(h, 1),
    "order": lambda h: jnp.argmax(h, 1),
    "scan": lambda h: jnp.cumsum(h, 0),
}


def run(fn, policy, *args):
    """The results of one run, as NumPy arrays. Scales of arguments are 1."""
    library = scalide.build(scalide.jax.trace(fn, *args), numerics=policy)
    state = library.init()
    results = library(*[library.convert(array, i) for i, array in enumerate(args)], *([state] if state else []))
    results = results[0] if state else results
    is_scaled = lambda leaf: isinstance(leaf, scalide.ScaledArray)
    return [np.float32(leaf.data) * np.float32(leaf.scale) if is_scaled(leaf) else np.asarray(leaf)
            for leaf in jax.tree_util.tree_leaves(results, is_leaf=is_scaled)]  # fmt: skip


#: Each policy meets two of the readers, and all of them with --slow.
READ = slow_unless(lambda policy, readers: len(readers) == 2, [(policy, readers) for i, policy in enumerate(POLICIES)
                   for readers in (tuple(READERS)[2 * i % 6:][:2], tuple(READERS))])  # fmt: skip


@pytest.mark.parametrize("policy, readers", READ)
def test_another_reader_changes_no_operand(policy, readers):
    (alone,) = run(lambda x, w, v: jnp.tanh(x @ w) @ v, policy, X, W, V)
    for name in readers:
        read = READERS[name]

        def both(x, w, v):
            hidden = jnp.tanh(x @ w)
            return hidden @ v, read(hidden)

        np.testing.assert_array_equal(run(both, policy, X, W, V)[0], alone, err_msg=name)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_checkpoint_changes_no_gradient(policy):
    """What jax.checkpoint computes again is an activation, as in the forward pass. It is not rounded as a gradient."""
    def layer(x, w):
        return jnp.tanh(x @ w)

    def loss(layer, x, w, v):
        return jnp.mean(jnp.square(layer(layer(x, w), v)))

    kept, again = (run(jax.value_and_grad(lambda x, w, v, form=form: loss(form, x, w, v), (1, 2)), policy, X, W, V)
                   for form in (layer, jax.checkpoint(layer)))  # fmt: skip
    for a, b in zip(kept, again, strict=True):
        np.testing.assert_array_equal(a, b)


def test_intermediates_of_a_kept_matmul_stay_exact(tmp_path):
    """`keep` takes a matmul out of the policy, and with it out of `intermediates`."""
    policy = tmp_path / "kept.yaml"
    policy.write_text("policy: kept\ndoc: Two matmuls, of which the second stays f32.\nextends: f8_master\nrules:\n  - {keep: last}\n")

    def both(x, w, v):
        hidden = jnp.tanh(x @ w)
        with jax.named_scope("last"):
            return hidden @ v

    hidden = run(lambda x, w: jnp.tanh(x @ w), "f8_master", X, W)[0]
    np.testing.assert_allclose(run(both, str(policy), X, W, V)[0], np.float64(hidden) @ V, atol=2e-6)  # f32 sums of 96 products
