"""Names are labels. `scalide run` and `scalide build` know the parts of a scaled array by their place, never by a name: plain arguments may be called
like parts. A name may be any text, and is nowhere more than that: no C, no path, no command.

Usage: names_test.py SCALIDE SOURCE RUNTIME
"""
import json
import os
import subprocess
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
ODD = r"""program "../odd \"model\"\x0a*/ ??/" ("layer 0/kernel\"x": f32[b, 2], "layer_0_kernel_x": f32[2], int: f32[2] inout, INT: f32[], "gr\xc3\xb6\xc3\x9fe\\\x1b[31m": f32[2],
    "$(touch pwned)": f32[b, 2]) -> ("out 1": f32[b, 2], int = "int 2", "*/ #error": f32[b]) {
  "a b" = mul("layer 0/kernel\"x", "$(touch pwned)")
  "s" = broadcast_in_dim(INT) {shape: [2], dims: []}
  "t\x09u" = add("layer_0_kernel_x", "s")
  "v" = mul("t\x09u", "gr\xc3\xb6\xc3\x9fe\\\x1b[31m")
  "w" = broadcast_in_dim("v") {shape: [b, 2], dims: [1]}
  "out 1" = add("a b", "w")
  "int 2" = add(int, "v")
  "*/ #error" = reduce_sum("out 1") {axes: [1]}
}
"""
ODD_NAME = '../odd "model"\n*/ ??/'
ODD_INPUTS = {'layer 0/kernel"x': ([1, 2], (1, 2)), "layer_0_kernel_x": ([2], (3, 4)), "int": ([2], (5, 6)), "INT": ([], (7,)),
              "gr\xf6\xdfe\\\x1b[31m": ([2], (8, 9)), "$(touch pwned)": ([1, 2], (10, 11))}  # fmt: skip
