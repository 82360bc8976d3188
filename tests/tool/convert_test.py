"""Tests `scalide convert`. Usage: convert_test.py SCALIDE."""
import json
import struct
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "support"))
from tool import Scratch, floats, read_safetensors, safetensors, unpack_floats  # noqa: E402

STEP = """program step(x: f32[b, 4], w: f32[4, 3] inout, b: f32[3] inout, rate: f32[]) -> (y: f32[b, 3], w = w2, b = b2) {
  y = dot_general(x, w) {contract: [[1], [0]]}
  r = broadcast_in_dim(rate) {shape: [4, 3], dims: []}
  w2 = mul(w, r)
  b2 = neg(b)
}
"""
PREDICT = """program predict(x: f32[b, 4], w: f32[4, 3]) -> (y: f32[b, 3]) {
  y = dot_general(x, w) {contract: [[1], [0]]}
}
"""
#: What a policy does to an array whose scale is current: the bits that `convert` must give.
ROUND = """program round(w: f32[4, 3]) -> (w: f8_e4m3fn[4, 3] scaled = c) {
  s = dynamic_rescale(w) {norm: max, to: 224}
  c = convert_element_type(s) {dtype: f8_e4m3fn}
}
"""
VALUES = [0.3, -1.7, 2.9e-3, 4.1, 0.05, -0.6, 7.7, 1e-6, 0.11, 3.3, -5.2, 0.9]
W = ("F32", [4, 3], floats(*VALUES))
B = ("F32", [3], floats(1, 2, 3))


def refused(scratch, words, *arguments):
    result = scratch.run("convert", *arguments, "-o", "refused.st")
    assert result.returncode == 1 and words in result.stderr, result.stderr
    assert "refused.st" not in scratch.files(), words


def to_f8_weights(scratch):
    """The bits are those that a program gives that rounds. Extra tensors are named. A policy's own file is copied bit for bit."""
    scratch.write("trained.st", safetensors({"w": W, "b": B, "step": ("U64", [], struct.pack("<q", 7))}))
    printed = scratch.succeed("convert", "trained.st", "--for", "predict.scl", "-n", "f8_weights", "-o", "weights.st")
    assert printed == "weights.st: 1 arrays\nnot used: b, step\n", printed
    scratch.succeed("run", "round.scl", "-i", "trained.st", "-o", "rounded.st")
    weights = read_safetensors(scratch.path / "weights.st")
    assert weights == read_safetensors(scratch.path / "rounded.st") and weights["w.data"][0] == "F8_E4M3", weights
    scratch.succeed("convert", "weights.st", "--for", "predict.scl", "-n", "f8_weights", "-o", "again.st")
    assert read_safetensors(scratch.path / "again.st") == weights
    scratch.succeed("convert", "weights.st", "--for", "predict.scl", "-o", "wide.st")
    scale, = unpack_floats(weights["w.scale"][2])
    wide = unpack_floats(read_safetensors(scratch.path / "wide.st")["w"][2])
    assert all(abs(a - b) <= max(abs(b) / 16, scale * 2**-10) for a, b in zip(wide, VALUES)), wide


def packed(value):
    """Returns a dict of dicts and of arrays (dtype, shape, bytes) in msgpack, as flax.serialization.to_bytes does."""
    def head(fixed, marks, size):
        return bytes([fixed | size]) if size < 16 else struct.pack(marks, 0xDE, size)

    def text(name):
        return bytes([0xA0 | len(name)]) + name.encode()

    if isinstance(value, dict):
        return head(0x80, ">BH", len(value)) + b"".join(text(name) + packed(part) for name, part in value.items())
    if isinstance(value, int):
        return bytes([value])
    dtype, shape, data = value
    array = bytes([0x93, 0x90 | len(shape), *shape]) + text(dtype) + bytes([0xC4, len(data)]) + data
    return bytes([0xC7, len(array), 1]) + array  # an extension of type 1: an array


