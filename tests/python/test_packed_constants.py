"""Constants that are packed once: the same bits as with inputs, and the arrays that a run reads. No JAX."""
import json
import re
import subprocess

import numpy as np
import pytest
from conftest import TOOL

from scalide import Library, ScaledArray
from scalide.arrays import DTYPES

DOT = "program dot(x: {x}[B, 70], w: {w}[70, 90] constant) -> (y: {y}[B, 90]) {{\n  y = dot_general(x, w) {{contract: [[1], [0]], preferred: {y}}}\n}}\n"
TURNED = "program turned(x: f32[B, 70], w: f32[90, 70] constant) -> (y: f32[B, 90]) {\n  y = dot_general(x, w) {contract: [[1], [1]]}\n}\n"
BATCHED = "program batched(x: f32[3, B, 20], w: f32[3, 20, 40] constant) -> (y: f32[3, B, 40]) {\n  y = dot_general(x, w) {contract: [[2], [1]], batch: [[0], [0]]}\n}\n"
DEEP = "program deep(x: f32[B, 5000], w: f32[5000, 33] constant) -> (y: f32[B, 33]) {\n  y = dot_general(x, w) {contract: [[1], [0]]}\n}\n"
ANY = "program any(x: f32[B, k], w: f32[k, n] constant) -> (y: f32[B, n]) {\n  y = dot_general(x, w) {contract: [[1], [0]]}\n}\n"
MULTIPLES = "program multiples(x: f32[B, 30], w: f32[30, 64*n] constant) -> (y: f32[B, 64*n]) {\n  y = dot_general(x, w) {contract: [[1], [0]]}\n}\n"
SYMBOLS = {"k": 30, "n": 90, "64*n": 128}  # extents of these programs
# Two matmuls read the weight, one of them transposed, and it is summed.
SHARED = """program shared(x: f32[B, 48], w: f32[48, 48] constant) -> (y: f32[B, 48], s: f32[48]) {
  h = dot_general(x, w) {contract: [[1], [0]]}
  r = relu(h)
  y = dot_general(r, w) {contract: [[1], [1]]}
  s = reduce_sum(w) {axes: [0]}
}
"""
# What is added to the weights is constant, or comes with each run.
SHIFTED = """program shifted(x: f32[B, 70], w: f32[70, 90] constant, v: f32[70]OTHER) -> (y: f32[B, 90]) {
  spread = broadcast_in_dim(v) {shape: [70, 90], dims: [0]}
  sum = add(w, spread)
  y = dot_general(x, sum) {contract: [[1], [0]]}
}
"""
CONVOLUTION = """program convolution(x: f32[B, 6, 7, 5], w: f32[{window}, 5, {features}] constant) -> (y: f32[B, 6, 7, {features}]) {{
  y = conv_general_dilated(x, w) {{low: [{pad}, {pad}], high: [{pad}, {pad}], lhs_spec: [0, 3, 1, 2], rhs_spec: [3, 2, 0, 1], out_spec: [0, 3, 1, 2]}}
}}
"""
# Loops read weights, one of them transposed; another product reads one before the loop.
LOOP = """program loop(x: f32[70, B, 48], h: f32[B, 48], w: f32[48, 48] constant, u: f32[48, 48] constant) -> (y: f32[B, 48]) {
  first = dot_general(h, w) {contract: [[1], [0]]} : f32[B, 48]
  y = scan(w, u, first, x) {length: 70} : f32[B, 48] with
    body(w: f32[48, 48], u: f32[48, 48], h: f32[B, 48] inout, x: f32[B, 48] each) -> (h = next) {
      a = dot_general(h, u) {contract: [[1], [0]]}
      r = relu(a)
      b = dot_general(r, w) {contract: [[1], [1]]}
      s = add(b, x)
      next = tanh(s)
    }
}
"""
# The inner loop is in a branch of the outer one, and reads a weight that the outer one changes, and one that nothing changes.
NESTED = """program nested(x: f32[70, B, 48], h: f32[B, 48], w: f32[48, 48] constant, u: f32[48, 48]) -> (y: f32[B, 48]) {
  y, v = scan(w, h, u, x) {length: 70} : f32[B, 48], f32[48, 48] with
    outer(i: i32[] step, w: f32[48, 48], h: f32[B, 48] inout, v: f32[48, 48] inout, x: f32[B, 48] each) -> (h = h1, v = v1) {
      late = gt(i, 60)
      h1 = cond(late, w, v, h, x) : f32[B, 48] with
        yes(w: f32[48, 48], v: f32[48, 48], g: f32[B, 48], x: f32[B, 48]) -> (h: f32[B, 48]) {
          h = fori(w, v, g, x) {lower: 0, upper: 70} : f32[B, 48] with
            inner(w: f32[48, 48], v: f32[48, 48], h: f32[B, 48] inout, x: f32[B, 48]) -> (h = next) {
              a = dot_general(h, w) {contract: [[1], [0]]}
              b = dot_general(a, v) {contract: [[1], [0]]}
              s = add(b, x)
              next = tanh(s)
            }
        },
        no(w: f32[48, 48], v: f32[48, 48], h: f32[B, 48], x: f32[B, 48]) -> (r: f32[B, 48]) {
          r = sub(x, h)
        }
      v1 = neg(v)
    }
}
"""
CASES = {
    "f32": (DOT.format(x="f32", w="f32", y="f32"), ["f32", "bf16", "f8_master", "f8_weights", "f16_scaled"]),
    "i8": (DOT.format(x="i8", w="i8", y="i32"), ["f32"]), "u8": (DOT.format(x="u8", w="i8", y="i32"), ["f32"]),
    "i32": (DOT.format(x="i32", w="i32", y="i32"), ["f32"]), "turned": (TURNED, ["f32", "bf16"]), "batched": (BATCHED, ["f32", "f8_master"]),
    "any": (ANY, ["f32", "bf16"]), "multiples": (MULTIPLES, ["f32", "bf16"]), "deep": (DEEP, ["f32", "bf16"]), "shared": (SHARED, ["f32", "bf16"]), "shifted": (SHIFTED.replace("OTHER", " constant"), ["f32"]),
    "partly constant": (SHIFTED.replace("OTHER", ""), ["f32"]), "convolution": (CONVOLUTION.format(window="3, 3", features=40, pad=1), ["f32", "bf16"]),
    "pointwise convolution": (CONVOLUTION.format(window="1, 1", features=33, pad=0), ["f32"]),
    "loop": (LOOP, ["f32", "bf16", "f8_weights"]), "nested": (NESTED, ["f32"]),
    "narrow convolution": (CONVOLUTION.format(window="3, 3", features=3, pad=1), ["f32"]),
}  # fmt: skip


