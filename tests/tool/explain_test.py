"""Tests what `scalide explain`, the last line of a build and the last two of `scalide inspect` report about a policy. Usage: explain_test.py SCALIDE."""
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "support"))
from tool import Scratch, floats, safetensors  # noqa: E402

PROGRAM, UNSCALED, OWN = HERE / "two_layers.scl", HERE / "unscaled.yaml", HERE / "own_formats.scl"
BUILD_LINES = {
    "f32": "f32: 0 of 2 matmuls in 8 or 16 bits; state: 2 arrays in f32; 0 % of bytes in 8 or 16 bits",
    "f8_master": "f8_master: 2 of 2 matmuls in f8, all scaled; state: 2 arrays in f32; 3 % of bytes in 8 or 16 bits",
    "f8_scaled": "f8_scaled: 2 of 2 matmuls in f8, all scaled; state: 2 arrays in f16, scaled by a bound, rounded by hashed_round and 1 of the policy; "
                 "97 % of bytes in 8 or 16 bits",
    str(UNSCALED): "unscaled: 0 of 2 matmuls in 8 or 16 bits; state: 2 arrays in f32; 1 % of bytes in 8 or 16 bits; "
                   "warning: the policy converts 2 arrays to 8 bits without a scale ('scalide explain' lists them)",
}
#: Of a program that says formats itself: they are not the policy's.
OWN_LINES = {
    "f32": "f32: 2 of 3 matmuls in f8, 2 of them in formats that the program chose itself; 0 % of bytes in 8 or 16 bits; "
           "the program itself converts 2 arrays to 8 bits without a scale",
    "f8_master": "f8_master: 3 of 3 matmuls in f8, all scaled; 60 % of bytes in 8 or 16 bits; "
                 "the program itself converts 2 arrays to 8 bits without a scale",
}
INSPECT_LINES = {
    "f32": "writes f32 9856 bytes; f32 intermediates: a 512",
    "f8_master": "writes f32 9360, bf16 256 bytes",
}

BITS = {"host": "", "opencl": "", "cuda": ", except for matmuls of cuBLASLt, where each bind may choose another algorithm: contract_1, contract_2"}


def explained(scratch):
    for policy in ("f32", "f8_master", "f8_scaled", "mxfp8", str(UNSCALED)):
        golden = (HERE / f"explain_{Path(policy).stem}.txt").read_text()
        printed = scratch.succeed("explain", PROGRAM, "--numerics", policy)
        assert printed == golden, printed


def as_json(scratch):
    rows = json.loads(scratch.succeed("explain", PROGRAM, "--numerics", UNSCALED, "--json"))
    operand = next(row for row in rows if row["place"] == "operand" and row["tensor"] == "x")
    assert operand == {"tensor": "x", "place": "operand", "use": "dot_general.lhs", "role": None, "direction": "forward", "scope": "", "format": "f8_e4m3fn", "scale": "none", "scale_operator": None,
                       "scale_state": None, "scale_block": None, "scale_format": None, "scale_text": "none",
                       "policy": {"file": str(UNSCALED), "line": 3}, "source": {"file": str(PROGRAM), "line": 3}, "safe": False,
                       "note": "warning: x (dot_general.lhs) is converted to f8_e4m3fn without a scale, so small values become zero, and large values "
                               "overflow or saturate. Add 'scale: {by: max}' to the rule"}, operand
    scaled = json.loads(scratch.succeed("explain", PROGRAM, "--numerics", "f8_master", "--json"))
    assert {row["scale_operator"] for row in scaled if row["place"] == "operand"} == {"dynamic_rescale"}, scaled
    assert all(row["safe"] for row in scaled), scaled
    delayed = json.loads(scratch.succeed("explain", PROGRAM, "--numerics", "f8_delayed", "--json"))
    operand = next(row for row in delayed if row["place"] == "operand" and row["tensor"] == "x")
    assert (operand["scale"], operand["scale_state"], operand["scale_operator"]) == ("state", "x.scale", None), operand
    blocks = json.loads(scratch.succeed("explain", PROGRAM, "--numerics", "mxfp8", "--json"))
    products = [(row["tensor"], row["use"], row["format"], row["scale"], row["scale_block"], row["scale_format"]) for row in blocks if row["place"] == "node"]
    assert products[0] == ("x", "scaled_dot_general.lhs", "f8_e4m3fn", "blocks", "32", "f8_e8m0fnu") and len(products) == 4, products
    assert all(row["safe"] for row in blocks), blocks
    scratch.write("half.yaml", "policy: half\nrules:\n  - {op: dot_general, operand: any, store: f16}\n  - {op: [gelu, relu], result: any, store: bf16, optional: true}\n")
    rows = json.loads(scratch.succeed("explain", PROGRAM, "--numerics", "half.yaml", "--json"))
    assert {(row["format"], row["safe"]) for row in rows if row["place"] == "operand"} == {("f16", False)}, rows
    assert all(row["safe"] for row in rows if row["format"] in ("f32", "bf16")), rows


