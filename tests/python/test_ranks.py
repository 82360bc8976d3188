"""Programs with groups of ranks: each collective, its gradient and its scales against NumPy, in threads and under MPI, with the same bits on all ranks."""
import shutil
import subprocess
import sys

import numpy as np
import pytest
import scalide
from conftest import TOOL
from scalide.arrays import read_safetensors, write_safetensors

DRAW = np.random.default_rng(3)


def run(folder, text, inputs, *options, launcher=(), ranks=None):
    """Runs a program on the arrays of each rank. Returns the results of each rank."""
    (folder / "p.scl").write_text(text)
    for rank, arrays in enumerate(inputs):
        write_safetensors(folder / f"in{rank}.safetensors", arrays)
    how = ["--mpi"] if launcher else ["--ranks", str(len(inputs))]
    command = [*launcher, TOOL, "run", "p.scl", *how, "-i", "in{rank}.safetensors", "-o", "out{rank}.safetensors", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return [read_safetensors(folder / f"out{rank}.safetensors") for rank in range(len(inputs))]


def draw(*shape):
    return DRAW.normal(size=shape).astype(np.float32)


OPERATORS = """
program operators [data ranks] (x: f32[6, 4], big: f32[6*data, 70], whole: i32[100], half: bf16[9]) -> (
    sum: f32[6, 4], total: f32[6*data, 70], largest: f32[6, 4], most: i32[100], rows: f32[6*data, 4], columns: f32[6, 4*data],
    part: f32[6, 70], split: f32[6*data, 70], turned: f32[6, 70*data], first: f32[6, 4], second: i32[100], me: i32[], count: f32[],
    halves: bf16[9], wide: f32[600], close: f32[600], exact: f32[6, 4]) {
  sum = all_reduce(x) {group: data}
  total = all_reduce(big) {group: data}
  largest = all_reduce_max(x) {group: data}
  most = all_reduce_max(whole) {group: data}
  rows = all_gather(x) {group: data}
  columns = all_gather(x) {group: data, axis: 1}
  part = reduce_scatter(big) {group: data}
  split = all_to_all(big) {group: data, split_axis: 0, concat_axis: 0}
  turned = all_to_all(big) {group: data, split_axis: 0, concat_axis: 1}
  first = broadcast_from(x) {group: data}
  second = broadcast_from(whole) {group: data, root: 1}
  me = axis_index() {group: data}
  count = size() {extent: data}
  halves = all_reduce(half) {group: data}
  long = pad(x, 0.0) {low: [0, 0], high: [144, 0], interior: [0, 0]}
  flat = reshape(long) {shape: [600]}
  curve = sin(iota_f)
  scaled = add(flat, curve)
  wide = all_reduce(scaled) {group: data}
  close = all_reduce_as(scaled) {group: data, dtype: f8_e4m3fn}
  exact = all_reduce_as(x) {group: data, dtype: f16}
}
""".replace("  curve = sin(iota_f)\n", "  steps = iota() {dtype: f32, shape: [600], dimension: 0}\n  curve = sin(steps)\n")


def expected(inputs):
    """The results of each rank of OPERATORS, in float64 but where elements only move."""
    xs, bigs, wholes, halves = ([each[name] for each in inputs] for name in ("x", "big", "whole", "half"))
    n = len(inputs)
    curve = np.sin(np.arange(600))
    scaled = [np.pad(x, ((0, 144), (0, 0))).reshape(600) + curve for x in xs]
    for rank in range(n):
        parts = [big[6 * rank : 6 * rank + 6] for big in bigs]
        yield {
            "sum": sum(x.astype(float) for x in xs), "total": sum(big.astype(float) for big in bigs),
            "largest": np.max(xs, axis=0), "most": np.max(wholes, axis=0),
            "rows": np.concatenate(xs), "columns": np.concatenate(xs, axis=1),
            "part": sum(part.astype(float) for part in parts), "split": np.concatenate(parts), "turned": np.concatenate(parts, axis=1),
            "first": xs[0], "second": wholes[1], "me": np.int32(rank), "count": np.float32(n),
            "halves": sum(half.astype(float) for half in halves), "wide": sum(scaled), "close": sum(scaled),
            "exact": sum(x.astype(float) for x in xs),
        }  # fmt: skip


#: Relative to the largest element. e4m3 rounds twice, each time by at most 1/16 of an element; bf16 sums are rounded once.
TOLERANCES = {"halves": 2**-8, "close": 2 / 16}


@pytest.mark.parametrize("ranks", (2, 3, 8))
def test_operators(tmp_path, ranks):
    import ml_dtypes

    inputs = [{"x": draw(6, 4), "big": draw(6 * ranks, 70), "whole": DRAW.integers(-99, 99, 100, dtype=np.int32),
               "half": draw(9).astype(ml_dtypes.bfloat16)} for _ in range(ranks)]  # fmt: skip
    results = run(tmp_path, OPERATORS, inputs)
    for result, wanted in zip(results, expected(inputs)):
        for name, array in wanted.items():
            got = result[name].astype(np.float64)
            largest = np.abs(array).max() if np.size(array) else 1
            assert got.shape == np.shape(array) and np.abs(got - array).max() <= TOLERANCES.get(name, 1e-6) * largest, name
    for name in ("sum", "total", "largest", "rows", "first", "halves", "wide", "close", "exact"):
        assert all(result[name].tobytes() == results[0][name].tobytes() for result in results), name


SCALED = """
program scaled [data ranks] (x: f32[9, 8] scaled, y: f32[3] scaled) -> (
    sum: f32[9, 8] scaled, rows: f32[9*data, 8] scaled, short: f32[3] scaled, first: f32[9, 8] scaled) {
  sum = all_reduce(x) {group: data}
  rows = all_gather(x) {group: data}
  short = all_reduce(y) {group: data}
  first = broadcast_from(x) {group: data, root: 1}
}
"""


def test_scaled_arrays_get_one_scale_and_keep_their_values(tmp_path):
    """Each rank passes another scale. Results have the largest, rounded down to a power of two, so powers of two keep all bits of the data."""
    scales = [0.25, 8.0, 2.0**-20]
    inputs = [{"x.data": draw(9, 8), "x.scale": np.float32(scale), "y.data": draw(3), "y.scale": np.float32(scale)} for scale in scales]
    values = [each["x.data"].astype(float) * each["x.scale"] for each in inputs]
    short = sum(each["y.data"].astype(float) * each["y.scale"] for each in inputs)
    for result in run(tmp_path, SCALED, inputs):
        assert {name: float(array) for name, array in result.items() if name.endswith(".scale")} == dict.fromkeys(
            ("sum.scale", "rows.scale", "short.scale", "first.scale"), 8.0
        )
        np.testing.assert_array_equal(result["rows.data"].astype(float) * 8, np.concatenate(values))
        np.testing.assert_array_equal(result["first.data"].astype(float) * 8, values[1])
        np.testing.assert_allclose(result["sum.data"].astype(float) * 8, sum(values), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(result["short.data"].astype(float) * 8, short, rtol=1e-6, atol=1e-6)


GRADIENTS = """
program loss [data ranks] (x: f32[4, 6], g: f32[4*data, 6], s: f32[2, 6], a: f32[4, 2*data]) -> (l: f32[]) {
  y = all_reduce(x) {group: data}
  rows = all_gather(x) {group: data}
  p = mul(rows, g)
  part = reduce_scatter(p) {group: data}
  turned = all_to_all(a) {group: data, split_axis: 1, concat_axis: 0}
  t = tanh(turned)
  root = broadcast_from(x) {group: data, root: 1}
  q = mul(y, part)
  r = mul(root, x)
  l1 = reduce_sum(q) {axes: [0, 1]}
  l2 = reduce_sum(r) {axes: [0, 1]}
  l3 = reduce_sum(t) {axes: [0, 1]}
  ss = all_reduce_as(s) {group: data, dtype: f16}
  s2 = mul(ss, s)
  l4 = reduce_sum(s2) {axes: [0, 1]}
  l12 = add(l1, l2)
  l34 = add(l3, l4)
  l = add(l12, l34)
}
program gradients [data ranks] (x: f32[4, 6], g: f32[4*data, 6], s: f32[2, 6], a: f32[4, 2*data])
    -> (dx: f32[4, 6], dg: f32[4*data, 6], ds: f32[2, 6], da: f32[4, 2*data]) {
  dx, dg, ds, da = grad(x, g, s, a) {program: loss, wrt: [x, g, s, a]}
}
"""


def losses(inputs):
    """The loss of each rank of GRADIENTS, in float64."""
    n = len(inputs)
    xs, gs, ss, As = ([each[name].astype(float) for each in inputs] for name in "xgsa")
    y, rows, root, shared = sum(xs), np.concatenate(xs), xs[1], sum(ss)
    for k in range(n):
        part = sum((rows * g)[4 * k : 4 * k + 4] for g in gs)
        turned = np.concatenate([a[:, 2 * k : 2 * k + 2] for a in As])
        yield (y * part).sum() + (root * xs[k]).sum() + np.tanh(turned).sum() + (shared * ss[k]).sum()


def test_gradients_are_those_of_the_sum_of_all_losses(tmp_path):
    inputs = [{"x": draw(4, 6), "g": draw(12, 6), "s": draw(2, 6), "a": draw(4, 6)} for _ in range(3)]
    results = run(tmp_path, GRADIENTS, inputs)
    for rank in range(3):
        for name in "xgsa":
            for index in ((0, 0), (1, 5), (1, 3)):
                changed = [{key: array.astype(float) for key, array in each.items()} for each in inputs]
                step = 1e-5
                changed[rank][name][index] += step
                above = sum(losses(changed))
                changed[rank][name][index] -= 2 * step
                slope = (above - sum(losses(changed))) / (2 * step)
                assert abs(results[rank]["d" + name][index] - slope) <= 1e-4 * max(1, abs(slope)), (rank, name, index)


STEP = """
program step [data ranks] (w: f32[40, 24] inout, v: f32[24, 3] inout, x: f32[b, 40], y: f32[b, 3]) -> (w = w1, v = v1, loss: f32[]) {
  own, gw, gv = value_and_grad(w, v, x, y) {program: loss, wrt: [w, v]}
  ranks = size() {extent: data}
  all = all_reduce(own) {group: data}
  loss = div(all, ranks)
  sw = all_reduce(gw) {group: data}
  sv = all_reduce(gv) {group: data}
  rate = div(0.1, ranks)
  dw = mul(rate, sw)
  dv = mul(rate, sv)
  w1 = sub(w, dw)
  v1 = sub(v, dv)
}
"""
LOSS = """
program loss (w: f32[40, 24], v: f32[24, 3], x: f32[b, 40], y: f32[b, 3]) -> (l: f32[]) {
  h = dot(x, w)
  t = tanh(h)
  z = dot(t, v)
  d = sub(z, y)
  s = mul(d, d)
  l = mean(s) {axes: [0, 1]}
}
"""
#: The largest difference of parameters after 5 steps between 4 ranks and one, relative to the largest parameter. Sums have another order, and an
#: operand may round to the other side of a tie. One f8 step of an operand is 1/16.
STEPS = {"f32": 1e-6, "bf16": 2e-3, "f16_scaled": 2e-3, "f8_delayed": 5e-3, "f8_master": 5e-3}


def train(folder, policy, ranks, launcher=()):
    """Trains on the same batch of 16 rows, divided between ranks. Returns the results of all ranks."""
    random = np.random.default_rng(5)
    w, v = (random.normal(size=shape).astype(np.float32) / 5 for shape in ((40, 24), (24, 3)))
    x, y = (random.normal(size=shape).astype(np.float32) * size for shape, size in (((16, 40), 3), ((16, 3), 1)))
    state = [{"w": w, "v": v}] * ranks
    rows = 16 // ranks
    for _ in range(5):
        inputs = [{**state[k], "x": x[k * rows : (k + 1) * rows], "y": y[k * rows : (k + 1) * rows]} for k in range(ranks)]
        state = run(folder, LOSS + STEP, inputs, "-n", policy, launcher=launcher)
    return state


@pytest.mark.parametrize("policy", [policy for policy in STEPS if policy != "f16_scaled"])
def test_ranks_train_as_one_rank(tmp_path, policy):
    alone, four = train(tmp_path, policy, 1)[0], train(tmp_path, policy, 4)
    assert all(state[name].tobytes() == array.tobytes() for state in four for name, array in four[0].items()), "all ranks have the same bits"
    for name in ("w", "v"):
        assert np.abs(four[0][name] - alone[name]).max() <= STEPS[policy] * np.abs(alone[name]).max(), name
    assert abs(four[0]["loss"] / alone["loss"] - 1) <= max(1e-4, 2 * STEPS[policy])


def test_scales_are_those_of_the_whole_batch(tmp_path):
    """The first amax of x in the history is the largest of all ranks, so the scale of the next step is that of one rank with all rows."""
    alone, four = train(tmp_path, "f8_delayed", 1)[0], train(tmp_path, "f8_delayed", 4)
    assert all(state["x.amax_history"].tobytes() == alone["x.amax_history"].tobytes() for state in four)
    assert all(state["x.scale"].tobytes() == alone["x.scale"].tobytes() for state in four)


LAUNCHERS = {
    "openmpi": ("mpirun.openmpi", "--oversubscribe", "--mca", "btl", "self,vader", "--mca", "pml", "ob1", "-n"),
    "mpich": ("mpirun.mpich", "-n"),
}


@pytest.mark.parametrize("mpi", LAUNCHERS)
def test_mpi_has_the_bits_of_threads(tmp_path, monkeypatch, mpi):
    if shutil.which(LAUNCHERS[mpi][0]) is None:
        pytest.skip(f"{LAUNCHERS[mpi][0]} is not installed")
    for word in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        monkeypatch.setenv(word, "1")
    threads, processes = train(tmp_path, "f8_delayed", 2), train(tmp_path, "f8_delayed", 2, (*LAUNCHERS[mpi], "2"))
    assert [{name: array.tobytes() for name, array in state.items()} for state in threads] == [
        {name: array.tobytes() for name, array in state.items()} for state in processes
    ]


JOINED = """
import sys, numpy as np, scalide
first = scalide.Library("{library}", threads=1)
place = scalide.join_mpi("data")
assert scalide.join_mpi("data") == place
for library in (first, scalide.Library("{library}", threads=2)):
    total = library(np.arange(100, dtype=np.float32) * (place.rank + 1))
    assert (total == np.arange(100) * 6).all(), total
open(f"rank{{place.rank}}_of_{{place.ranks}}", "w").close()
"""


def test_python_joins_over_mpi(tmp_path, libraries, monkeypatch):
    known = [words for words in LAUNCHERS.values() if shutil.which(words[0])]
    if not known:
        pytest.skip("neither mpirun.openmpi nor mpirun.mpich is installed")
    for word in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"):
        monkeypatch.setenv(word, "1")
    library = libraries("program total [data ranks] (x: f32[100]) -> (y: f32[100]) {\n  y = all_reduce(x) {group: data}\n}\n")
    for launcher in known:
        command = [*launcher, "3", sys.executable, "-c", JOINED.format(library=library)]
        folder = tmp_path / launcher[0]
        folder.mkdir()
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        assert sorted(file.name for file in folder.iterdir()) == ["rank0_of_3", "rank1_of_3", "rank2_of_3"]


def test_python_joins_alone(libraries):
    text = "program shared [lone ranks] (x: f32[3]) -> (y: f32[3]) {\n  y = all_reduce(x) {group: lone}\n}\n"
    library = scalide.Library(libraries(text))
    with pytest.raises(ValueError, match="is no rank of it"):
        library(np.ones(3, np.float32))
    assert scalide.join_alone("lone") == scalide.Rank(0, 1)
    assert (library(np.ones(3, np.float32)) == 1).all()


def error_of(folder, text, inputs, *options):
    with pytest.raises(RuntimeError) as raised:
        run(folder, text, inputs, *options)
    return str(raised.value)


def test_mistakes(tmp_path):
    x = {"x": draw(4)}
    line = "program p {} (x: f32[{}]) -> (y: f32[{}]) {{\n  y = {}\n}}\n"
    missing = error_of(tmp_path, line.format("[n]", "n", "n", "all_reduce(x) {group: n}"), [x])
    assert "needs a program with a group of ranks" in missing
    compiled = error_of(tmp_path, line.format("[data ranks, n]", "n", "n", "all_reduce(x) {group: n}"), [x])
    assert "all_reduce.group: must be a group of ranks, got n" in compiled and "[n ranks]" in compiled
    divided = error_of(tmp_path, line.format("[data ranks]", 4, "4", "reduce_scatter(x) {group: data}"), [x])
    assert "divisible by the number of parts" in divided
    shapes = error_of(tmp_path, line.format("[data ranks]", "n", "n", "all_reduce(x) {group: data}"), [x, {"x": draw(5)}])
    assert "rank 1 collects 10 f32 elements" in shapes and "rank 0 collects 8 f32 elements" in shapes
    count = error_of(tmp_path, line.format("[data ranks]", "4*data", "4*data", "all_reduce(x) {group: data}"), [x, x])
    assert "data" in count and "ranks" in count
