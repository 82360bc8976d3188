"""Statistics of compiled runs: the numbers of NumPy and of the interpreter, the same results as without statistics, rows of a policy, files."""
import json
import math
import subprocess
import textwrap

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from test_metrics import fields

import scalide
from scalide.jax import trace
from scalide.tool_process import tool_path

random = np.random.default_rng(7)
PARAMS = {"w1": random.standard_normal((16, 48)).astype("f4") * 0.3, "b1": np.zeros(48, "f4"), "w2": random.standard_normal((48, 8)).astype("f4")}
X, Y = random.standard_normal((24, 16)).astype("f4"), random.standard_normal((24, 8)).astype("f4")


def loss(params, x, y):
    with jax.named_scope("hidden"):
        h = jax.nn.gelu(x @ params["w1"] + params["b1"])
    with jax.named_scope("head"):
        return jnp.mean((h @ params["w2"] - y) ** 2)


def step(params, x, y):
    value, gradient = jax.value_and_grad(loss)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient), value


@pytest.fixture(scope="module")
def program():
    return trace(step, PARAMS, X, Y)


def bits(tree):
    return [np.asarray(part).tobytes() for leaf in jax.tree.leaves(tree, is_leaf=lambda x: isinstance(x, scalide.ScaledArray))
            for part in ((leaf.data, leaf.scale) if isinstance(leaf, scalide.ScaledArray) else (leaf,))]  # fmt: skip


def row_of(library, tensor, use=None, format=None):
    (row,) = [row for row in library.statistics() if row.tensor == tensor and use in (None, row.use) and format in (None, row.format)]
    return row