def roles(scratch):
    """The use of an argument names its role, unless it is an ordinary input."""
    scratch.write("roles.scl", "program roles(x: f32[16, 16], c: f32[16, 16] constant, w: f32[16, 16] inout) -> (w = y) {\n  z = add(x, c)\n  y = mul(w, z)\n}\n")
    rows = json.loads(scratch.succeed("explain", "roles.scl", "-n", "f16_scaled", "--json"))
    assert {row["tensor"]: row["role"] for row in rows if row["place"] == "argument"} == {"x": "input", "c": "constant", "w": "inout", "rounding_step": "state"}, rows
    table = [line.split()[:3] for line in scratch.succeed("explain", "roles.scl").splitlines()[1:4]]
    assert table == [["x", "argument", "f32"], ["c", "constant", "argument"], ["w", "inout", "argument"]], table


def matmuls(scratch):
    """One row for each matmul: its formats, the rule that decides and the conditions of the rule, or why no rule matches."""
    policy = scratch.path / "ends.yaml"
    policy.write_text("policy: ends\nrules:\n  - {op: dot_general, operand: any, layer: first}\n"
                      "  - {op: dot_general, operands: any, scope: \"head/**\", replace: {scaled_dot_general: {block: 8}}, optional: true}\n")
    rows = [re.split("  +", line) for line in scratch.succeed("explain", PROGRAM, "--numerics", policy, "--matmuls").splitlines()]
    assert rows == [["tensor", "operands", "formats", "scale", "policy", "because of", "source"],
                    ["h", "x @ w", "f32 @ f32", "none", "ends.yaml:3", "operand: any, layer: first", "two_layers.scl:3"],
                    ["y", "a @ v", "f32 @ f32", "none", "default", "no rule matches, the nearest needs scope: head/**", "two_layers.scl:5"]], rows
    first = json.loads(scratch.succeed("explain", PROGRAM, "--numerics", "mxfp8", "--matmuls", "--json"))[0]
    operand = {"tensor": "x", "format": "f8_e4m3fn", "scale": "blocks", "scale_operator": None, "scale_block": "32", "scale_format": "f8_e8m0fnu"}
    assert first["operator"] == "scaled_dot_general" and first["source"] == {"file": str(PROGRAM), "line": 3}, first
    assert {key: first["operands"][0][key] for key in operand} == operand and first["operands"][0]["because_of"] == "operands: any", first
    printed = scratch.succeed("build", PROGRAM, "--numerics", policy, "-o", "ends").splitlines()
    assert printed[-1].startswith("ends: 0 of 2 matmuls in 8 or 16 bits, 1 kept by ends.yaml:3; "), printed


