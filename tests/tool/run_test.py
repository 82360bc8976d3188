"""`scalide run`: the compiled kernels, the interpreter in mode stored and in mode real agree on arrays from a file.

Usage: run_test.py SCALIDE POLICY TOLERANCE. The tolerance is that between stored and real: what the policy's formats may lose.
"""
import json
import random
import shutil
import struct
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "support"))
from tool import Scratch, floats, read_safetensors, safetensors, unpack_floats  # noqa: E402

SEED = 7
KERNEL_TOLERANCE = 2e-6  # f32 sums in another order


def values(path):
    """name -> floats of a result file; `x.data` and `x.scale` are one x."""
    arrays = {name: unpack_floats(content) for name, (_, _, content) in read_safetensors(path).items()}
    return {
        name.removesuffix(".data"): [v * arrays[f"{name.removesuffix('.data')}.scale"][0] for v in data] if name.endswith(".data") else data
        for name, data in arrays.items()
        if not name.endswith(".scale")
    }


def largest_difference(a, b):
    assert a.keys() == b.keys(), (a.keys(), b.keys())
    assert all(len(a[name]) == len(b[name]) > 0 for name in a)
    return max(abs(x - y) / max(1, abs(y)) for name in a for x, y in zip(a[name], b[name]))


def non_finite(scratch):
    """With the interpreter, --check-finite names the operator inside of a kernel, its scope and the element."""
    scratch.write("log.scl", 'program p(x: f32[2, 3]) -> (y: f32[2]) {\n  scope "loss" {\n    a = exp(x) : f32[2, 3]\n    b = log(a) : f32[2, 3]\n  }\n'
                             "  y = reduce_sum(b) {axes: [1]} : f32[2]\n}\n")
    run = ("run", "log.scl", "-i", "x.safetensors", "-o", "y.safetensors", "--check-finite", "--interpret")
    for x, expected in ((0, "none (no operator produces an infinity or a NaN)"), (-200, "b, operator log in loss (log.scl:4), element [1, 2] is -inf")):
        scratch.write("x.safetensors", safetensors({"x": ("F32", [2, 3], floats(1, 2, 3, 4, 5, x))}))
        assert scratch.succeed(*run, "stored").splitlines()[0] == f"first non-finite: {expected}"
    assert scratch.succeed(*run, "real").splitlines()[0] == "first non-finite: none (no operator produces an infinity or a NaN)", "f64 has exp(-200)"
    found = json.loads(scratch.succeed(*run, "stored", "--json"))
    assert found == {"tensor": "b", "relation": "", "operator": "log", "inner": "", "direction": "forward", "scope": "loss", "source": {"file": "log.scl", "line": 4},
                     "index": [1, 2], "axes": ["", ""], "value": "-inf", "step": -1}, found
    refused = scratch.run(*run[:-1], "--json")
    assert refused.returncode == 1 and "--json needs --check, --statistics, or --check-finite with --interpret" in refused.stderr, refused.stderr
    # The head of a batch whose scores overflow, in words of axes; and an operator inside of a composite one.
    scratch.write("scores.scl", 'program p(q: f32[b, 4, 3, 2], k: f32[b, 4, 3, 2]) -> (s: f32[b, 4, 3, 3]) {\n  scope "bhse,bhte->bhst" {\n'
                                "    s = dot_general(q, k) {contract: [[3], [3]], batch: [[0, 1], [0, 1]]}\n  }\n}\n")
    heads = floats(*[1e22 if i // 6 % 4 == 2 and i // 24 == 1 else 1 for i in range(48)])
    scratch.write("x.safetensors", safetensors({name: ("F32", [2, 4, 3, 2], heads) for name in "qk"}))
    scores = ("run", "scores.scl", "-i", "x.safetensors", "-o", "y.safetensors", "--check-finite", "--interpret")
    line = scratch.succeed(*scores, "stored").splitlines()[0]
    assert line == "first non-finite: s, operator dot_general in bhse,bhte->bhst (scores.scl:3), element [b 1, h 2, s 0, t 0] is inf", line
    line = scratch.succeed(*scores, "stored", "-n", "f8_master").splitlines()[0]  # the product of the scales of q and k
    assert line == "first non-finite: derived from q, operator mul in bhse,bhte->bhst (scores.scl:3), element [] is inf", line
    assert scratch.succeed(*scores, "real").splitlines()[0].endswith("none (no operator produces an infinity or a NaN)")
    scratch.write("inside.scl", "program p(x: f32[2, 3], gain: f32[3]) -> (z: f32[2, 3]) {\n  z = rms_norm(x, gain) {epsilon: 0.0}\n}\n")
    scratch.write("x.safetensors", safetensors({"x": ("F32", [2, 3], floats(1, 2, 3, 0, 0, 0)), "gain": ("F32", [3], floats(1, 1, 1))}))
    line = scratch.succeed("run", "inside.scl", *run[2:], "real").splitlines()[0]
    assert line == "first non-finite: inside of z, operator rms_norm (its rsqrt) (inside.scl:2), element [1] is inf", line


def infinite_sums(scratch):
    """One kernel computes a matmul in a loop and tests the sums. The compiler must not assume that sums are finite."""
    scratch.write("sums.scl", "program p(h: f32[4, 8], xs: f32[50, 4, 8], w: f32[8, 8]) -> (out: f32[4, 8], good: i32[50], most: f32[50]) {\n"
                              "  out, good, most = scan(h, xs, w) {length: 50} with body(h: f32[4, 8] inout, x: f32[4, 8] each, w: f32[8, 8])"
                              " -> (h = next, g: i32[] = g, m: f32[] = m) {\n"
                              "    a = add(h, x)\n    y = dot(a, w) : f32[4, 8]\n    f = is_finite(y)\n    c = convert_element_type(f) {dtype: i32}\n"
                              "    g = reduce_sum(c) {axes: [0, 1]}\n    z = abs(y)\n    k = select_n(f, 0.0, z)\n    m = reduce_max(k) {axes: [0, 1]}\n"
                              "    next = mul(y, 0.0)\n  }\n}\n")  # fmt: skip
    xs = [1.0] * 1600
    xs[31 * 32 + 2 * 8 + 5] = float("inf")
    ones = ("F32", [8, 8], floats(*[1] * 64))
    scratch.write("sums.safetensors", safetensors({"h": ("F32", [4, 8], floats(*[0] * 32)), "xs": ("F32", [50, 4, 8], floats(*xs)), "w": ones}))
    scratch.succeed("run", "sums.scl", "-i", "sums.safetensors", "-o", "out.safetensors")
    found = read_safetensors(scratch.path / "out.safetensors")
    assert struct.unpack("<50i", found["good"][2]) == tuple([32] * 31 + [24] * 19), found["good"]  # inf * 0 is NaN in later steps
    assert unpack_floats(found["most"][2]) == tuple([8.0] * 50), found["most"]


def statistics(scratch, compiled, policy):
    """The results keep their bits. A folder has the lines that `scalide report` reads. Filters choose rows."""
    run = ("run", "mixed.scl", "-n", policy, "-i", "in.safetensors", "-o", "counted.safetensors")
    rows = json.loads(scratch.succeed(*run, "--statistics=folder", "--json"))
    assert (scratch.path / "counted.safetensors").read_bytes() == (scratch.path / compiled).read_bytes()
    w = next(row for row in rows if row["tensor"] == "w")
    amax = max(map(abs, values(scratch.path / "in.safetensors")["w"]))
    assert (w["amax"], w["elements"], w["step"], w["non_finite"], w["first"]) == (amax, 40, 0, 0, None), (w, amax)
    assert sum(count for _, count in w["histogram"]) == 40 and w["rms"] > 0 and w["source"]["file"] == "mixed.scl", w
    (scratch.path / "folder/metrics.jsonl").read_bytes()
    head, line = (json.loads(line) for line in (scratch.path / "folder/statistics.jsonl").read_text().splitlines())
    assert [row["tensor"] for row in head["tensors"]] == [row["tensor"] for row in rows] and line["amax"] == [row["amax"] for row in rows], line
    assert "No run was given" not in scratch.succeed("report", "mixed.scl", "folder", "-o", "page.html")
    heading, *lines, _ = scratch.succeed(*run, "--statistics", "--tensor", "w").splitlines()
    assert heading.split()[:6] == ["tensor", "use", "format", "step", "elements", "amax"] and {line.split()[0] for line in lines} == {"w"}, lines
    for wrong, wanted in ((("--statistics", "--tensor", "xx"), "no row of the table has a tensor that matches 'xx'. Did you mean 'x'?"),
                          (("--tensor", "x"), "--tensor and --scope need --check or --statistics"),
                          (("--statistics", "--interpret", "real"), "--interpret excludes --statistics"),
                          (("--statistics=in.safetensors",), "in.safetensors/metrics.jsonl: cannot open this file: Not a directory. Choose another folder.")):
        refused = scratch.run(*run, *wrong)
        assert refused.returncode in (1, 2) and wanted in refused.stderr, refused.stderr


def wide_integers(scratch):
    """The interpreter computes in f64: it refuses an i64 that f64 does not represent. Compiled kernels take every i64."""
    scratch.write("wide.scl", "program wide(x: f32[3, 2], i: i64[n], k: i64[n]) -> (y: f32[n, 2], same: i64[n], less: bool[n], low: i32[n]) {\n"
                              "  y = take(x, i) {axis: 0, mode: clip}\n  same = stop_gradient(k)\n  less = lt(i, k)\n"
                              "  low = convert_element_type(k) {dtype: i32}\n}\n")
    x = ("F32", [3, 2], floats(1, 2, 3, 4, 5, 6))
    for name, numbers in (("exact", (2**60, -(2**33) - 5)), ("beyond", (2**53 + 1, -7))):
        i, k = (("I64", [2], struct.pack("<2q", *pair)) for pair in ((2**40, -1), numbers))
        scratch.write(f"{name}.safetensors", safetensors({"x": x, "i": i, "k": k}))
        scratch.succeed("run", "wide.scl", "-i", f"{name}.safetensors", "-o", "compiled.safetensors")
        compiled = read_safetensors(scratch.path / "compiled.safetensors")
        assert compiled["same"] == k and compiled["y"][2] == floats(5, 6, 1, 2), compiled
        assert compiled["low"][2] == struct.pack("<2I", *(number % 2**32 for number in numbers)), compiled
        interpreted = scratch.run("run", "wide.scl", "-i", f"{name}.safetensors", "-o", "stored.safetensors", "--interpret", "stored")
        if name == "exact":
            assert interpreted.returncode == 0, interpreted.stderr
            assert read_safetensors(scratch.path / "stored.safetensors") == compiled
        else:
            wanted = "k: the interpreter needs i64 values that f64 represents exactly, got 9007199254740993"
            assert interpreted.returncode == 1 and wanted in interpreted.stderr, interpreted.stderr


def main(tool, policy, tolerance):
    draw = random.Random(SEED)
    numbers = lambda count: floats(*(draw.gauss(0, 1) for _ in range(count)))  # noqa: E731
    with Scratch(tool) as scratch:
        shutil.copy(HERE / "mixed.scl", scratch.path)
        x = {"x.data": ("F32", [3, 8], numbers(24)), "x.scale": ("F32", [], floats(0.5))}
        step = ("U64", [], bytes(8))  # which the program does not ask for
        scratch.write("in.safetensors", safetensors({"step": step, **x, "w": ("F32", [8, 5], numbers(40))}))
        scratch.write("wrong.safetensors", safetensors({**x, "w": step}))
        refused = scratch.run("run", "mixed.scl", "-i", "wrong.safetensors", "-o", "out.safetensors")
        assert refused.returncode != 0 and "wrong.safetensors: tensor 'w': dtype must be one of F32 F16 " in refused.stderr, refused.stderr
        assert ", got U64. Convert the tensor." in refused.stderr, refused.stderr
        results = {}
        for mode in ("compiled", "stored", "real"):
            how = ("--trace",) if mode == "compiled" else ("--interpret", mode)
            command = ("run", "mixed.scl", "--numerics", policy, "-i", "in.safetensors", "-o", f"{mode}.safetensors", *how)
            *shown, last = scratch.succeed(*command).splitlines()
            assert last.startswith(f"{mode}.safetensors: "), command
            assert mode != "compiled" or any(line.startswith("logits.data f32[3, 5]: ") for line in shown), shown
            assert mode != "compiled" or any(line.startswith("logits.scale f32[]: ") for line in shown), shown
            results[mode] = values(scratch.path / f"{mode}.safetensors")
        profiled = ("run", "mixed.scl", "--numerics", policy, "-i", "in.safetensors", "-o", "profiled.safetensors", "--profile", "3")
        heading, *steps, total, _ = scratch.succeed(*profiled).splitlines()
        assert heading.split() == ["step", "kernel", "us", "share", "bytes", "GB/s", "computes", "source"], heading
        assert [line.split()[0] for line in steps] == [str(i) for i in range(len(steps))] and total.startswith("all"), (steps, total)
        assert (scratch.path / "profiled.safetensors").read_bytes() == (scratch.path / "compiled.safetensors").read_bytes()
        refused = scratch.run(*profiled[:-1], "0")
        assert refused.returncode != 0 and "--profile" in refused.stderr, refused.stderr
        statistics(scratch, "compiled.safetensors", policy)
        infinite_sums(scratch)
        non_finite(scratch)
        wide_integers(scratch)
    kernels = largest_difference(results["compiled"], results["stored"])
    formats = largest_difference(results["stored"], results["real"])
    print(f"compiled against stored {kernels:.1e}, stored against real {formats:.1e} (seed {SEED})")
    assert set(results["real"]) == {"p", "z"}
    assert abs(sum(results["compiled"]["p"]) - 3) < 1e-5, "rows of softmax add up to 1"
    assert kernels <= KERNEL_TOLERANCE and formats <= float(tolerance)


if __name__ == "__main__":
    main(*sys.argv[1:])