def arrays_of(text, library, rows):
    random = np.random.default_rng(rows)
    shapes = dict(re.findall(r"(\w+): \w+\[([^\]]*)\]", text.split("->")[0]))
    for argument in (argument for argument in library.arguments if argument.name in shapes):
        shape = [rows if extent in "Bb" else SYMBOLS.get(extent) or int(extent) for extent in shapes[argument.name].split(", ")]
        integer = argument.dtype[0] in "iu"
        numbers = random.integers(0 if argument.dtype[0] == "u" else -99, 99, shape) if integer else random.standard_normal(shape)
        data = numbers.astype(DTYPES[argument.dtype][0])
        yield ScaledArray(data, np.float32(0.5)) if argument.scaled else data


def bits(results):
    for result in results if isinstance(results, tuple) else [results]:
        for part in [result.data, result.scale] if isinstance(result, ScaledArray) else [result]:
            yield np.asarray(part).view(np.uint8)


#: Each program and policy meets one of the four kinds of rows, and with --slow another one.
KINDS = ["8", "b", "300", "b likely"]
PAIRS = [(name, numerics) for name, (_, policies) in CASES.items() for numerics in policies]


@pytest.mark.parametrize("name, numerics, rows", [
    pytest.param(*pair, KINDS[(i + turn) % 4], marks=pytest.mark.slow if turn else ()) for i, pair in enumerate(PAIRS) for turn in (0, 1)])