#: A step with a gradient: forward, backward and update, in scopes.
STEP = """program step(x: f32[4, 8], w: f32[8, 8] inout, m: f32[] inout) -> (loss: f32[], w = w1, m = m1) {
  scope "layer" {
    y = dot_general(x, w) {contract: [[1], [0]]}
    a = tanh(y)
  }
  loss = reduce_sum(a) {axes: [0, 1]}
  one = broadcast_in_dim(loss) {shape: [4, 8], dims: []} cotangent
  scope "layer" {
    da = mul(y, one) cotangent
    dw = dot_general(x, da) {contract: [[0], [0]]} cotangent
  }
  change = mul(dw, 0.1)
  w1 = sub(w, change)
  m1 = add(m, loss)
}
"""


def names_everywhere(scratch):
    """Each report names direction, scope and line of what a kernel or a conversion computes, and has the same filters."""
    step = scratch.path / "step.scl"
    step.write_text(STEP)
    rows = {(row["tensor"], row["use"] or row["place"]): (row["direction"], row["scope"]) for row in json.loads(scratch.succeed("explain", step, "-n", "f8_master", "--json"))}
    assert rows["x", "argument"] == (None, "") and rows["w", "dot_general.rhs"] == ("forward", "layer") and rows["da", "dot_general.rhs"] == ("backward", "layer")
    assert (rows["loss", "result"], rows["w", "result"], rows["m", "result"]) == (("forward", ""), ("update", ""), ("update", "")), rows
    table = [re.split("  +", line) for line in scratch.succeed("explain", step, "-n", "f8_master", "--scope", "layer", "--tensor", "*a").splitlines()]
    assert table[0][-3:] == ["direction", "scope", "source"] and [(row[0], *row[-3:]) for row in table[1:]] == [("da", "backward", "layer", "step.scl:10")], table
    matmuls = [re.split("  +", line) for line in scratch.succeed("explain", step, "--matmuls").splitlines()]
    assert [row[0] + " " + row[-3] for row in matmuls] == ["tensor direction", "y forward", "dw backward"], matmuls
    computes = re.findall(r" {5}computes +(.*)", scratch.succeed("inspect", step))
    assert any("loss (forward, step.scl:6)" in line for line in computes) and "w (update, step.scl:13)" in computes and "m (update, step.scl:14)" in computes, computes
    (only,) = re.findall(r" {5}computes +(.*)", scratch.succeed("inspect", step, "--tensor", "w"))
    assert only == "w (update, step.scl:13)", only
    scratch.write("in.safetensors", safetensors({"x": ("F32", [4, 8], floats(*range(32))), "w": ("F32", [8, 8], floats(*range(64))), "m": ("F32", [], floats(1))}))
    run = ("run", step, "-n", "f8_master", "-i", "in.safetensors", "-o", "out.safetensors")
    profile = [re.split("  +", line) for line in scratch.succeed(*run, "--profile", "1").splitlines()]
    assert profile[0][-4:] == ["computes", "direction", "scope", "source"] and any(row[-4:-2] == ["w", "update"] for row in profile), profile
    counts = [re.split("  +", line) for line in scratch.succeed(*run, "--check", "--scope", "layer").splitlines()]
    assert counts[0][-3:] == ["direction", "scope", "source"] and {tuple(row[-3:-1]) for row in counts[1:-1]} == {("forward", "layer"), ("backward", "layer")}
    scratch.succeed("build", step, "-o", "step")
    steps = json.loads((scratch.path / "step" / "step.json").read_text())["programs"][0]["steps"]
    written = {row["tensor"]: row for each in steps for row in each["writes"]}
    assert (written["w"]["direction"], written["w"]["operator"], written["w"]["source"]) == ("update", "sub", "step.scl:13"), written
    for command in (("explain", step, "-n", "f8_master"), ("inspect", step), (*run, "--check")):
        refused = scratch.run(*command, "--scope", "layers")
        assert refused.returncode == 1 and "no row of the table has a scope that matches 'layers'. Did you mean 'layer'?" in refused.stderr, refused.stderr
    refused = scratch.run("explain", step, "-n", "f8_master", "--tensor", "m", "--scope", "layer")
    assert "has both a tensor that matches 'm' and a scope that matches 'layer'. Use one of the two filters" in refused.stderr, refused.stderr
    refused = scratch.run(*run, "--scope", "layer")
    assert refused.returncode != 0 and "--check" in refused.stderr, refused.stderr


