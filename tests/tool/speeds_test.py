"""What `scalide devices`, `scalide build` and `scalide build --report` say about the speed of number formats on a CPU. All targets but the host
are named, so the expected lines depend on no machine.

Usage: speeds_test.py SCALIDE
"""
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "support"))
from tool import Scratch  # noqa: E402

MATMULS = """program matmuls(x: f32[128, 64], v: f32[64, 192], w: f32[192, 64], n: f32[64, 64]) -> (y: f32[128, 64], z: f32[128, 64]) {
  a = dot_general(x, v) {contract: [[1], [0]]}
  b = max(a, 0.0)
  y = dot_general(b, w) {contract: [[1], [0]]}
  z = dot_general(y, n) {contract: [[1], [0]]}
}
"""
CONVOLUTION = """program images(x: f32[2, 8, 14, 14], w: f32[16, 8, 3, 3]) -> (y: f32[2, 16, 14, 14]) {
  y = conv_general_dilated(x, w) {strides: [1, 1], low: [1, 1], high: [1, 1]}
}
"""
OWN = """program own(x: f16[128, 64], w: f16[64, 64]) -> (y: f32[128, 64]) {
  y = dot_general(x, w) {contract: [[1], [0]], preferred: f32}
}
"""
# 99 matmuls in f32 by one kernel, then one in f16.
LOOP = """program loop(h0: f32[64, 64], v: f32[64, 64], x: f16[64, 64], w: f16[64, 64]) -> (h: f32[64, 64], y: f32[64, 64]) {
  h = scan(h0, v) {length: 99} : f32[64, 64] with
    body(h: f32[64, 64] inout, v: f32[64, 64]) -> (h = next) {
      a = dot_general(h, v) {contract: [[1], [0]]}
      next = tanh(a)
    }
  y = dot_general(x, w) {contract: [[1], [0]], preferred: f32}
}
"""
# Keeps the last matmul, which has one seventh of all operations.
KEPT = "policy: kept\nextends: bf16\nrules:\n  - {op: dot_general, operand: any, layer: last}\n"
ZEN4 = "x86-64-linux-avx-avx2-avx512-avx512_skylake-avx512_cannonlake-avx512_zen4-f16c-fma-sse41"
MEASURED = r"EPYC Zen 4, 20\d\d-\d\d-\d\d"
NO_FORMAT = "No format of 8 or 16 bits is faster there: use f32, or build for a CPU with AMX (--target x86-64-v4+amx)"


def build(scratch, program, policy, target, *options):
    scratch.write("p.scl", program)
    return scratch.succeed("build", "p.scl", "-o", "out", "--numerics", policy, "--target", target, *options).splitlines()


def notes(lines):
    return [line for line in lines if " is no faster than f32 on " in line]


def decoded_formats_are_named(scratch):
    for policy, form in (("bf16", "bf16"), ("f16_scaled", "f16"), ("f8_master", "f8"), ("mxfp8", "f8")):
        (note,) = notes(build(scratch, MATMULS, policy, "x86-64-v3"))
        expected = rf"{policy} is no faster than f32 on x86-64-v3 in 3 of 3 matmuls \(100 % of FLOPs\): {form} \(decoded to f32, FMA; 0\.99 times the "
        assert re.fullmatch(expected + rf"speed of f32, {MEASURED}\)\. {re.escape(NO_FORMAT)}", note), note


def faster_formats_are_quiet(scratch):
    for policy, target in (("f32", "x86-64-v3"), ("bf16", ZEN4), ("f8_master", ZEN4), ("mxfp8", ZEN4), ("bf16", "x86-64-v4+amx")):
        assert notes(build(scratch, MATMULS, policy, target)) == [], (policy, target)
    (note,) = notes(build(scratch, MATMULS, "f16_scaled", ZEN4))
    assert note.endswith(". Faster there: matmuls in bf16 2.00, f8 2.00"), note
    assert notes(build(scratch, OWN, "f32", "x86-64-v3")) == [], "the program chose f16 itself"


def shares_count_operations(scratch):
    scratch.write("kept.yaml", KEPT)
    (note,) = notes(build(scratch, MATMULS, "kept.yaml", "x86-64-v3"))
    assert note.startswith("kept is no faster than f32 on x86-64-v3 in 2 of 3 matmuls (86 % of FLOPs): bf16 (decoded"), note
    report = build(scratch, LOOP, "f32", "x86-64-v3", "--report")
    assert "1 matmul (99 % of FLOPs) in f32 (FMA)" in report and any(line.startswith("1 matmul (1 % of FLOPs) in f16 (") for line in report), report


