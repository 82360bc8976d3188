"""The harness sees what it has to see: f32 gives one loss with all factors, and a run that is off is called off."""
import numpy as np
import pytest

import harness
import models
import optimizers
import steps
from cells import FACTORS, Cell


@pytest.mark.parametrize("optimizer", optimizers.OPTIMIZERS)
@pytest.mark.parametrize("model", ("mlp", "lstm"))
def test_factors_change_no_digit_in_jax(model, optimizer):
    """The runs in f32 are the same, so low precision is compared with one that is."""
    import jax

    step, losses = jax.jit(steps.step_of(model, 2, optimizer)), []
    for factors in ((1.0, 1.0), FACTORS[1], FACTORS[-2]):
        params, state, batches = steps.start(model, 2, optimizer, 0.3, factors[0])
        run = []
        for i in range(10):
            params, state, loss = step(params, state, *batches[i % models.BATCHES], harness.named(factors))
            run.append(float(loss) / factors[1])
        losses.append(run)
    assert losses[0] == losses[1] == losses[2]


def test_deviations():
    wanted = np.array([2.0, 1.0, 0.01])
    assert steps.deviations(np.array([2.0, 1.01, 0.02]), wanted) == pytest.approx([0, 0.01, 0.1])  # near 0: of a twentieth of the first
    assert np.isinf(steps.deviations(np.array([2.0, np.nan, np.inf]), wanted)[1:]).all()


class Wrong:
    """In place of a library: any step has the loss 1."""

    arguments = ()

    def init(self):
        return {}

    def __call__(self, params, state, *batch):
        return params, state, np.float32(1)


def test_a_wrong_run_is_named(monkeypatch):
    monkeypatch.setattr(harness, "as_stored", lambda library, *trees: trees)
    monkeypatch.setattr(harness, "build", lambda cell: Wrong())
    monkeypatch.setattr(harness, "RESULTS", None)
    row = harness.run(Cell("mlp", 2, "sgd", "f16_scaled", "donated", factors=((1.0, 4.0),)), 3)
    assert "step 0: loss 1, not" in row["wrong"]["f32"] and "step 0: loss 0.25, not 1" in row["wrong"]["weight * 1, loss * 4"]


def test_a_refused_build_is_named(monkeypatch):
    def refused(cell):
        raise harness.scalide.BuildError("no kernel")

    monkeypatch.setattr(harness, "build", refused)
    monkeypatch.setattr(harness, "RESULTS", None)
    row = harness.run(Cell("mlp", 2, "sgd", "f16_scaled", "donated"), 3)
    assert row["refused"] == "no kernel" and row["wrong"] == {"build": "no kernel"}