def test_packing_changes_no_bit(libraries, name, numerics, rows):
    text = CASES[name][0].replace("B", rows.split()[0])
    if "likely" in rows:
        text = text.replace("(", " [b likely [8]] (", 1)
    constant, plain = Library(libraries(text, numerics)), Library(libraries(text.replace(" constant", ""), numerics))
    for number in [int(rows)] if rows.isdigit() else [1, 8, 300, 0]:
        arrays = list(arrays_of(text, plain, number))
        for expected, got in zip(bits(plain(*arrays)), bits(constant(*arrays)), strict=True):
            np.testing.assert_array_equal(expected, got)


def in_numpy(text, x, h, w, u):
    """The loops of LOOP and NESTED in float64."""
    relu = lambda a: np.maximum(a, 0)  # noqa: E731
    if "nested" not in text:
        h = h @ w
    for i, row in enumerate(x):
        if "nested" not in text:
            h = np.tanh(relu(h @ u) @ w.T + row)
        elif i > 60:
            for _ in range(70):
                h = np.tanh(h @ w @ (u * (-1) ** i) + row)
        else:
            h = row - h
    return h


@pytest.mark.parametrize("text", [LOOP, NESTED], ids=["loop", "nested"])
def test_loops_read_panels(libraries, text):
    """Small weights keep the loops from being chaotic. 2e-6: 70 steps of sums of 48 terms in f32."""
    library, random = Library(libraries(text.replace("B", "8"), "f32")), np.random.default_rng(0)
    arrays = [np.asarray(random.standard_normal(shape) * scale, np.float32)
              for shape, scale in [((70, 8, 48), 1), ((8, 48), 1), ((48, 48), 0.05), ((48, 48), 0.05)]]
    np.testing.assert_allclose(library(*arrays), in_numpy(text, *[array.astype(np.float64) for array in arrays]), atol=2e-6)


def read_arrays(path, name):
    """Returns dtype and shape of the prepared arrays that the steps of a program read, by name of the variant."""
    program, = json.loads(path.with_name(f"{name}.json").read_text())["programs"]
    return [{buffer["name"]: (buffer["dtype"], buffer["shape"]) for buffer in form["buffers"] if buffer["storage"] == "prepared"
             and any(buffer["name"] in step["buffers"] for step in form["steps"])} for form in [program, *program.get("variants", [])]]  # fmt: skip


def test_forms_share_panels_and_one_row_reads_the_weights(libraries):
    general, eight, one = read_arrays(libraries(CASES["f32"][0].replace("B", "b").replace("(", " [b likely [8]] (", 1), "f8_master"), "dot")
    panels = {name: array for name, array in general.items() if name.endswith("panels")}
    assert [dtype for dtype, _ in panels.values()] == ["bf16"] or [dtype for dtype, _ in panels.values()] == ["f32"]
    assert panels.items() <= eight.items() and not panels.keys() & one.keys()
    assert "f8_e4m3fn" in [dtype for dtype, _ in one.values()] and "f8_e4m3fn" not in [dtype for dtype, _ in general.values()]


def test_weights_that_no_form_reads_are_not_kept(libraries):
    path = libraries(CASES["f32"][0].replace("B", "8"), "f8_master")
    prepare = json.loads(path.with_name("dot.json").read_text())["programs"][0]["prepare"]
    # The panels hold bf16 or f32, as the CPU multiplies faster; a scale has no axes.
    assert [argument["name"] for argument in prepare["arguments"] if argument["role"] == "output" and argument["shape"]] == ["w.panels"]


@pytest.mark.parametrize("numerics, element", [("f8_weights", "bf16"), ("bf16", "bf16"), ("f32", "f32")])
def test_panels_of_narrow_weights_have_two_bytes(libraries, numerics, element):
    arrays, *_ = read_arrays(libraries(CASES["f32"][0].replace("B", "8"), numerics), "dot")
    assert [dtype for name, (dtype, _) in arrays.items() if name.endswith("panels")] == [element]


def test_symbolic_columns_are_packed_if_they_are_whole_panels(libraries):
    for text, name, packed in ((ANY, "any", False), (MULTIPLES, "multiples", True)):
        arrays, *_ = read_arrays(libraries(text.replace("B", "8")), name)
        assert any(array.endswith("panels") for array in arrays) == packed