def each_cpu_has_a_note(scratch):
    lines = notes(build(scratch, MATMULS, "bf16", "x86-64-v2,x86-64-v3,x86-64-v4+amx"))
    assert [re.search("f32 on (.*?) in 3 of 3 matmuls", line)[1] for line in lines] == ["x86-64-v2", "x86-64-v3"], lines
    assert "bf16 (decoded to f32, mul and add; 0.99 times" in lines[0], lines


def convolutions_are_named(scratch):
    (note,) = notes(build(scratch, CONVOLUTION, "bf16", ZEN4))
    assert "in 1 of 1 convolution (100 % of FLOPs): bf16 convolutions (decoded to f32, FMA; 1.00 times" in note, note
    assert note.endswith("). Convolutions are computed in f32 with every policy"), note


def reports_have_each_form(scratch):
    report = build(scratch, MATMULS, "bf16", ZEN4, "--report")
    (line,) = [line for line in report if "of FLOPs" in line]
    assert re.fullmatch(rf"3 matmuls \(100 % of FLOPs\) in bf16 \(vdpbf16ps; 2\.00 times the speed of f32, {MEASURED}\)", line), line
    report = build(scratch, MATMULS, "bf16", "x86-64-v4+amx", "--report")
    (line,) = [line for line in report if "of FLOPs" in line]
    assert re.match(r"3 matmuls \(100 % of FLOPs\) in bf16 \(AMX tdpbf16ps; 7\.30 times the speed of f32, Xeon with AMX, ", line), line
    assert "1 matmul (100 % of FLOPs) in f16 (decoded to f32, FMA; 0.99 times the speed of f32" in "\n".join(
        build(scratch, OWN, "f32", "x86-64-v3", "--report"))
    assert "3 matmuls (100 % of FLOPs) in f32 (FMA)" in build(scratch, MATMULS, "f32", "x86-64-v3", "--report")


def unknown_speeds_are_unknown(scratch):
    scratch.write("tiles.yaml", re.sub(r"- kind: \w+\n(?:  features: .*\n)?  rates: (?:.*\n(?!-))*.*\n", "", TILES.read_text()))
    assert "rates: {" not in (scratch.path / "tiles.yaml").read_text()
    scratch.environment["SCALIDE_TILES"] = str(scratch.path / "tiles.yaml")
    (note,) = notes(build(scratch, MATMULS, "bf16", "x86-64-v3"))
    assert "bf16 (decoded to f32, FMA; unknown speed). " in note, note
    scratch.environment["SCALIDE_HOST_TARGET"] = ZEN4
    assert re.search(r"\nbf16 +vdpbf16ps +unknown\n", scratch.succeed("devices", "cpu"))
    del scratch.environment["SCALIDE_TILES"], scratch.environment["SCALIDE_HOST_TARGET"]


def devices_have_speeds(scratch):
    first, target, *table = scratch.succeed("devices", "cpu").splitlines()
    assert re.fullmatch(r"cpu 0: .+, \d+ hardware threads, caches .+", first) and target.startswith("target host: "), (first, target)
    assert table[0].split() == "matmuls in by times the speed of f32".split() and [line.split()[0] for line in table[1:]] == FORMATS, table
    for name, words in (("x86-64-v3", ["FMA", "decoded to f32, FMA", "decoded to f32, FMA", "decoded to f32, FMA", "vpmaddwd"]),
                        ("x86-64-v4+amx", ["FMA", "AMX tdpbf16ps", "decoded to f32, FMA", "AMX tdpbf16ps", "AMX tdpbssd"]),
                        (ZEN4, ["FMA", "vdpbf16ps", "decoded to f32, FMA", "vdpbf16ps", "vpdpbusd"])):
        scratch.environment["SCALIDE_HOST_TARGET"] = name
        rows = [re.split("  +", line) for line in scratch.succeed("devices", "cpu").splitlines()[3:]]
        assert [row[1] for row in rows] == words, (name, rows)
        assert all(re.fullmatch(r"1|unknown|\d+\.\d\d \(.+, 20\d\d-\d\d-\d\d\)", row[2]) for row in rows), rows
        del scratch.environment["SCALIDE_HOST_TARGET"]


FORMATS = ["f32", "bf16", "f16", "f8", "i8"]
TILES = Path(__file__).parents[2] / "schedules/tiles.yaml"

if __name__ == "__main__":
    with Scratch(sys.argv[1]) as scratch:
        for variable in ("SCALIDE_TILES", "SCALIDE_HOST_TARGET"):
            scratch.environment.pop(variable, None)
        for test in (decoded_formats_are_named, faster_formats_are_quiet, shares_count_operations, each_cpu_has_a_note, convolutions_are_named, reports_have_each_form,
                     unknown_speeds_are_unknown, devices_have_speeds):
            test(scratch)
