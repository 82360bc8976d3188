"""`scalide compare`: the error of each tensor between two policies, which tensor it names, and true reruns. Usage: compare_test.py SCALIDE."""
import json
import math
import struct
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "support"))
from tool import Scratch, floats, read_safetensors, safetensors, unpack_floats  # noqa: E402

#: Scores of attention, with a softmax and a value. Kernels compute q, k and the transposed k in other shapes, and have no names for them.
ATTENTION = """program attention(x: f32[2, 8, 16], wq: f32[16, 16], wk: f32[16, 16]) -> (loss: f32[]) {
  scope "scores" {
    q = dot_general(x, wq) {contract: [[2], [0]]}
    k = dot_general(x, wk) {contract: [[2], [0]]}
    s = dot_general(q, k) {contract: [[2], [2]], batch: [[0], [0]]}
  }
  scope "head" {
    a = tanh(s)
    p = mul(a, a)
    loss = reduce_sum(p) {axes: [0, 1, 2]}
  }
}
"""
E5M2 = """policy: e5m2_scores
doc: The scores in e5m2.
extends: f8_master
rules:
  - {op: dot_general, operand: primal, scope: "scores", scale: {by: max}, store: f8_e5m2}
"""
F16 = """policy: f16_scores
doc: The scores in f16, without a scale.
rules:
  - {op: dot_general, result: any, scope: "scores", store: f16}
"""
KEPT = """policy: kept
doc: f8 with wide scores.
extends: f8_master
rules:
  - {keep: "scores/**"}
"""
WHILE = """program settle(w: f32[8, 8], h0: f32[8]) -> (h: f32[8], size: f32[]) {
  h, size = while(w, h0, 1.0) {max_steps: 100} : f32[8], f32[] with
    test(w: f32[8, 8], h: f32[8], size: f32[]) -> (more: bool[]) {
      more = gt(size, 0.01)
    },
    body(w: f32[8, 8], h: f32[8] inout, size: f32[] inout) -> (h = next, size = largest) {
      p = dot_general(w, h) {contract: [[1], [0]]}
      next = tanh(p)
      d = sub(next, h)
      m = abs(d)
      largest = reduce_max(m) {axes: [0]}
    }
}
"""
LOOP = """program recur(w: f32[8, 8], h0: f32[8]) -> (h: f32[8]) {
  h = fori(w, h0) {lower: 0, upper: 40} : f32[8] with
    body(step: i32[] step, w: f32[8, 8], h: f32[8] inout) -> (h = next) {
      p = dot_general(w, h) {contract: [[1], [0]]}
      next = tanh(p)
    }
}
"""
SCALED = """program update(w: f32[16, 16] inout, x: f32[4, 16]) -> (y: f32[4, 16], w = w_new) {
  y = dot_general(x, w) {contract: [[1], [0]]}
  w_new = mul(w, 0.9)
}
"""


def numbers(count, seed, size=1.0):
    """Numbers between -size and size, from a small generator with the same bits everywhere."""
    made = []
    for _ in range(count):
        seed = (seed * 1103515245 + 12345) % 2**31
        made.append(size * (seed / 2**30 - 1))
    return made


def array(shape, seed, size=1.0):
    return ("F32", shape, floats(*numbers(math.prod(shape), seed, size)))


def attention(scratch, size=1.0):
    scratch.write("p.scl", ATTENTION)
    scratch.write("in.safetensors", safetensors({"x": array([2, 8, 16], 1), "wq": array([16, 16], 2, size), "wk": array([16, 16], 3, size)}))


def compare(scratch, first, second, *options):
    return json.loads(scratch.succeed("compare", "p.scl", "-i", "in.safetensors", "-n", first, "-n", second, "--json", *options))


def rows_of(found, tensor, copy=None):
    return [row for row in found["tensors"] if row["tensor"] == tensor and copy in (None, row["copy"])]


def stored(scratch, policy):
    """The results of the interpreter under a policy."""
    scratch.succeed("run", "p.scl", "-i", "in.safetensors", "-n", policy, "-o", "out.safetensors", "--interpret", "stored")
    return {name: unpack_floats(content) for name, (dtype, _, content) in read_safetensors(scratch.path / "out.safetensors").items() if dtype == "F32"}


