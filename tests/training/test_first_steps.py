"""The first steps of a training under f8_delayed, with the scales of its first batch."""
import pytest

import first_steps


@pytest.mark.parametrize("name", ["convnet", "recurrent"])
def test_first_losses_follow_f32(name):
    assert first_steps.measure(name)["init(batch)"] < 0.025
