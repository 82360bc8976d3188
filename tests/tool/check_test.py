"""`scalide run --check`: each count, on numbers that are chosen for it; and what `--check-finite` names. Usage: check_test.py SCALIDE."""
import json
import math
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "support"))
from tool import Scratch, floats, read_safetensors, safetensors  # noqa: E402

ROUNDED = """program rounded(x: f32[9]) -> (y: f8_e4m3fn[9], z: f8_e5m2[9], b: bf16[9]) {
  y = convert_element_type(x) {dtype: f8_e4m3fn}
  z = convert_element_type(x) {dtype: f8_e5m2}
  b = convert_element_type(x) {dtype: bf16}
}
"""
#: 0 and infinity do not change. e4m3fn ends at 448, so 460 rounds to it. e5m2 ends at 57344, and -62000 is beyond it. Normal numbers begin at 2^-6 and 2^-14.
X = [0, 1, 1e-9, -1e-9, 500, -62000, math.inf, 0.002, 460]
STATE = """program step(s: f16[4] inout, m: f32[4] inout, t: f16[2, 2] inout, n: i32[] inout, u: f32[4]) -> (s = s_new, m = m_new, t = t_new, n = n_new) {
  wide = convert_element_type(s) {dtype: f32}
  s_sum = sub(wide, u)
  s_new = convert_element_type(s_sum) {dtype: f16}
  m_new = sub(m, u)
  moved = reshape(t) {shape: [4]}
  t_wide = convert_element_type(moved) {dtype: f32}
  t_sum = sub(t_wide, u)
  t_narrow = convert_element_type(t_sum) {dtype: f16}
  t_new = reshape(t_narrow) {shape: [2, 2]}
  n_new = add(n, 1)
}
"""
#: To 1: below half a unit of f16 and of f32; nothing; below half a unit of f16 alone; more than either.
UPDATES = [1e-9, 0, 1e-5, 0.5]
SCALED = """program scaled(w: f32[4] inout, g: f32[4]) -> (w = w_new) {
  w_new = sub(w, g)
}
"""


def halves(*numbers):
    import struct

    return struct.pack(f"<{len(numbers)}e", *numbers)


def checked(scratch, text, arrays, *options):
    """The counts as JSON; the results are those of the interpreter in mode stored."""
    (scratch.path / "p.scl").write_text(text)
    scratch.write("in.safetensors", safetensors(arrays))
    command = ("run", "p.scl", "-i", "in.safetensors", *options)
    found = json.loads(scratch.succeed(*command, "-o", "checked.safetensors", "--check", "--json"))
    scratch.succeed(*command, "-o", "stored.safetensors", "--interpret", "stored")
    assert read_safetensors(scratch.path / "checked.safetensors") == read_safetensors(scratch.path / "stored.safetensors")
    return found


def roundings(scratch):
    found = checked(scratch, ROUNDED, {"x": ("F32", [9], floats(*X))})
    rows = [tuple(row[key] for key in ("tensor", "format", "elements", "zeros", "saturated", "subnormals")) for row in found["roundings"]]
    assert rows == [("x", "f8_e4m3fn", 9, 2, 2, 1), ("x", "f8_e5m2", 9, 2, 1, 0), ("x", "bf16", 9, 0, 0, 0)], rows
    assert [row["source"]["line"] for row in found["roundings"]] == [2, 3, 4] and found["states"] == []
    printed = scratch.succeed("run", "p.scl", "-i", "in.safetensors", "-o", "out.safetensors", "--check").splitlines()
    assert printed[0].split() == ["rounded", "format", "elements", "to", "zero", "saturated", "subnormal", "source"], printed
    assert printed[1].split() == ["x", "f8_e4m3fn", "9", "2", "2", "1", "p.scl:2"], printed


def states(scratch):
    ones = {"s": ("F16", [4], halves(1, 1, 1, 1)), "t": ("F16", [2, 2], halves(1, 1, 1, 1)), "m": ("F32", [4], floats(1, 1, 1, 1))}
    found = checked(scratch, STATE, {**ones, "n": ("I32", [], bytes(4)), "u": ("F32", [4], floats(*UPDATES))})
    rows = {row["tensor"]: (row["format"], row["elements"], row["unmoved"]) for row in found["states"]}
    assert rows == {"s": ("f16", 4, 2), "m": ("f32", 4, 1), "t": ("f16", 4, 2)}, rows
    none = checked(scratch, STATE, {**ones, "n": ("I32", [], bytes(4)), "u": ("F32", [4], floats(0, 0, 0, 0))})
    assert [(row["unmoved"], row["zero_updates"]) for row in none["states"]] == [(0, 4)] * 3, none


