"""Tests `scalide calibrate` and the policy f8_static. Usage: calibrate_test.py SCALIDE."""
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "support"))
from tool import Scratch, floats, read_safetensors, safetensors, unpack_floats  # noqa: E402

NET = """program net(x: f32[b, 4], w: f32[4, 3]) -> (y: f32[b, 3]) {
  h = relu(x)
  y = dot(h, w)
}
"""
W = [0.5, -1, 2, 0.25, 4, 1, -2, 0.5, 1, 1, -7, 0.125]
OWN = "policy: own\nextends: f8_static\ncalibration: net.yaml\n"


def inputs(*x):
    return safetensors({"x": ("F32", [1, 4], floats(*x)), "w": ("F32", [4, 3], floats(*W))})


def refused(scratch, words, *arguments):
    result = scratch.run(*arguments)
    assert result.returncode == 1 and words in result.stderr, result.stderr


def makes_a_file(scratch):
    """The amax of each operand over all batches, after relu: -9 does not count."""
    printed = scratch.succeed("calibrate", "net.scl", "-i", "a.st", "-i", "b.st", "-o", "net.yaml")
    assert printed == "net.yaml: 2 tensors from 2 files\n", printed
    assert (scratch.path / "net.yaml").read_text().splitlines()[1:] == ['program: "net"', "amax:", '  "h": 3.5', '  "w": 7'], (scratch.path / "net.yaml").read_text()


def static_scales(scratch):
    """Scales are amax / 448. Data within the calibration is rounded to e4m3; larger data saturates at the amax."""
    explained = scratch.succeed("explain", "net.scl", "-n", "own.yaml")
    assert explained.count("static (from the calibration)") == 2, explained
    scratch.write("large.st", inputs(3.5, 7, 0, 0))
    scratch.succeed("run", "net.scl", "-n", "own.yaml", "-i", "large.st", "-o", "y.st")
    y = unpack_floats(read_safetensors(scratch.path / "y.st")["y"][2])
    exact = [3.5 * (W[i] + W[3 + i]) for i in range(3)]  # 7 becomes 3.5
    bound = [3.5 * (abs(W[i]) + abs(W[3 + i])) / 16 for i in range(3)]
    assert all(abs(a - b) <= c for a, b, c in zip(y, exact, bound)), (y, exact)


def mistakes(scratch):
    refused(scratch, "'scale: {by: calibration}' needs a 'calibration'. Run 'scalide calibrate PROGRAM", "explain", "net.scl", "-n", "f8_static")
    good = (scratch.path / "net.yaml").read_text()
    for change, words in [(good.replace('"net"', "other"), "net.yaml:2: calibration.program: must be the program that is compiled, 'net', got 'other'"),
                          (good.replace('  "w": 7\n', ""), "net.yaml:2: calibration.amax: must have tensor 'w'. Run 'scalide calibrate'"),
                          (good.replace("3.5", "-1"), "net.yaml:4: calibration.amax.h: must be a finite f32 of at least 0, got -1"),
                          (good.replace("amax:", "amx:"), "net.yaml:4: unknown key 'calibration.amx'. Did you mean 'amax'?"),
                          ("", "net.yaml")]:
        scratch.write("net.yaml", change)
        refused(scratch, words, "explain", "net.scl", "-n", "own.yaml")
    scratch.write("net.yaml", good)
    scratch.write("margin.yaml", "policy: m\ncalibration: net.yaml\nrules:\n  - {op: dot, operand: any, scale: {by: calibration, margn: 1}, store: f8_e4m3fn}\n")
    refused(scratch, "margin.yaml:4: unknown attribute 'delayed_scale.margn'. Did you mean 'margin'?", "explain", "net.scl", "-n", "margin.yaml")
    scratch.write("infinite.st", inputs(float("inf"), 0, 0, 0))
    refused(scratch, "infinite.st: h: must be finite in a calibration, got an amax of inf", "calibrate", "net.scl", "-i", "infinite.st", "-o", "no.yaml")
    refused(scratch, "missing.st: cannot read this file", "calibrate", "net.scl", "-i", "missing.st", "-o", "no.yaml")
    scratch.write("empty.st", safetensors({"x": ("F32", [0, 4], b""), "w": ("F32", [4, 3], floats(*W))}))
    refused(scratch, "empty.st: x: must have elements in a calibration, got shape [0, 4]", "calibrate", "net.scl", "-i", "empty.st", "-o", "no.yaml")
    assert "no.yaml" not in scratch.files()


def names(scratch):
    """State of the program itself is not calibrated. An argument with the name of a recorded amax changes no tensor."""
    scratch.write("own.scl", NET.replace("w: f32[4, 3])", "w: f32[4, 3], w.amax: f32[], n: u32[] inout from 0)").replace("-> (y: f32[b, 3])", "-> (y: f32[b, 3], n = m)").replace("net(", "own(")
                  .replace("}", "  m = next_step(n)\n}"))  # fmt: skip
    scratch.write("own.st", safetensors({"x": ("F32", [1, 4], floats(1, 2, 3, 4)), "w": ("F32", [4, 3], floats(*W)), "w.amax": ("F32", [], floats(9))}))
    scratch.succeed("calibrate", "own.scl", "-i", "own.st", "-o", "own.amax.yaml")
    assert (scratch.path / "own.amax.yaml").read_text().splitlines()[2:] == ["amax:", '  "h": 4', '  "w": 7']


if __name__ == "__main__":
    with Scratch(sys.argv[1]) as scratch:
        scratch.write("net.scl", NET)
        scratch.write("own.yaml", OWN)
        scratch.write("a.st", inputs(1, -9, 3.5, 0))
        scratch.write("b.st", inputs(2, 0.5, 0, 0))
        makes_a_file(scratch)
        static_scales(scratch)
        mistakes(scratch)
        names(scratch)