def of_flax(scratch):
    """A file of Flax gives the bits of the same arrays in safetensors. Python numbers are no arrays."""
    tree = {"params": {"w": ("float32", [4, 3], W[2]), "b": ("float32", [3], B[2])}, "step": 7}
    scratch.write("trained.msgpack", packed(tree))
    scratch.write("trained.st", safetensors({"params.w": W, "params.b": B}))
    for file in ("trained.msgpack", "trained.st"):
        printed = scratch.succeed("convert", file, "--for", "predict.scl", "-n", "f8_weights", "--rename", "params.*=*", "-o", "out.st")
        assert printed == "out.st: 1 arrays\nnot used: b\n", printed
        scratch.write(file + ".st", (scratch.path / "out.st").read_bytes())
    assert read_safetensors(scratch.path / "trained.msgpack.st") == read_safetensors(scratch.path / "trained.st.st")
    refused(scratch, "trained.msgpack: the checkpoint has no array for the arguments w", "trained.msgpack", "--for", "predict.scl")
    scratch.write("cut.msgpack", packed(tree)[:40])
    refused(scratch, "cut.msgpack", "cut.msgpack", "--for", "predict.scl")
    scratch.write("complex.msgpack", packed({"w": ("complex64", [1], bytes(8))}))
    refused(scratch, "w: must have a dtype of programs, got complex64", "complex.msgpack", "--for", "predict.scl")


def to_training(scratch):
    """States of a policy get their initial values. Small arrays stay f32, large ones get f16 and a scale."""
    scratch.write("large.scl", "program large(m: f32[16, 16] inout, b: f32[3] inout) -> (m = n, b = c) {\n  n = neg(m)\n  c = neg(b)\n}\n")
    scratch.write("large.st", safetensors({"m": ("F32", [16, 16], floats(*range(256))), "b": B}))
    printed = scratch.succeed("convert", "large.st", "--for", "large.scl", "-n", "f16_scaled", "-o", "state.st")
    assert printed == "state.st: 3 arrays\n", printed
    state = read_safetensors(scratch.path / "state.st")
    assert state["b"] == B and state["rounding_step"] == ("U32", [], bytes(4)), state
    scale, = unpack_floats(state["m.scale"][2])
    assert state["m.data"][:2] == ("F16", [16, 16]) and struct.unpack("<256e", state["m.data"][2]) == tuple(i / scale for i in range(256))


def published(scratch):
    """FP8 checkpoints with scales in several files. 0x38 is 1 and 0x40 is 2 in e4m3."""
    codes = bytes([0x38, 0x40] * 6)
    scratch.write("one.st", safetensors({"net.0.weight": ("F8_E4M3", [4, 3], codes), "net.0.weight_scale": ("F32", [1], floats(0.5))}))
    scratch.succeed("convert", "one.st", "--for", "predict.scl", "-n", "f8_weights", "--rename", "net.0.weight=w", "-o", "same.st")
    same = read_safetensors(scratch.path / "same.st")
    assert same["w.data"][2] == codes and same["w.scale"][2] == floats(0.5), same
    scratch.write("data.st", safetensors({"net.0.w": ("F8_E4M3", [4, 3], codes)}))
    scratch.write("scales.st", safetensors({"net.0.w_scale_inv": ("F32", [4, 1], floats(1, 2, 3, 4))}))
    scratch.write("index.json", json.dumps({"weight_map": {"net.0.w": "data.st", "net.0.w_scale_inv": "scales.st"}}))
    scratch.write("net.scl", PREDICT.replace("w: f32[4, 3]", '"0:w": f32[4, 3]').replace("(x, w)", '(x, "0:w")'))
    scratch.succeed("convert", "index.json", "--for", "net.scl", "--rename", "net.*.w=*:w", "-o", "rows.st")
    rows = unpack_floats(read_safetensors(scratch.path / "rows.st")["0:w"][2])
    assert rows == (1, 2, 1, 4, 2, 4, 3, 6, 3, 8, 4, 8), rows


def blocks(scratch):
    scratch.write("big.scl", "program big(w: f32[130, 2]) -> (y: f32[130, 2]) {\n  y = neg(w)\n}\n")
    content = {"w": ("F8_E4M3", [130, 2], bytes([0x38]) * 260), "w_scale_inv": ("F32", [2, 1], floats(3, 5))}
    scratch.write("big.st", safetensors(content))
    scratch.succeed("convert", "big.st", "--for", "big.scl", "-o", "big_f32.st")
    assert unpack_floats(read_safetensors(scratch.path / "big_f32.st")["w"][2]) == (3,) * 256 + (5,) * 4
    content["w_scale_inv"] = ("F32", [3, 1], floats(3, 5, 7))
    scratch.write("big.st", safetensors(content))
    refused(scratch, "w_scale_inv: must have one scale for w, one for each row or column, or one for each block of 128 x 128, "
            "got scales of shape [3, 1] for shape [130, 2]", "big.st", "--for", "big.scl")  # fmt: skip