def healthy(scratch):
    """Each policy rounds as its formats explain: nothing is beyond its limit, and the results have the error of the interpreter's results."""
    attention(scratch)
    exact = stored(scratch, "f32")["loss"][0]
    for policy in ("bf16", "f16_master", "f8_master", "f8_delayed", "f8_row", "f8_block", "mxfp8"):
        found = compare(scratch, "f32", policy)
        assert found["first_beyond"] is None, (policy, found["verdict"])
        (loss,) = rows_of(found, "loss")
        expected = abs(stored(scratch, policy)["loss"][0] - exact) / exact
        assert math.isclose(loss["error"], expected, rel_tol=1e-6), (policy, loss["error"], expected)
        names = {row["tensor"] for row in found["tensors"]} | set(found["uncompared"])
        assert {"q", "k", "s", "a", "p", "loss"} <= names, (policy, names)
        for tensor in ("q", "k", "s"):  # the kernels have them in other shapes and without names
            (row,) = rows_of(found, tensor, copy=False)
            assert 0 < row["error"] < row["limit"] and row["scope"] == "scores" and row["operator"] == "dot_general", (policy, row)


def names(scratch):
    """A row has the numbers of the tensor that it names: q, k and the scores, as Python computes them."""
    attention(scratch)
    x, wq, wk = numbers(256, 1), numbers(256, 2), numbers(256, 3)
    q, k = ([sum(x[16 * row + i] * w[16 * i + column] for i in range(16)) for row in range(16) for column in range(16)] for w in (wq, wk))
    scores = [sum(q[16 * (8 * b + i) + e] * k[16 * (8 * b + j) + e] for e in range(16)) for b in range(2) for i in range(8) for j in range(8)]
    for row in compare(scratch, "f32", "mxfp8")["tensors"]:
        expected = {"q": q, "k": k, "s": scores, "x": x, "wq": wq, "wk": wk}.get(row["tensor"])
        if expected is None:
            continue
        assert math.isclose(row["amax"][0], max(map(abs, expected)), rel_tol=1e-5 if not row["copy"] else 0.1), row
        if not row["copy"] and row["error"]:
            place = (row["index"][0] * row["shape"][1] + row["index"][1]) * row["shape"][2] + row["index"][2]
            assert math.isclose(row["elements_there"][0], expected[place], rel_tol=1e-4, abs_tol=1e-5), row


def copies(scratch):
    """A copy in f8 has about the error that its format makes, and names its rule. The kernel multiplies data and scale; the table does, too."""
    attention(scratch)
    for row in compare(scratch, "f32", "f8_master")["tensors"]:
        if row["copy"] and row["formats"][1] == "f8_e4m3fn":
            assert 0.01 < row["error_of_rounding"] < 0.04, row
            assert Path(row["policy"]["file"]).name == "f8_master.yaml" and row["policy"]["line"] > 0, row
            assert math.isclose(row["amax"][1], row["amax"][0], rel_tol=0.1), row


def coarse_rule(scratch):
    """A rule that puts a scope into e5m2: the first tensor that differs, and the rule."""
    attention(scratch)
    scratch.write("e5m2.yaml", E5M2)
    found = compare(scratch, "f8_master", "e5m2.yaml")
    different = next(row for row in found["tensors"] if row["error"] != 0)
    assert different["tensor"] == "x" and different["formats"][1] == "f8_e5m2" and different["policy"] == {"file": "e5m2.yaml", "line": 5}, different
    assert "The first tensor that differs is the copy of x in f8_e5m2 (an argument in scores, p.scl:3), by e5m2.yaml:5" in found["verdict"]
    against_f32 = compare(scratch, "f32", "e5m2.yaml")["verdict"]
    assert "The largest error of a single rounding in the forward pass is" in against_f32 and "by e5m2.yaml:5" in against_f32, against_f32


def saturation(scratch):
    """f16 without a scale: the scores are the first beyond the limit, their inputs are fine, and the index is that of the largest number."""
    attention(scratch, size=200.0)
    scratch.write("f16.yaml", F16)
    found = compare(scratch, "f32", "f16.yaml")
    first = found["tensors"][found["first_beyond"]]
    assert (first["tensor"], first["copy"], first["policy"]) == ("s", True, {"file": "f16.yaml", "line": 4}), first
    assert first["saturated"] > 0 and abs(first["elements_there"][1]) == 65504 and first["error_of_inputs"] < 0.001, first
    assert len(first["index"]) == 3 and first["amax"][0] > 65504 == first["amax"][1], first
    assert "by the rounding to f16, by f16.yaml:4: " in found["verdict"] and "elements saturate" in found["verdict"], found["verdict"]