ODD_RESULTS = {"int": (85, 105), "out 1": (90, 121), "*/ #error": (211,)}
# The same by the C API: members of the header by their place, arguments by name.
ODD_C = r"""#include "___odd__model________.h"
#include <stdio.h>
#include <string.h>
int main(void) {
    float x[] = {1, 2}, k[] = {3, 4}, number[] = {7}, size[] = {8, 9}, touch[] = {10, 11};
    float state[] __attribute__((aligned(64))) = {5, 6}, out[2] __attribute__((aligned(64))), sum[1] __attribute__((aligned(64)));
    const int64_t matrix[] = {1, 2}, row[] = {2}, one[] = {1};
    const scalide_program *program = ___odd__model_________program();
    scalide_options options = {sizeof options};
    scalide_context *context = NULL;
    scalide_binding *binding = NULL;
    ___odd__model_________arrays arrays;
    arrays.layer_0_kernel_x = scalide_dense_array(x, NULL, SCALIDE_F32, 2, matrix);
    arrays.layer_0_kernel_x_1 = scalide_dense_array(k, NULL, SCALIDE_F32, 1, row);
    arrays.int_1 = scalide_dense_array(state, NULL, SCALIDE_F32, 1, row);
    arrays.INT = scalide_dense_array(number, NULL, SCALIDE_F32, 0, NULL);
    arrays.gr____e___31m = scalide_dense_array(size, NULL, SCALIDE_F32, 1, row);
    arrays.__touch_pwned_ = scalide_dense_array(touch, NULL, SCALIDE_F32, 2, matrix);
    arrays.out_1 = scalide_dense_array(out, NULL, SCALIDE_F32, 2, matrix);
    arrays.____error = scalide_dense_array(sum, NULL, SCALIDE_F32, 1, one);
    if (strcmp(scalide_program_name(program), "../odd \"model\"\n*/ \?\?/") != 0) return 1;
    if (scalide_find_argument(program, "layer 0/kernel\"x") != ___ODD__MODEL_________LAYER_0_KERNEL_X) return 2;
    if (scalide_find_argument(program, "gr\303\266\303\237e\\\033[31m") != ___ODD__MODEL_________GR____E___31M) return 3;
    if (scalide_find_argument(program, "*/ #error") != ___ODD__MODEL_____________ERROR) return 4;
    if (scalide_context_create(&options, &context) || ___odd__model_________bind(context, &arrays, &binding) || scalide_run(binding)) return 5;
    printf("%g %g %g %g %g\n", state[0], state[1], out[0], out[1], sum[0]);
    scalide_binding_destroy(binding);
    scalide_context_destroy(context);
    return 0;
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
    header = next((scratch.path / "out").rglob("*.h")).read_text(encoding="utf-8")
    for member in ("q_data; /* f32[3], input", "q_scale; /* f32[], input", "r_data; /* f32[3], output", "r_scale; /* f32[], output"):
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
    header = (scratch.path / "out" / "beside.h").read_text(encoding="utf-8")
    for member in ("w; /* f32[2] scaled, updated in place", "w_scale; /* f32[], input", "w_data; /* f32[2], input", "y; /* f32[2] scaled, output"):
        assert f"scalide_array {member} */" in header, header


def names_of_any_text(scratch):
    scratch.write("odd.scl", ODD)
    scratch.write("odd.safetensors", safetensors({name: ("F32", shape, floats(*numbers)) for name, (shape, numbers) in ODD_INPUTS.items()}))
    for mode in MODES:
        assert results(scratch, "odd", mode) == ODD_RESULTS, mode
    before = scratch.files()
    for target in ("host", "opencl", "cuda"):
        scratch.succeed("build", "odd.scl", "-o", target, "--numerics", "f16_scaled", "--target", target)
        made = [file for file in scratch.files() - before if not file.startswith("cache/")]
        stem = f"{target}/___odd__model________"
        assert sorted(made) == sorted([f"{stem}.h", f"{stem}.json", f"{stem}.plan.c", f"{target}/lib___odd__model________.a"]), made
        before = scratch.files()
    program = json.loads((scratch.path / "host/___odd__model________.json").read_text(encoding="utf-8"))["programs"][0]
    assert program["name"] == ODD_NAME and [row["name"] for row in program["arguments"]] == [*ODD_INPUTS, "out 1", "*/ #error"]
    reports = [("explain", "odd.scl"), ("inspect", "odd.scl"), ("build", "odd.scl", "--report", "--dump-after", "propagate_scales")]
    trace = ("run", "odd.scl", "--trace", "-i", "odd.safetensors", "-o", "out.safetensors")
    for command in (*((*report, "-n", "f8_scaled") for report in reports), trace):
        assert "\x1b" not in scratch.succeed(*command)


def names_of_any_text_in_c(scratch, source, runtime):
    scratch.write("odd.scl", ODD)
    scratch.succeed("build", "odd.scl", "-o", "c")
    scratch.write("main.c", ODD_C)
    compiler, include = os.environ.get("CC", "cc"), ["-I", f"{source}/runtime/include", "-I", "c"]
    for language in ("c", "c++"):
        compile = [compiler, "-x", language, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", *include, "c/___odd__model________.h"]
        subprocess.run(compile, cwd=scratch.path, check=True)
    subprocess.run([compiler, "-std=c99", *include, "main.c", "c/lib___odd__model________.a", runtime, "-lpthread", "-lm", "-ldl", "-o", "main"],
                   cwd=scratch.path, check=True)  # fmt: skip
    printed = subprocess.run([scratch.path / "main"], stdout=subprocess.PIPE, encoding="utf-8", check=True).stdout
    assert tuple(map(float, printed.split())) == (85, 105, 90, 121, 211), printed


def main(tool, source, runtime):
    with Scratch(tool) as scratch:
        two_plain_arguments(scratch)
        plain_arguments_beside_a_scaled_one(scratch)
        names_of_any_text(scratch)
        names_of_any_text_in_c(scratch, source, runtime)


if __name__ == "__main__":
    main(*sys.argv[1:])