def scaled_state(scratch):
    """Data and scales change, values do not: random rounding keeps most elements where an update is a hundredth of a unit."""
    count = 4096
    w = {"w.data": ("F16", [count], halves(*[1024 + i % 64 for i in range(count)])), "w.scale": ("F32", [], floats(2.0**-10))}
    text = SCALED.replace("[4]", f"[{count}]")
    for update, least, most in ((2.0**-17, 0.9 * count, count), (2.0**-10, 0, 0), (0, 0, 0)):
        found = checked(scratch, text, {**w, "g": ("F32", [count], floats(*[update] * count))}, "--numerics", "f16_scaled")
        (state,) = found["states"]
        assert state["elements"] == count and least <= state["unmoved"] <= most, (update, state)


def first_non_finite(scratch):
    (scratch.path / "p.scl").write_text("program p(x: f32[4, 8], w: f32[8, 4]) -> (y: f32[4, 4]) {\n  y = dot_general(x, w) {contract: [[1], [0]]}\n}\n")
    for x, w, words in ((math.inf, 1.0, "first non-finite: norm_max of x (p.scl:1), step 0 (full_1); it reads x, which is not finite"),
                        (3e38, 3e38, "first non-finite: y (p.scl:2), step 1 (contract_1)"), (1.0, 1.0, "first non-finite: none (all results are finite)")):  # fmt: skip
        scratch.write("in.safetensors", safetensors({"x": ("F32", [4, 8], floats(*[x] * 32)), "w": ("F32", [8, 4], floats(*[w] * 32))}))
        printed = scratch.succeed("run", "p.scl", "-n", "f16_master", "-i", "in.safetensors", "-o", "out.safetensors", "--check-finite").splitlines()
        assert printed[0] == words, printed


LOOP = """program p(w: f32[4] inout, m: f32[4] inout, xs: f32[70, 4]) -> (w = fresh, m = moved, ys: f32[70, 4]) {
  fresh, ys = scan(w, xs) {length: 70} : f32[4], f32[70, 4] with
    body(w: f32[4] inout, x: f32[4] each) -> (w = next, y: f32[4] = wide) {
      narrow = convert_element_type(x) {dtype: f8_e4m3fn, overflow: saturate}
      wide = convert_element_type(narrow) {dtype: f32}
      half = mul(w, 0.5)
      next = add(half, wide)
    }
  moved = add(m, 1e-9)
}
"""


def loops(scratch):
    """Counts in a loop are of all steps. Element 1 is too large from step 60 on. An update that is made in a loop has no exact value."""
    rows = [[1.0, 1000.0 if step >= 60 else 2.0, 1e-6 if step == 7 else 1.0, 0.0] for step in range(70)]
    ones = ("F32", [4], floats(1, 1, 1, 1))
    found = checked(scratch, LOOP, {"w": ones, "m": ones, "xs": ("F32", [70, 4], floats(*[x for row in rows for x in row]))})
    (row,) = found["roundings"]
    assert (row["tensor"], row["elements"], row["zeros"], row["saturated"], row["steps"], row["first_step"]) == ("x", 280, 1, 10, 70, 7), row
    assert [(state["tensor"], state["unmoved"]) for state in found["states"]] == [("m", 4)] and found["uncompared"] == ["w"], found
    printed = scratch.succeed("run", "p.scl", "-i", "in.safetensors", "-o", "out.safetensors", "--check")
    assert "not compared: w" in printed and "first with zero or saturated" in printed, printed


def non_finite_in_loops(scratch):
    """The step of the loop in which the first infinity comes up, compiled and interpreted."""
    (scratch.path / "p.scl").write_text("program p(h: f32[4], xs: f32[70, 4]) -> (h1: f32[4]) {\n  h1 = scan(h, xs) {length: 70} with\n"
                                        "    body(h: f32[4] inout, x: f32[4] each) -> (h = after) {\n      q = div(1.0, x)\n      after = add(h, q)\n    }\n}\n")  # fmt: skip
    xs = [0.0 if i == 4 * 66 + 1 else 1.0 for i in range(280)]
    scratch.write("in.safetensors", safetensors({"h": ("F32", [4], floats(1, 1, 1, 1)), "xs": ("F32", [70, 4], floats(*xs))}))
    for mode, words in (((), "step 0 (map_1), in step 66 of scan h1"), (("--interpret", "stored"), "element [1] is inf, in step 66 of its loop")):
        printed = scratch.succeed("run", "p.scl", "-i", "in.safetensors", "-o", "out.safetensors", "--check-finite", *mode).splitlines()
        assert printed[0].startswith("first non-finite: ") and words in printed[0], printed


def main(tool):
    with Scratch(tool) as scratch:
        for part in (roundings, states, scaled_state, first_non_finite, loops, non_finite_in_loops):
            part(scratch)


if __name__ == "__main__":
    main(*sys.argv[1:])