def test_a_traceable_library_packs_nothing(libraries):
    arrays, *_ = read_arrays(libraries(CASES["f32"][0].replace("B", "8"), "f32", "--traceable"), "dot")
    assert arrays and not any(array.endswith("panels") for array in arrays)


def test_the_report_lists_packed_kernels(tmp_path):
    (tmp_path / "dot.scl").write_text(CASES["f32"][0].replace("B", "8"))
    done = subprocess.run([TOOL, "build", tmp_path / "dot.scl", "-n", "bf16", "-o", tmp_path, "--report"], capture_output=True, text=True, check=True)
    assert "\ncontract_packed_1" in done.stdout, done.stdout
    assert re.search(r"^packed once: w\.panels: (bf16|f32)\[", done.stdout, re.MULTILINE), done.stdout


LIST = """symbols: {m: {min: 1, max: 512, likely: [1]}}
kernels:
- {ops: [dot, bias, relu], name: dense, shapes: {x: [m, 70], w: [70, 90], bias: [90]}, constant: [w, bias], grad: x}
- {op: dot, name: bytes, shapes: {x: [m, 64], w: [64, 48]}, dtypes: {x: u8, w: i8}, constant: w}
- {op: dot, name: low, shapes: {x: [m, 64], w: [64, 48]}, dtypes: bf16, constant: [w]}
- op: conv_general_dilated
  name: conv
  shapes: {lhs: [m, 6, 7, 5], rhs: [3, 3, 5, 40]}
  attributes: {low: [1, 1], high: [1, 1], lhs_spec: [0, 3, 1, 2], rhs_spec: [3, 2, 0, 1], out_spec: [0, 3, 1, 2]}
  constant: [rhs]
"""


def build_list(folder, text, numerics, name):
    (folder / f"{name}.yaml").write_text(text)
    done = subprocess.run([TOOL, "build", "--operators", folder / f"{name}.yaml", "--shared", "--name", name, "-n", numerics, "-o", folder / name],
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / name / f"lib{name}.so"


@pytest.mark.parametrize("numerics", ["f32", "bf16", "f8_master", "f8_weights"])
def test_constants_of_kernel_lists(tmp_path, numerics):
    once = build_list(tmp_path, LIST, numerics, "once")
    each = build_list(tmp_path, re.sub(r"constant: (\w+|\[[^]]*\])", "scaled: false", LIST), numerics, "each")
    programs = {program["name"]: program for path in (once, each) for program in json.loads(path.with_name(f"{path.stem[3:]}.json").read_text())["programs"]}
    random = np.random.default_rng(0)
    for kernel in ("dense", "dense_grad", "bytes", "low", "conv"):
        constant, plain = Library(once, name=f"once_{kernel}"), Library(each, name=f"each_{kernel}")
        assert "prepare" in programs[f"once_{kernel}"] and "prepare" not in programs[f"each_{kernel}"], kernel
        for rows in (1, 8, 130):
            inputs = []
            for argument in programs[f"each_{kernel}"]["arguments"]:
                if argument["role"] == "output":
                    continue
                shape = [rows if extent == "m" else int(extent) for extent in argument["shape"]]
                dtype = argument["dtype"]
                numbers = random.integers(0, 99, shape) if dtype[0] in "iu" else random.standard_normal(shape)
                data = numbers.astype(DTYPES[dtype][0])
                inputs.append(ScaledArray(data, np.float32(0.5)) if argument["scaled"] else data)
            for expected, got in zip(bits(plain(*inputs)), bits(constant(*inputs)), strict=True):
                np.testing.assert_array_equal(expected, got)


def test_a_constant_of_a_list_has_no_gradient(tmp_path):
    (tmp_path / "list.yaml").write_text("- {op: dot, name: d, shapes: {x: [m, 8], w: [8, 4]}, constant: [w],\n   grad: [x, w]}\n")
    done = subprocess.run([TOOL, "build", "--operators", tmp_path / "list.yaml"], capture_output=True, text=True)
    assert done.returncode == 1
    assert re.search(r"list.yaml:2: d.grad: must name operands that are not in 'constant', got 'w'. A constant has no gradient", done.stderr), done.stderr