def infinite(scratch):
    """An infinity under one policy only is beyond any limit, also a large one. The same infinities under both are equal."""
    attention(scratch)
    x = numbers(256, 1)
    x[37] = math.inf
    arrays = {"x": ("F32", [2, 8, 16], floats(*x)), "wq": array([16, 16], 2), "wk": array([16, 16], 3)}
    scratch.write("in.safetensors", safetensors(arrays))
    found = compare(scratch, "f32", "f16_master")
    assert all(row["error"] == 0 for row in rows_of(found, "x", copy=False))
    assert "Under both policies, the first tensor with an infinity or a NaN is x (an argument)." in found["verdict"], found["verdict"]
    attention(scratch, size=3e19)  # q and k about 1e20, so the scores overflow in f32
    scratch.write("f16.yaml", F16)
    found = compare(scratch, "f32", "f16.yaml", "--limit", "1e30")
    first = found["tensors"][found["first_beyond"]]
    assert first["tensor"] == "s" and first["error"] == "inf" and first["non_finite"] > 0, first
    assert f"{first['non_finite']} of 128 elements differ in an infinity or a NaN" in found["verdict"], found["verdict"]


def loop(scratch):
    """Values of a loop are compared in its last step, and the report says so."""
    scratch.write("p.scl", LOOP)
    scratch.write("in.safetensors", safetensors({"w": array([8, 8], 4), "h0": array([8], 5)}))
    found = compare(scratch, "f32", "f8_master")
    (h,) = [row for row in found["tensors"] if row["tensor"] == "h"]
    exact, rounded = stored(scratch, "f32")["h"], stored(scratch, "f8_master")["h"]
    expected = math.dist(exact, rounded) / math.hypot(*exact)
    assert math.isclose(h["error"], expected, rel_tol=1e-5), (h, expected)
    assert h["limit"] == 0.25, h
    text = scratch.succeed("compare", "p.scl", "-i", "in.safetensors", "-n", "f32", "-n", "f8_master")
    assert "tensors of a loop are compared in its last step" in text, text


def carried(scratch):
    """A value that a loop carries depends on the formats of the steps before it, so its limit is the limit of the coarsest format."""
    scratch.write("p.scl", WHILE)
    scratch.write("in.safetensors", safetensors({"w": array([8, 8], 4, 0.3), "h0": array([8], 5)}))
    found = compare(scratch, "f32", "f8_master")
    assert found["first_beyond"] is None or found["tensors"][found["first_beyond"]]["error"] > 0.25, found["verdict"]
    (h,) = rows_of(found, "h", copy=False)
    assert h["limit"] == 0.25 and 0 < h["error"] < 0.25, h


def scaled_state(scratch):
    """A policy that stores parameters as scaled arrays takes plain ones, and the other way round."""
    scratch.write("p.scl", SCALED)
    scratch.write("in.safetensors", safetensors({"w": array([16, 16], 6), "x": array([4, 16], 7)}))
    found = compare(scratch, "f32", "f16_scaled")
    (new,) = [row for row in found["tensors"] if row["update"] and not row["copy"]]
    assert new["tensor"] == "w" and 0 < new["error"] < new["limit"], new
    data = ("F16", [16, 16], struct.pack("<256e", *numbers(256, 6)))
    scratch.write("in.safetensors", safetensors({"w.data": data, "w.scale": ("F32", [], floats(4)), "x": array([4, 16], 7)}))
    found = compare(scratch, "f32", "f16_scaled")
    (w,) = [row for row in rows_of(found, "w") if row["operator"] is None]
    assert w["error"] < 1e-3 and math.isclose(w["amax"][0], 4 * max(map(abs, numbers(256, 6))), rel_tol=1e-3), w


def delayed(scratch):
    """A delayed scale in the file decides the numbers of a copy: with a scale of 2^-8, nothing saturates; with 2^-12, everything large does."""
    attention(scratch)
    arrays = {"x": array([2, 8, 16], 1), "wq": array([16, 16], 2), "wk": array([16, 16], 3)}
    for scale, saturated in ((2.0**-8, 0), (2.0**-12, 1)):
        scratch.write("in.safetensors", safetensors(arrays | {"x.scale": ("F32", [], floats(scale))}))
        row = next(row for row in compare(scratch, "f32", "f8_delayed", "--tensor", "x")["tensors"] if row["copy"])
        assert (row["saturated"] > 0) == saturated and math.isclose(row["amax"][1], min(row["amax"][0], 448 * scale), rel_tol=0.1), row