def scales_kept(scratch):
    """Behind the operator that chose it a scale is that of the values, whatever else the row computes with data."""
    policy = scratch.path / "coarse.yaml"
    policy.write_text("policy: coarse\nrules:\n  - {op: dot_general, operand: lhs, insert: [{dynamic_rescale: {norm: max}}, "
                      "{reduce_precision: {exponent_bits: 5, mantissa_bits: 2}}, {convert: f16}]}\n")
    rows = json.loads(scratch.succeed("explain", PROGRAM, "--numerics", policy, "--json"))
    assert {(row["scale"], row["scale_operator"]) for row in rows if row["place"] == "operand"} == {("values", "dynamic_rescale")}, rows


def build_lines(scratch):
    for program, lines in ((PROGRAM, BUILD_LINES), (OWN, OWN_LINES)):
        for policy, line in lines.items():
            printed = scratch.succeed("build", program, "--numerics", policy, "-o", Path(policy).stem).splitlines()
            assert printed[-1] == line, printed
    notes = scratch.succeed("explain", OWN, "--numerics", "f8_master").splitlines()[-2:]
    assert notes == [f"note: {tensor} (convert_element_type.out) is converted to f8_e4m3fn by the program itself without a scale, "
                     "so small values become zero" for tensor in "ab"], notes


def inspected(scratch):
    for policy, bytes_line in INSPECT_LINES.items():
        for target, but in BITS.items():
            printed = scratch.succeed("inspect", PROGRAM, "--numerics", policy, "--target", target).splitlines()
            assert printed[-1] == f"the same bits in every run, for every number of threads{but}", printed
            assert target != "host" or printed[-2] == bytes_line, printed


def loops(scratch):
    """Loops and branches with their steps, kernels, and arrays: a table that is updated in part has one array."""
    printed = scratch.succeed("inspect", HERE / "loops.scl")
    loop, branch = re.search(r"loops and branches:\n(.*)\n(.*)\n", printed).groups()
    assert re.fullmatch(r"  scan h \(.*loops.scl:2\): t steps, kernels \d+ to \d+ \(not one, because scatter of scatter_1 is not an elementwise "
                        r"operator, .*\), carries 32 bytes in two arrays, updates 3200 bytes in place, stacks 32\*t bytes", loop), loop
    assert re.fullmatch(r"  switch y \(.*loops.scl:10\): one of 2 branches, kernels \d+ to \d+", branch), branch
    assert "run by the host" in scratch.succeed("inspect", HERE / "loops.scl", "--target", "opencl")
    printed = scratch.succeed("inspect", HERE / "small_loop.scl")
    assert re.search(r"  while x \(.*small_loop.scl:2\): at most 100 steps, test: one kernel \(\d+\), step: one kernel \(\d+\), carries", printed), printed


def rows_and_columns(scratch):
    explained = scratch.succeed("explain", PROGRAM, "--numerics", "f8_row")
    assert "one per row (f32)" in explained and "one per column (f32)" in explained, explained


def reader_that_ends():
    """A reader such as `head` that ends early is no error, also if SIGPIPE is ignored. The status is that of SIGPIPE."""
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run([sys.argv[1], "explain", PROGRAM, "--json"], stdout=writer, stderr=subprocess.PIPE, text=True, restore_signals=False)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGPIPE, ""), ended


if __name__ == "__main__":
    with Scratch(sys.argv[1]) as scratch:
        explained(scratch)
        as_json(scratch)
        roles(scratch)
        matmuls(scratch)
        names_everywhere(scratch)
        scales_kept(scratch)
        build_lines(scratch)
        inspected(scratch)
        loops(scratch)
        rows_and_columns(scratch)
        reader_that_ends()
