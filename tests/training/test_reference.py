"""The matrix is fair: with operands rounded to the formats of a policy, at the best scales, JAX itself stays within the tolerance in every cell."""
import pytest

import steps
from cells import STEPS, TOLERANCES, cells
from harness import wanted
from reference import FORMATS, rounding_use


def pytest_generate_tests(metafunc):
    part = metafunc.config.getoption("--part")
    known = {(cell.model, cell.depth, cell.optimizer, cell.bias) for cell in cells() if cell.model == part}
    metafunc.parametrize("run", sorted(known), ids=lambda run: "-".join(map(str, run)))


@pytest.mark.parametrize("formats", FORMATS)
def test_rounded_operands_stay_within_the_tolerance(run, formats):
    losses = steps.losses_in_jax(*run, STEPS, rounding_use(formats))
    off = steps.deviations(losses, wanted(*run, STEPS)).max()
    assert off <= TOLERANCES[formats], f"off by {off:.2g}"