@pytest.mark.parametrize("policy", ["f32", "bf16", "f8_master", "f8_delayed", "f16_scaled"])
def test_results_keep_their_bits_and_counts_are_those_of_the_interpreter(program, policy):
    plain = scalide.build(program, numerics=policy)
    collecting = scalide.build(program, numerics=policy, statistics=2)
    params = plain.convert(PARAMS)
    states = [plain.init()] if plain._state else []
    arguments = (params, X * 40, Y, *states)
    for number in range(3):
        expected, made = plain(*arguments), collecting(*arguments)
        assert bits(expected) == bits(made)
        assert {row.step for row in collecting.statistics()} == {number // 2 * 2}
    rows = collecting.statistics()
    for count in collecting.check(*arguments).roundings:
        row = row_of(collecting, count.tensor, format=count.format) if count.tensor in {row.tensor for row in rows} else None
        assert row is not None, count
        assert (row.zeros, row.saturated, row.subnormal, row.elements) == (count.zeros, count.saturated, count.subnormals, count.elements), count


def test_numbers_of_arguments(program):
    library = scalide.build(program, statistics=1)
    x = X.copy()
    x[3, 2], x[3, 5], x[9, 0], x[0, 0] = math.inf, math.nan, 1e30, 2.0**-130
    library(PARAMS, x, Y)
    row = row_of(library, "x", "argument")
    finite = x[np.isfinite(x)].astype("f8")
    assert (row.elements, row.non_finite, row.first) == (x.size, 2, 3 * 16 + 2)
    assert row.amax == np.float32(1e30) and row.subnormal == 1 and row.zeros is None and row.saturated is None and row.scale is None
    assert row.rms == pytest.approx(math.sqrt(np.mean(finite**2)), rel=1e-5)  # squares leave the range of f32
    exponents = np.clip((np.floor(np.log2(np.abs(finite[finite != 0]))) + 40) // 2, -1, 30).astype(int)  # bins of two octaves from 2^-40 on
    assert dict(row.histogram) == {2 * place - 40: count for place, count in zip(*np.unique(exponents, return_counts=True))}
    small = np.full_like(X, 1e-22)  # squares would be 0 in f32
    library(PARAMS, small, Y)
    assert row_of(library, "x", "argument").rms == pytest.approx(1e-22, rel=1e-5)


def test_a_saturating_conversion(tmp_path):
    policy = tmp_path / "plain8.yaml"
    policy.write_text("policy: plain8\ndoc: FP8 without scales.\nrules:\n  - {op: dot_general, operand: any, store: f8_e4m3fn}\n")
    x = np.concatenate([np.full(5, 1000), np.full(3, 1e-4), np.full(8, 0.01), np.zeros(16)]).astype("f4").reshape(4, 8)
    library = scalide.build(trace(lambda x, w: x @ w, x, np.eye(8, dtype="f4")), numerics=str(policy), statistics=1)
    library(x, np.eye(8, dtype="f4"))
    row = row_of(library, "x", format="f8_e4m3fn")
    assert (row.saturated, row.zeros, row.subnormal, row.amax, row.scale) == (5, 3, 8, 1000, None)
    assert row.use == "dot_general.lhs" and dict(row.histogram) == {9: 5, -14: 3, -7: 8}


def attention_step(params, x, y):
    def loss(params):
        q, k, v = (jnp.einsum("bsd,dhe->bhse", x, params[name]) for name in "qkv")
        scores = jax.nn.softmax(jnp.einsum("bhse,bhte->bhst", q, k) / 4)
        return jnp.mean((jnp.einsum("bhst,bhte,hed->bsd", scores, v, params["o"]) - y) ** 2)

    value, gradient = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient), value


@pytest.fixture(scope="module")
def attention():
    draw = np.random.default_rng(3)
    params = {name: (0.3 * draw.standard_normal((24, 2, 16) if name != "o" else (2, 16, 24))).astype("f4") for name in "qkvo"}
    x, y = (draw.standard_normal((2, 12, 24)).astype("f4") for _ in range(2))
    program = trace(attention_step, params, x, y)
    library = scalide.build(program, statistics=1)
    library(params, x, y)
    return program, (params, x, y), library.statistics()


@pytest.mark.parametrize("policy", ["bf16", "f16_master", "f16_scaled", "f8_master", "f8_delayed", "f8_row"])
def test_numbers_are_in_units_of_the_tensor(attention, policy):
    """Neither the data of a scaled tensor nor a sum of products of data: each amax is that of a tensor in f32."""
    program, arguments, expected = attention
    library = scalide.build(program, numerics=policy, statistics=1)
    state = library.init() if library._state else None
    params = library.convert(arguments[0])
    for _ in range(2):
        result = library(params, *arguments[1:], *([state] if state else []))
        state = result[1] if state else None
    for row in library.statistics():
        known = [other.amax for other in expected if other.elements == row.elements]
        assert any(abs(row.amax - amax) <= 0.2 * amax for amax in known), row


def test_tensors_of_one_line_have_numbers_of_their_own(attention):
    """q, k and v have one operator, line and scope, and passes give their matmuls other names."""
    _, _, rows = attention
    products = [row for row in rows if (row.operator, row.scope, row.direction) == ("dot_general", "bsd,dhe->bhse", "forward")]
    assert len({row.tensor for row in products}) == len(products) == 3, products
    assert len({row.amax for row in products}) == 3, products


@pytest.mark.parametrize("format", ["f8_e4m3fn", "f8_e5m2", "f16", "bf16"])
def test_counts_at_each_limit(format, tmp_path):
    """The numbers at which rounding changes its result, and their neighbours, in more than one block of a histogram."""
    policy = tmp_path / "plain.yaml"
    policy.write_text(f"policy: plain\ndoc: One format without scales.\nrules:\n  - {{op: dot_general, operand: any, store: {format}}}\n")
    dtype = {"f8_e4m3fn": ml_dtypes.float8_e4m3fn, "f8_e5m2": ml_dtypes.float8_e5m2, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[format]
    info = ml_dtypes.finfo(dtype)
    least, normal, largest = (float(number) for number in (info.smallest_subnormal, info.smallest_normal, info.max))
    limit = largest + 2.0 ** (math.floor(math.log2(largest)) - info.nmant - 1)
    edges = np.array([least / 2, least, normal - least / 2, normal - least, normal, largest, limit], "f4")
    near = np.concatenate([edges, np.nextafter(edges, np.float32(0)), np.nextafter(edges, np.float32(np.inf)), [0, -0.0, 1, 3, np.inf, np.nan]]).astype("f4")
    x = np.concatenate([near, -near] * 200)[: 64 * 128].reshape(64, 128)
    traced = trace(lambda x, w: x @ w, x, np.eye(128, dtype="f4"))

    def collected(**options):
        library = scalide.build(traced, numerics=str(policy), **options)
        library(x, np.eye(128, dtype="f4"))
        return row_of(library, "x", format=format)

    row = collected(statistics=1)
    with np.errstate(over="ignore", invalid="ignore"):
        stored = np.abs(np.clip(x, -largest, largest).astype(dtype).astype("f8"))
    magnitude = np.abs(x.astype("f8"))
    is_beyond = (magnitude >= limit if format != "f8_e4m3fn" else magnitude > limit) & np.isfinite(x)
    assert row.zeros == np.sum((stored == 0) & (x != 0)) and row.subnormal == np.sum((stored > 0) & (stored < normal))
    assert row.saturated == np.sum(is_beyond) and row.non_finite == np.sum(~np.isfinite(x))
    assert sum(count for _, count in row.histogram) == np.sum(np.isfinite(x) & (x != 0)) and row.amax == np.abs(x[np.isfinite(x)]).max()
    policy.write_text(policy.read_text() + "statistics:\n  - {collect: [zeros, saturated, subnormal, non_finite], tensor: x, every: 1}\n")
    counts = collected()  # without a histogram, sums count
    for number in ("zeros", "saturated", "subnormal", "non_finite", "first"):
        assert getattr(counts, number) == getattr(row, number), number
    assert counts.histogram is None


ROWS = """
    policy: mine
    doc: FP8 training with statistics.
    extends: f8_master
    statistics:
      - {collect: [amax, rms], op: [tanh, erf, erfc, integer_pow, square], every: 1}
      - {collect: [histogram], argument: "params.w*", every: 2}
      - {collect: [zeros], scope: "head/**", every: 3}
"""


def test_rows_of_a_policy_choose_tensors(program, tmp_path):
    policy = tmp_path / "mine.yaml"
    policy.write_text(textwrap.dedent(ROWS))
    library = scalide.build(program, numerics=str(policy))
    for _ in range(6):
        library(PARAMS, X, Y)
    rows = {(row.tensor, row.use, row.format): row for row in library.statistics()}
    weights = [row for row in rows.values() if row.histogram is not None]
    assert {row.tensor for row in weights} == {"params.w1", "params.w2"} and {row.step for row in weights} == {4} and all(row.amax is None for row in weights)
    functions = [row for row in rows.values() if row.amax is not None]
    assert functions and {row.step for row in functions} == {5} and all(row.zeros is None for row in functions)
    head = [row for row in rows.values() if row.zeros is not None]
    assert head and {row.step for row in head} == {3} and {row.scope.split("/")[0] for row in head} == {"head"}
    assert {row.policy.rpartition(":")[0] for row in rows.values()} == {"mine.yaml"}


@pytest.mark.parametrize(("row", "message"), [
    ("{collect: [amin]}", "collect"),
    ("{collect: []}", "must not be an empty list"),
    ("{collect: [amax, amax]}", "must be unique"),
    ("{collect: [amax], every: 0}", "every: must be at least 1, got 0"),
    ("{collect: [amax], argument: \"parms.*\"}", "matches no tensor"),
    ("{collect: [amax]}\n  - {collect: [rms], op: dot_general}", "earlier rows of 'statistics' decide for all tensors"),
])  # fmt: skip
def test_wrong_rows(program, tmp_path, row, message):
    policy = tmp_path / "wrong.yaml"
    policy.write_text(f"policy: wrong\ndoc: Wrong.\nextends: f8_master\nstatistics:\n  - {row}\n")
    with pytest.raises(scalide.BuildError, match=message.replace("'", ".").replace("(", ".")) as error:
        scalide.build(program, numerics=str(policy))
    assert "wrong.yaml:" in str(error.value)


def test_files(program, tmp_path):
    library = scalide.build(program, numerics="f8_master", statistics=2)
    with scalide.Metrics(tmp_path, tensorboard=True, statistics=True) as metrics:
        for number in range(5):
            _, value = library(PARAMS, X, Y)
            metrics.write(100 + number, {"loss": value}, statistics=library)
    head, *lines = [json.loads(line) for line in (tmp_path / "statistics.jsonl").read_text().splitlines()]
    assert (head["scalide"], head["program"], head["numerics"], head["hash"]) == ("statistics", "step", "f8_master", library.hash)
    assert [line["step"] for line in lines] == [100, 102, 104]
    rows = library.statistics()
    assert [tensor["tensor"] for tensor in head["tensors"]] == [row.tensor for row in rows] and all(len(lines[0][key]) == len(rows) for key in ("amax", "zeros"))
    for place, (tensor, row) in enumerate(zip(head["tensors"], rows)):
        assert (tensor["use"], tensor["format"], tensor["direction"]) == (row.use, row.format, row.direction)
        assert [lines[-1][key][place] for key in ("amax", "rms", "zeros", "non_finite", "scale")] == [row.amax, row.rms, row.zeros, row.non_finite, row.scale]
        dtype = np.float32 if row.format == "f32" else np.dtype(getattr(ml_dtypes, {"bf16": "bfloat16"}.get(row.format, row.format.replace("f8_", "float8_"))))
        assert tensor["largest"] == float(ml_dtypes.finfo(dtype).max) and tensor["smallest_normal"] == float(ml_dtypes.finfo(dtype).smallest_normal)
    tags = tags_of(tmp_path)
    row = row_of(library, "x", format="f8_e4m3fn")
    assert tags["amax/x f8_e4m3fn"] == np.float32(row.amax) and tags["log2/x f8_e4m3fn"] == sum(count for _, count in row.histogram)


def test_the_first_non_finite_tensor_is_an_event(tmp_path):
    text = ('program step(x: f32[4, 8], w: f32[8, 3]) -> (y: f32[4, 3]) {\n  scope "head" {\n    e = exp(x) : f32[4, 8]\n'
            "    y = dot(e, w) : f32[4, 3]\n  }\n}\n")  # fmt: skip
    program = scalide.Program(text)
    library = scalide.build(program, numerics="f8_master", statistics=2)
    x, w = np.zeros((4, 8), "f4"), np.ones((8, 3), "f4")
    infinite = x.copy()
    infinite[2, 5] = infinite[3, 1] = 1000
    with scalide.Metrics(tmp_path / "run", statistics=True, tensorboard=True) as metrics:
        for number, inputs in enumerate((x, infinite, x, x, infinite, x, infinite, x, x)):  # step 1 does not collect
            library(inputs, w)
            metrics.write(number, {"loss": 1.0}, statistics=library)
    head, *lines = [json.loads(line) for line in (tmp_path / "run/statistics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [0, 2, 4, 4, 6, 8] and lines[3].pop("time") > 0
    assert lines[3] == {"step": 4, "non_finite": {"tensor": "e", "use": "stored", "operator": "exp", "format": "bf16", "scope": "head",
                                                  "direction": "forward", "source": "step.scl:3", "count": 2, "first": 21}}  # fmt: skip
    program.save(tmp_path / "step.scl")
    command = [tool_path(), "report", "step.scl", "run", "-o", "page.html"]
    printed = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert printed.startswith("bad: e (stored in head, step.scl:"), printed
    assert "has an infinity or a NaN in step 4. The tensors before it are finite, so it comes from exp in head" in printed, printed
    assert "Its first one is element 21 in row-major order." in printed, printed
    with scalide.Metrics(tmp_path / "healthy", statistics=True) as metrics:
        for number in range(3):
            library(x, w)
            metrics.write(number, {}, statistics=library)
    assert "non_finite\": {" not in (tmp_path / "healthy/statistics.jsonl").read_text()


def tags_of(folder):
    """Returns the last value of each tag: of a scalar its value, of a histogram the number of its elements."""
    (file,) = folder.glob("events.out.tfevents.*")
    data, tags = file.read_bytes(), {}
    while data:
        length = int.from_bytes(data[:8], "little")
        record = dict(fields(data[12 : 12 + length]))
        for _, value in fields(record.get(5, b"")):
            value = dict(fields(value))
            number = value[2] if 2 in value else dict(fields(value[5]))[3]
            tags[value[1].decode()] = float(np.frombuffer(number, "<f4" if 2 in value else "<f8")[0])
        data = data[16 + length :]
    return tags


def test_runs_that_are_no_steps_do_not_count(program, tmp_path):
    """init fits scales by several runs, and check runs the library once. A step is a call of the user."""
    library = scalide.build(program, numerics="f8_delayed", statistics=2)
    state = library.init(PARAMS, X, Y)
    library.check(PARAMS, X, Y, state)
    library.first_non_finite(PARAMS, X, Y, state)
    library(PARAMS, X, Y, state, check_finite=True)
    assert len(library.statistics()) == 0
    with scalide.Metrics(tmp_path, statistics=True) as metrics:
        for number in range(3):
            library(PARAMS, X, Y, state)
            assert {row.step for row in library.statistics()} == {number // 2 * 2}
            metrics.write(number, {}, statistics=library)
    assert [json.loads(line)["step"] for line in (tmp_path / "statistics.jsonl").read_text().splitlines()[1:]] == [0, 2]


def test_scaled_arguments():
    """The data of a scaled argument is in units of its scale, its statistics are not."""
    text = "program scaled(x: f16[24, 16] scaled, w: f32[16, 8]) -> (y: f32[24, 8]) {\n  y = dot(x, w) : f32[24, 8]\n}\n"
    library = scalide.build(scalide.Program(text), statistics=1)
    x = scalide.ScaledArray(X.astype("f2"), np.float32(2.0**-30))
    library(x, random.standard_normal((16, 8)).astype("f4"))
    row, exact = row_of(library, "x", "argument"), X.astype("f2").astype("f8") * 2.0**-30
    assert row.amax == np.abs(exact).max() and row.scale == 2.0**-30 and row.rms == pytest.approx(math.sqrt(np.mean(exact**2)), rel=1e-5)


def test_the_command_prints_the_same_table(tmp_path):
    text = "program step(x: f32[24, 16], w: f32[16, 8]) -> (y: f32[24, 8]) {\n  y = dot(x, w) : f32[24, 8]\n}\n"
    (tmp_path / "step.scl").write_text(text)
    arrays = {"x": X.copy(), "w": PARAMS["w2"][:16]}
    arrays["x"][3, 2] = math.inf
    scalide.save(tmp_path / "in.safetensors", arrays)
    library = scalide.build(scalide.Program(text), numerics="f8_master", statistics=1)
    library(*arrays.values())
    command = [tool_path(), "run", "step.scl", "-n", "f8_master", "-i", "in.safetensors", "-o", "out.safetensors", "--statistics"]
    printed = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert printed == f"{library.statistics()!r}\nout.safetensors: 1 arrays\n"
    json_rows = json.loads(subprocess.run([*command, "--json"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout)
    for row, made in zip(library.statistics(), json_rows, strict=True):
        assert (row.amax, row.scale, row.rms, row.first) == (made["amax"], made["scale"], made["rms"], made["first"])
        assert [list(pair) for pair in row.histogram] == made["histogram"] and list(row._fields) == [*sorted(made, key=list(row._fields).index)]


def test_what_is_missing(program, tmp_path):
    library = scalide.build(program)
    with pytest.raises(ValueError, match="was built without statistics"):
        library.statistics()
    with scalide.Metrics(tmp_path) as metrics, pytest.raises(ValueError, match="have no file of statistics"):
        metrics.write(0, {}, statistics=library)
    assert len(scalide.build(program, statistics=True).statistics()) == 0


def test_constants_and_symbols():
    def predict(params, x):
        return jnp.tanh(x @ params["w1"]) @ params["w2"]

    traced = trace(predict, PARAMS, X, constant_argnums=0)
    library = scalide.build(traced, numerics="f8_master", statistics=1)
    prepared = library.prepare(PARAMS)
    assert bits(library(PARAMS, X)) == bits(prepared(X)) == bits(scalide.build(traced, numerics="f8_master")(PARAMS, X))
    assert row_of(prepared, "x", format="f8_e4m3fn").amax == np.abs(X).max()


STEPS = 40  # more than a build unrolls


def recurrent_step(params, xs):
    """A training step of a recurrent cell in a loop."""

    def loss(params):
        def cell(h, x):
            with jax.named_scope("cell"):
                h = jnp.tanh(x @ params["w1"][:, :16] + h @ params["u"])
            return h, h

        _, hs = jax.lax.scan(cell, jnp.zeros((24, 16)), xs)
        return jnp.mean(hs**2)

    value, gradient = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient), value


@pytest.mark.parametrize("policy", ["f32", "f8_master", "f8_delayed", "f16_scaled"])
def test_tensors_in_loops_count_in_all_steps(policy):
    params = {"w1": PARAMS["w1"], "u": (random.standard_normal((16, 16)) * 0.2).astype("f4")}
    xs = random.standard_normal((STEPS, 24, 16)).astype("f4")
    traced = trace(recurrent_step, params, xs)
    plain, library = scalide.build(traced, numerics=policy), scalide.build(traced, numerics=policy, statistics=1)
    arguments = (plain.convert(params), xs, *([plain.init()] if plain._state else []))
    assert bits(plain(*arguments)) == bits(library(*arguments))
    rows = library.statistics()
    in_loops = [row for row in rows if row.scope == "cell" and row.elements == STEPS * 24 * 16]
    assert {row.direction for row in in_loops} == {"forward", "backward"} and {row.operator for row in in_loops} >= {"dot_general"}
    counts = [count for count in library.check(*arguments).roundings if count.elements == STEPS * 24 * 16]
    assert counts or policy == "f32"
    for count in counts:
        same = [row for row in rows if (row.tensor, row.format) == (count.tensor, count.format)]
        assert (count.elements, count.zeros, count.saturated, count.subnormals) in [(row.elements, row.zeros, row.saturated, row.subnormal) for row in same], count


LOOP = """program loop(h: f32[4, 8], xs: f32[50, 4, 8], w: f32[8, 8]) -> (out: f32[4, 8], all: f32[50, 4, 8]) {
  out, all = scan(h, xs, w) {length: 50%s} with body(h: f32[4, 8] inout, x: f32[4, 8] each, w: f32[8, 8]) -> (h = next, y: f32[4, 8] = y) {
    scope "step" {
      a = add(h, x) : f32[4, 8]
      y = dot(a, w) : f32[4, 8]
      next = mul(y, 0.25) : f32[4, 8]
    }
  }
}
"""


@pytest.mark.parametrize("order", ["", ", reverse: true"])
def test_numbers_of_a_tensor_in_a_loop(order):
    library = scalide.build(scalide.Program(LOOP % order), numerics="f32", statistics=1)
    h, xs, w = X[:4, :8], random.standard_normal((50, 4, 8)).astype("f4"), random.standard_normal((8, 8)).astype("f4")
    xs[31, 2, 5] = xs[12, 1, 3] = 1e30
    made, carried = np.empty((50, 4, 8)), h.astype("f8")
    for number in reversed(range(50)) if order else range(50):
        made[number] = (carried + xs[number]) @ w.astype("f8")
        carried = made[number] / 4
    result = library(h, xs, w)
    stack = np.asarray(result[1]).astype("f8")
    np.testing.assert_allclose(stack, made, rtol=2e-3, atol=1e-3 * np.abs(made).max())
    (row,) = [row for row in library.statistics() if row.use == "dot_general" and row.scope == "step"]
    exponents = np.clip((np.floor(np.log2(np.abs(stack[stack != 0]))) + 40) // 2, -1, 30).astype(int)
    assert (row.elements, row.amax, row.non_finite, row.first, row.source) == (1600, np.abs(stack).max(), 0, None, "loop.scl:5")
    assert row.rms == pytest.approx(math.sqrt(np.mean(stack**2)), rel=1e-5)
    assert dict(row.histogram) == {2 * place - 40: count for place, count in zip(*np.unique(exponents, return_counts=True))}
    xs[31, 2, 5], xs[12, 1, 3] = math.inf, 0
    stack = np.asarray(library(h, xs, w)[1])
    (row,) = [row for row in library.statistics() if row.use == "dot_general" and row.scope == "step"]
    wrong = ~np.isfinite(stack)
    assert (row.non_finite, row.first, row.amax) == (wrong.sum(), np.flatnonzero(wrong)[0], np.abs(stack[~wrong]).max())


def test_loops_in_loops_and_loops_without_a_known_length():
    h, w = X[:4, :8], (random.standard_normal((8, 8)) * 0.4).astype("f4")

    def nested(h, w):
        def outer(h, _):
            def inner(g, _):
                with jax.named_scope("inner"):
                    return jnp.tanh(g @ w), None

            return jax.lax.scan(inner, h, None, length=STEPS)[0] + 1, None

        return jax.lax.scan(outer, h, None, length=STEPS + 2)[0]

    def unknown(h, w):
        def body(state):
            with jax.named_scope("inner"):
                return state[0] + 1, jnp.tanh(state[1] @ w)

        return jax.lax.while_loop(lambda state: (state[0] < STEPS) & (jnp.sum(jnp.abs(state[1])) > 0.1), body, (0, h))[1] @ w

    library = scalide.build(trace(nested, h, w), statistics=1)
    made, carried = [], h.astype("f8")
    for _ in range(STEPS + 2):
        for _ in range(STEPS):
            made.append(carried @ w.astype("f8"))
            carried = np.tanh(made[-1])
        carried = carried + 1
    np.testing.assert_allclose(library(h, w), carried, rtol=1e-4)
    (row,) = [row for row in library.statistics() if row.operator == "dot_general" and row.scope == "inner"]
    assert row.elements == (STEPS + 2) * STEPS * 32 and (row.non_finite, row.first) == (0, None)
    assert row.amax == pytest.approx(np.abs(made).max(), rel=1e-4) and row.rms == pytest.approx(math.sqrt(np.mean(np.square(made))), rel=1e-4)
    library = scalide.build(trace(unknown, h, w), statistics=1)
    library(h, w)
    assert {row.scope for row in library.statistics()} == {"-"}