def transposes(scratch):
    """PyTorch stores [out, in], and the kernels of convolutions as [out, in, h, w]."""
    turned = [VALUES[row * 3 + column] for column in range(3) for row in range(4)]
    scratch.write("torch.st", safetensors({"net.weight": ("F32", [3, 4], floats(*turned)), "k": ("F16", [2, 3, 1, 4], struct.pack("<24e", *range(24)))}))
    scratch.write("both.scl", PREDICT.replace("w: f32[4, 3]", "w: f32[4, 3], k: f16[1, 4, 3, 2]"))
    scratch.succeed("convert", "torch.st", "--for", "both.scl", "--rename", "net.weight=w", "--transpose", "w*", "--transpose", "k=2,3,1,0", "-o", "turned.st")
    result = read_safetensors(scratch.path / "turned.st")
    assert result["w"] == W and result["k"][:2] == ("F16", [1, 4, 3, 2]), result
    expected = [(o * 3 + i) * 4 + w for w in range(4) for i in range(3) for o in range(2)]
    assert list(struct.unpack("<24e", result["k"][2])) == expected, result["k"]
    codes = bytes([0x38, 0x40] * 6)
    scratch.write("scaled.st", safetensors({"w": ("F8_E4M3", [3, 4], codes), "w_scale": ("F32", [3, 1], floats(1, 2, 4))}))
    scratch.succeed("convert", "scaled.st", "--for", "predict.scl", "--transpose", "w", "-o", "turned.st")
    assert unpack_floats(read_safetensors(scratch.path / "turned.st")["w"][2]) == (1, 2, 4, 2, 4, 8) * 2
    arguments = "torch.st", "--for", "both.scl", "--rename", "net.weight=w"
    refused(scratch, "unknown argument 'wt'. Did you mean 'w'?", *arguments, "--transpose", "k=2,3,1,0", "--transpose", "w", "--transpose", "wt")
    refused(scratch, "torch.st: k: must have 2 axes to transpose, got [2, 3, 1, 4]. Use --transpose k=AXES", *arguments, "--transpose", "*")
    refused(scratch, "torch.st: w: must have shape [4, 3], got [3, 4]. Use --transpose w", *arguments)
    for word in ("k=1,2,3,4", "k=0,0,1,2", "k=", "=1,0", "*k*"):
        refused(scratch, f"--transpose: must be NAME, or NAME=AXES with each axis once, such as w=1,2,0, got '{word}'", *arguments, "--transpose", word)


def mistakes(scratch):
    scratch.write("other.st", safetensors({"weight": W, "b": ("F32", [4], floats(1, 2, 3, 4)), "rates": ("F32", [], floats(1))}))
    refused(scratch, "other.st: the checkpoint has no array for the arguments w, rate (similar: rates). Use --rename OLD=NEW, or --omit NAME for an argument "
            "that the application sets", "other.st", "--for", "step.scl", "--rename", "b=c", "--omit", "b")  # fmt: skip
    refused(scratch, "other.st: b: must have shape [3], got [4]", "other.st", "--for", "step.scl", "--rename", "weight=w")
    refused(scratch, "other.st: unknown array 'wieght'. Did you mean 'weight'?", "other.st", "--for", "step.scl", "--rename", "wieght=w")
    refused(scratch, "unknown argument 'rat'. Did you mean 'rate'?", "other.st", "--for", "step.scl", "--omit", "rat")
    refused(scratch, "--rename: must be OLD=NEW, with one '*' in both names or in none, got 'a*=b'", "other.st", "--for", "step.scl", "--rename", "a*=b")
    refused(scratch, "the arrays 'b' and 'weight' get one name, 'b'", "other.st", "--for", "step.scl", "--rename", "weight=b")
    scratch.write("integers.st", safetensors({"w": ("I32", [4, 3], bytes(48))}))
    refused(scratch, "integers.st: w: must have a dtype that converts to f32, got i32", "integers.st", "--for", "predict.scl")
    scratch.write("wide.st", safetensors({"w": ("U64", [4, 3], bytes(96))}))
    refused(scratch, "wide.st: tensor 'w': dtype must be one of", "wide.st", "--for", "predict.scl")
    scratch.write("bad.json", "{}")
    refused(scratch, "bad.json: index: must be a JSON object with the key 'weight_map', got another text", "bad.json", "--for", "predict.scl")
    refused(scratch, "nowhere.st", "nowhere.st", "--for", "predict.scl")


def main():
    with Scratch(sys.argv[1]) as scratch:
        for name, text in (("step.scl", STEP), ("predict.scl", PREDICT), ("round.scl", ROUND)):
            scratch.write(name, text)
        for test in (to_f8_weights, of_flax, to_training, published, blocks, transposes, mistakes):
            test(scratch)


main()