def bisection(scratch):
    """Each line is a true run: the result of the policy that a user would write for it."""
    attention(scratch)
    scratch.write("kept.yaml", KEPT)
    found = compare(scratch, "f32", "f8_master", "--bisect")["bisection"]
    by_name = {(each["kind"], each["name"]): each for each in found["candidates"]}
    assert found["result"] == "loss" and found["reference"] == stored(scratch, "f32")["loss"][0]
    assert found["tested"] == stored(scratch, "f8_master")["loss"][0]
    scores, head = by_name["scope", "scores"], by_name["scope", "head"]
    assert scores["result"] == stored(scratch, "kept.yaml")["loss"][0], scores
    assert scores["share"] > 0.9 and head["share"] == 0, (scores, head)
    assert {"x", "q", "k", "wq", "wk"} == {name for kind, name in by_name if kind == "tensor"}
    assert len({by_name["tensor", name]["result"] for name in ("x", "q", "wk")}) == 3  # each keeps another tensor
    rules = [each for each in found["candidates"] if each["kind"] == "rule"]
    assert any(each["rule"] and each["share"] > 0.9 for each in rules), rules
    assert found["runs"] == len(found["candidates"])
    blocks = compare(scratch, "f32", "f8_block", "--bisect")["bisection"]["candidates"]  # its rules replace matmuls
    best = next(each for each in blocks if each["kind"] == "rule" and Path(each["rule"]["file"]).name == "f8_block.yaml")
    assert best["share"] > 0 and not [each for each in blocks if each["kind"] == "tensor"], blocks
    text = scratch.succeed("compare", "p.scl", "-i", "in.safetensors", "-n", "f32", "-n", "f8_master", "--bisect", "loss")
    assert f"{found['runs']} runs" in text and "kept wide" in text, text


def filters(scratch):
    attention(scratch)
    assert {row["tensor"] for row in compare(scratch, "f32", "f8_master", "--tensor", "q")["tensors"]} == {"q"}
    assert {row["scope"] for row in compare(scratch, "f32", "f8_master", "--scope", "head/**")["tensors"]} == {"head"}
    text = scratch.succeed("compare", "p.scl", "-i", "in.safetensors", "-n", "f32", "-n", "f8_master", "--limit", "0.001")
    assert text.count("\n>  ") == 1 and "The first tensor beyond its limit is the copy of x in" in text, text


def mistakes(scratch):
    attention(scratch)

    def fails(message, *options):
        result = scratch.run("compare", "p.scl", "-i", "in.safetensors", *options)
        assert result.returncode == 1 and message in result.stderr, (result.returncode, result.stderr)

    both = ("-n", "f32", "-n", "f8_master")
    fails("--numerics: must be given twice, for the reference and for the policy under test, got 1 of them. Example: -n f32 -n f8_master", "-n", "f32")
    fails("--numerics: must be two different policies, got 'f32' twice", "-n", "f32", "-n", "f32")
    fails("unknown policy 'f8_mastre'. Did you mean 'f8_master'?", "-n", "f32", "-n", "f8_mastre")
    fails("unknown tensor 'qq'. Did you mean 'wq'?", *both, "--tensor", "qq")
    fails("unknown scope 'heads'. Did you mean 'head'?", *both, "--scope", "heads")
    fails("cannot compare tensor 'q' in scope 'head': no tensor of this name is in this scope. Leave out --tensor or --scope", *both, "--tensor", "q",
          "--scope", "head")  # fmt: skip
    fails("unknown result 'los'. Did you mean 'loss'?", *both, "--bisect", "los")
    scratch.write("same.yaml", "policy: same\ndoc: Changes nothing here.\nrules:\n  - {op: exp, result: any, store: bf16, optional: true}\n")
    fails("cannot bisect result 'loss': it is equal under both policies. All results are equal", "-n", "f32", "-n", "same.yaml", "--bisect")
    text = scratch.succeed("compare", "p.scl", "-i", "in.safetensors", "-n", "f32", "-n", "same.yaml")
    assert text == "both policies give the same bits in all tensors\n", text
    scratch.write("in.safetensors", safetensors({"x": array([2, 8, 16], 1)}))
    fails("the file has no array for the argument 'wq'. It has: x", *both)


def main(tool):
    with Scratch(tool) as scratch:
        for test in (healthy, names, copies, coarse_rule, saturation, infinite, loop, carried, scaled_state, delayed, bisection, filters, mistakes):
            test(scratch)
            print(f"{test.__name__}: ok", flush=True)


main(sys.argv[1])
