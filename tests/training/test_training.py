"""The matrix: `--part fast`, or the name of a model for all of its cells."""
from cells import FIXED_STEPS, STEPS, cells, fast_cells
from harness import run

FAST_STEPS = 30


def pytest_generate_tests(metafunc):
    part = metafunc.config.getoption("--part")
    chosen = fast_cells() if part == "fast" else [cell for cell in cells() if cell.model == part]
    metafunc.parametrize("cell", chosen, ids=[cell.name for cell in chosen])


def test_losses_follow_f32(cell, request):
    fast = request.config.getoption("--part") == "fast"
    row = run(cell, FAST_STEPS if fast else FIXED_STEPS if cell.fixed else STEPS)
    assert not row["wrong"], "\n".join(f"{cell.name}: {run}: {words}" for run, words in row["wrong"].items())
