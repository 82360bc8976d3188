"""`scalide run` and `scalide build` know the parts of a scaled array by their place, never by a name: plain arguments may be called like parts.

Usage: names_test.py SCALIDE
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "support"))
from tool import Scratch, floats, read_safetensors, safetensors, unpack_floats  # noqa: E402

PAIR = """program pair(q.data: f32[3], q.scale: f32[]) -> (y: f32[3], low: f32[], r.data: f32[3] = q.data, r.scale: f32[] = q.scale) {
  m = abs(q.scale)
  y = mul(q.data, m)
  low = min(q.scale, 0)
}
"""
BESIDE = """program beside(w: f32[2] scaled inout, w.scale: f32[], w.data: f32[2]) -> (w = n, y: f32[2] scaled, y.scale: f32[] = a) {
  n = neg(w)
  y = mul(w, w.data)
  a = abs(w.scale)
}
"""
MODES = {"compiled": (), "stored": ("--interpret", "stored"), "real": ("--interpret", "real")}


def results(scratch, program, mode):
    scratch.succeed("run", f"{program}.scl", "-i", f"{program}.safetensors", "-o", f"{program}_out.safetensors", *MODES[mode])
    return {name: unpack_floats(content) for name, (_, _, content) in read_safetensors(scratch.path / f"{program}_out.safetensors").items()}


def two_plain_arguments(scratch):
    scratch.write("pair.scl", PAIR)
    scratch.write("pair.safetensors", safetensors({"q.data": ("F32", [3], floats(1, 2, 3)), "q.scale": ("F32", [], floats(-2))}))
    for mode in MODES:
        expected = {"y": (2, 4, 6), "low": (-2,), "r.data": (1, 2, 3), "r.scale": (-2,)}
        assert results(scratch, "pair", mode) == expected, mode
    scratch.succeed("build", "pair.scl", "-o", "out")
    header = next((scratch.path / "out").rglob("*.h")).read_text()
    for member in ("q_data; /* f32[3], read", "q_scale; /* f32[], read", "r_data; /* f32[3], written", "r_scale; /* f32[], written"):
        assert f"scalide_array {member} */" in header, header


def plain_arguments_beside_a_scaled_one(scratch):
    """In a file the parts give way: the names of plain arrays are their own."""
    scratch.write("beside.scl", BESIDE)
    tensors = {"w!data": ("F32", [2], floats(1, 2)), "w!scale": ("F32", [], floats(4)), "w.scale": ("F32", [], floats(-3))}
    scratch.write("beside.safetensors", safetensors({**tensors, "w.data": ("F32", [2], floats(5, 6))}))
    assert results(scratch, "beside", "real") == {"w": (-4, -8), "y": (20, 48), "y.scale": (3,)}
    for mode in ("compiled", "stored"):
        made = results(scratch, "beside", mode)
        assert set(made) == {"w.data", "w.scale", "y!data", "y!scale", "y.scale"}, (mode, made)
        whole = {name: tuple(x * made[scale][0] for x in made[data]) for name, data, scale in (("w", "w.data", "w.scale"), ("y", "y!data", "y!scale"))}
        assert whole == {"w": (-4, -8), "y": (20, 48)} and made["y.scale"] == (3,), (mode, made)
    scratch.succeed("build", "beside.scl", "-o", "out")
    header = (scratch.path / "out" / "beside.h").read_text()
    for member in ("w; /* f32[2] scaled, overwritten", "w_scale; /* f32[], read", "w_data; /* f32[2], read", "y; /* f32[2] scaled, written"):
        assert f"scalide_array {member} */" in header, header


def main(tool):
    with Scratch(tool) as scratch:
        two_plain_arguments(scratch)
        plain_arguments_beside_a_scaled_one(scratch)


if __name__ == "__main__":
    main(*sys.argv[1:])
