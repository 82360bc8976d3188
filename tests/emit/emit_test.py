"""Tests which files `scalide build` compiles, keeps and writes. Usage: emit_test.py SCALIDE TEST. Each test is a function of a Scratch."""
import filecmp
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "support"))
from tool import Scratch  # noqa: E402

BEND = ("build", "bend.scl", "--rules", "bent.yaml")
MLP = ("build", "mlp.scl")


def counts(line):
    """(kernels, steps, compiled, from the cache) of the line that a build ends with."""
    return tuple(map(int, re.search(r": (\d+) kernels in (\d+) steps, (\d+) compiled, (\d+) from the cache", line).groups()))


def manifest(scratch, folder, name):
    return json.loads((scratch.path / folder / f"{name}.json").read_text())["programs"][0]


def texts(manifest):
    """The kernels of a program and of its forms."""
    return {kernel["text"] for program in (manifest, *manifest.get("variants", [])) for kernel in program["kernels"]}


def warm_build_compiles_nothing(scratch):
    kernels, steps, compiled, cached = counts(scratch.succeed(*MLP, "-o", "cold"))
    assert compiled == kernels > 3 and cached == 0, compiled
    assert counts(scratch.succeed(*MLP, "-o", "warm")) == (kernels, steps, 0, kernels)
    same, different, lost = filecmp.cmpfiles(scratch.path / "cold", scratch.path / "warm", ["mlp.h", "mlp.json", "mlp.plan.c", "libmlp.a"], False)
    assert not different and not lost, (different, lost)


def expect_only_changed(scratch, first, second):
    """The second build compiles the kernels whose text the first did not have, and keeps at least one."""
    scratch.succeed(*first, "-o", "first")
    kernels, _, compiled, cached = counts(scratch.succeed(*second, "-o", "second"))
    new = texts(manifest(scratch, "second", "bend")) - texts(manifest(scratch, "first", "bend"))
    assert compiled == len(new) > 0, (compiled, new)
    assert cached == kernels - compiled > 0, (kernels, compiled)


def changed_rule_compiles_changed_kernels(scratch):
    rule = (scratch.path / "bent.yaml").read_text()
    scratch.write("other.yaml", rule.replace("1 + x * x", "2 + x * x"))
    expect_only_changed(scratch, BEND, (*BEND[:2], "--rules", "other.yaml"))


def changed_policy_compiles_changed_kernels(scratch):
    expect_only_changed(scratch, BEND, (*BEND, "--numerics", "bf16"))


def equal_kernels_are_one_object(scratch):
    kernels, steps, compiled, _ = counts(scratch.succeed("build", "twice.scl"))
    assert (kernels, steps, compiled) == (1, 3, 1), (kernels, steps, compiled)
    members = subprocess.run(["ar", "t", scratch.path / "libtwice.a"], capture_output=True, text=True, check=True).stdout.split()
    assert len(members) == 2, members  # the plan and the kernel


def objects(scratch):
    return {p.name: p.read_bytes() for p in (scratch.path / "cache" / "scalide").glob("*.o")}


def killed_build_leaves_nothing_broken(scratch):
    scratch.succeed(*MLP, "-o", "whole")
    whole = objects(scratch)
    shutil.rmtree(scratch.path / "cache")
    command = [scratch.tool, *MLP, "-o", "out", "--jobs", "2"]
    build = subprocess.Popen(command, cwd=scratch.path, env=scratch.environment, stdout=subprocess.DEVNULL, start_new_session=True)
    while not objects(scratch) and build.poll() is None:
        time.sleep(0.01)
    build.send_signal(signal.SIGKILL)
    assert build.wait() == -signal.SIGKILL, "the build ended before it was killed"
    survivors = objects(scratch)
    assert 0 < len(survivors) < len(whole), len(survivors)
    assert all(whole[name] == content for name, content in survivors.items()), "a half-written object"
    assert not any(f.startswith("out/") and ".scalide-part-" not in f for f in scratch.files())
    kernels, _, compiled, cached = counts(scratch.succeed(*MLP, "-o", "out"))
    assert cached >= len(survivors) and cached + compiled == kernels
    assert objects(scratch) == whole
    assert not [f for f in scratch.files() if "part" in f], "what the killed build left is gone"
    assert filecmp.cmp(scratch.path / "whole/libmlp.a", scratch.path / "out/libmlp.a", False)


def damaged_files_of_the_cache_are_made_anew(scratch):
    scratch.succeed(*MLP, "-o", "whole")
    whole, folder = objects(scratch), scratch.path / "cache" / "scalide"
    first, second, third = sorted(whole)[:3]
    (folder / first).write_bytes(whole[second])  # another kernel's
    (folder / second).write_bytes(whole[second][:-100])
    (folder / third).write_bytes(whole[third].replace(b"scalide_", b"scalide-"))
    for archive in folder.glob("*.a"):
        archive.write_bytes(b"!<arch>\n")
    assert counts(scratch.succeed(*MLP, "-o", "out"))[2] == 3
    assert objects(scratch) == whole
    assert filecmp.cmp(scratch.path / "whole/libmlp.a", scratch.path / "out/libmlp.a", False)
    folder.chmod(0o777)
    refused = scratch.run(*MLP, "-o", "out")
    assert refused.returncode == 1 and "every user can write it" in refused.stderr, refused.stderr


def two_builds_share_a_cache(scratch):
    command = [scratch.tool, *MLP, "-o"]
    both = [subprocess.Popen([*command, out], cwd=scratch.path, env=scratch.environment, stdout=subprocess.DEVNULL) for out in ("a", "b")]
    assert [build.wait() for build in both] == [0, 0]
    assert filecmp.cmp(scratch.path / "a/libmlp.a", scratch.path / "b/libmlp.a", False)
    assert not [f for f in scratch.files() if "part" in f]
    assert counts(scratch.succeed(*MLP, "-o", "c"))[2] == 0


def cache_is_shown_and_cleared(scratch):
    kernels = counts(scratch.succeed("build", "twice.scl"))[0]
    assert f": {kernels} kernels, " in scratch.succeed("cache")
    files = [f for f in scratch.files() if f.startswith("cache/")]
    assert len(files) > kernels, files  # archives and facts about kernels too
    assert scratch.succeed("cache", "--clear").endswith(f": {len(files)} files removed\n")
    assert not [f for f in scratch.files() if f.startswith("cache/")]
    assert counts(scratch.succeed("build", "twice.scl"))[2] == kernels


def operands(text):
    """Of each dot_general in a kernel's text the lines that make its operands, through what moves them."""
    lines = dict(re.findall(r"^  (\w+) = (.*)$", text, re.M))

    def made(name):
        moved = re.match(r"(?:reshape|transpose)\((\w+)\)", lines.get(name, ""))
        return made(moved[1]) if moved else lines.get(name, name)

    for pair in re.findall(r"= dot_general\((\w+), (\w+)\)", text):
        for name in pair:
            widened = re.match(r"convert_element_type\((\w+)\) {dtype: f32}", made(name))
            assert widened, f"{name} is not decoded in {text}"
            yield made(widened[1])


def f8_operands_are_one_byte(scratch):
    """Both operands of every dot_general, forward and backward, are rounded to f8 where they are packed; one-byte arrays in a traceable build."""
    for options, source in (([], r"convert_element_type\(\w+\) {dtype: f8_e(4m3fn|5m2)}"), (["--traceable"], r"a\d+$")):
        scratch.succeed(*MLP, "--numerics", "f8_scaled", *options)
        made = manifest(scratch, ".", "mlp")
        one_byte = {b["name"] for b in made["buffers"] if b["dtype"].startswith("f8_") and b["storage"] == "arena"}
        kernels = {kernel["name"]: kernel for kernel in made["kernels"]}
        seen = 0
        for step in made["steps"]:
            for operand in operands(kernels[step["kernel"]]["text"]):
                seen += 1
                assert re.match(source, operand), f"{options}: {operand}"
                assert not options or len(one_byte & set(step["buffers"])) >= 2, step
        assert seen == 10, f"two forward, three backward products, got {seen} operands"
        assert bool(one_byte) == bool(options), one_byte


def find_ptxas():
    """Returns the folder of ptxas, found as `scalide build` finds it. Skips the test if there is none."""
    folders = [Path(os.environ["CUDA_HOME"]) / "bin"] if "CUDA_HOME" in os.environ else []
    for folder in [*folders, *map(Path, os.environ["PATH"].split(os.pathsep))]:
        if (folder / "ptxas").exists() and (folder / "fatbinary").exists():
            return folder
    print("no ptxas")
    sys.exit(77)


def cards_are_chosen_and_reported(scratch):
    """Builds for named GPUs. The manifest and the report list what was used, also from the cache."""
    find_ptxas()
    command = ("build", "mlp.scl", "--target", "cuda", "--numerics", "f8_scaled", "--report")
    line, *cold = scratch.succeed(*command, "--cuda-arch", "90,100").splitlines()
    kernels, steps, compiled, _ = counts(line)
    assert compiled == kernels
    made = manifest(scratch, ".", "mlp")
    for kernel in made["kernels"]:
        assert {launch["card"] for launch in kernel["launches"]} == {90, 100}, kernel
        assert all(launch["registers"] > 0 for launch in kernel["launches"]), kernel
    folds = [kernel["launches"] for kernel in made["kernels"] if kernel["kind"] == "full"]
    assert folds and all(any(launch["shared_bytes"] > 0 for launch in launches) for launches in folds), "threads of a fold meet in shared memory"
    assert sum(row.split()[3].startswith("sm_") for row in cold[1:] if not row.startswith(("step ", "for "))) == 2 * kernels, cold
    products = [row for row in cold if row.startswith("step ")]
    assert len(products) == 5 and all(row.endswith("): cublaslt") for row in products), products
    line, *warm = scratch.succeed(*command, "--cuda-arch", "90,100").splitlines()
    assert counts(line) == (kernels, steps, 0, kernels) and warm == cold
    assert counts(scratch.succeed(*command, "--cuda-arch", "90").splitlines()[0])[2] == kernels


def another_assembler_compiles_anew(scratch):
    tools = find_ptxas()
    command = ("build", "twice.scl", "--target", "cuda", "--cuda-arch", "90")
    assert counts(scratch.succeed(*command))[2] == 1
    other = scratch.path / "other" / "bin"
    other.mkdir(parents=True)
    (other / "fatbinary").symlink_to(tools / "fatbinary")
    (other / "ptxas").write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "release 13.9" && exit\nexec {tools}/ptxas "$@"\n')
    (other / "ptxas").chmod(0o755)
    scratch.environment["CUDA_HOME"] = str(other.parent)
    assert [counts(scratch.succeed(*command))[2] for _ in range(2)] == [1, 0]


def products_without_a_library_are_named(scratch):
    find_ptxas()
    scratch.write("mixed.scl", """program mixed(x: f16[b, 64], w: bf16[64, 8]) -> (y: f32[b, 8]) {
  a = convert_element_type(x) {dtype: f32}
  b = convert_element_type(w) {dtype: f32}
  y = dot_general(a, b) {contract: [[1], [0]]}
}
""")
    _, *rows, _, _ = scratch.succeed("build", "mixed.scl", "--target", "cuda", "--cuda-arch", "90").splitlines()
    assert rows == ["step 0 (contract_1): generated kernel, because the cuBLASLt table has no entry for f16 x bf16"], rows
    scratch.write("required.yaml", "policy: required\nlibraries: required\nrules: []\n")
    for required in (("--require-libraries",), ("--numerics", "required.yaml")):
        error = scratch.run("build", "mixed.scl", "--target", "cuda", "--cuda-arch", "90", *required).stderr
        assert error == ("error: mixed.scl:4:3: step 0 (contract_1): must be computed by a library, because libraries are required, got a generated "
                         "kernel, because the cuBLASLt table has no entry for f16 x bf16. Change the matmul, or allow kernels "
                         "(libraries: optional)\n"), error
    scratch.succeed("build", "mixed.scl", "--numerics", "required.yaml")  # a CPU has no library of matmuls
    error = scratch.run("build", "mixed.scl", "--require-libraries").stderr
    assert error == "error: '--require-libraries' needs '--target cuda'\n", error


def cards_that_multiply_otherwise_have_variants(scratch):
    """f8 products of a program for sm_80 are of bf16; one that is for some cards alone is the same everywhere."""
    find_ptxas()
    scratch.write("f8.scl", """program f8(x: f8_e4m3fn[b, 64], w: f8_e4m3fn[32, 64]) -> (y: f32[b, 32]) {
  y = dot_general(x, w) {contract: [[1], [1]], preferred: f32}
}
""")
    line, _, *rows, _, _ = scratch.succeed("build", "f8.scl", "--target", "cuda", "--report").splitlines()
    assert counts(line)[:2] == (3, 1), line
    cards = {name: [row.split()[3] for row in rows if row.startswith(name + " ")] for name in ("contract_1", "sm_80.map_1", "sm_80.contract_1")}
    assert cards == {"contract_1": ["sm_89", "sm_90", "sm_100", "sm_120"], "sm_80.map_1": ["sm_80"], "sm_80.contract_1": ["sm_80"]}, rows
    assert rows[-2:] == ["step 0 (contract_1): cublaslt", "step 1 (sm_80.contract_1): cublaslt"], rows
    made = manifest(scratch, ".", "f8")
    assert made["cards"] == [89, 90, 100, 120] and len(made["steps"]) == 1
    variant, = made["variants"]
    assert variant["cards"] == [80] and [step["kernel"] for step in variant["steps"]] == ["map_1", "contract_1"]
    assert variant["arguments"] == made["arguments"]
    for chosen, steps in (("80", 2), ("90", 1)):
        assert counts(scratch.succeed("build", "f8.scl", "--target", "cuda", "--cuda-arch", chosen).splitlines()[0])[1] == steps
        assert "variants" not in manifest(scratch, ".", "f8")


def several_cpus_share_a_library(scratch):
    _, steps, compiled, _ = counts(scratch.succeed(*MLP, "-o", "one", "--target", "x86-64-v2"))
    both = scratch.succeed(*MLP, "-o", "both", "--target", "x86-64-v2,x86-64-v4", "--report")
    assert counts(both)[1:] == (steps, compiled, compiled), both  # all kernels again for the second CPU
    assert "\nx86-64-v4." in both and "\nfor x86-64-v2, x86-64-v4\n" in both, both
    assert "Generated by scalide build for x86-64-v2, x86-64-v4." in (scratch.path / "both/mlp.h").read_text()
    assert "\nfor this machine: " in scratch.succeed(*MLP, "-o", "host")
    one, main = manifest(scratch, "one", "mlp"), manifest(scratch, "both", "mlp")
    forms, variants = one.pop("variants", []), main.pop("variants")
    wide = [variant for variant in variants if variant.get("cpu") == "x86-64-v4"]
    assert [variant for variant in variants if "cpu" not in variant] == forms
    assert [variant.get("values") for variant in wide] == [None, *(form["values"] for form in forms)]
    assert all(variant["arguments"] == main["arguments"] for variant in wide)
    assert all("avx512" in variant["target"] for variant in wide) and "avx" not in main["target"]
    del one["hash"], main["hash"]
    assert one == main


def each_cpu_prepares_its_constants(scratch):
    scratch.write("fixed.scl", "program fixed(x: f32[b, 24], w: f32[24, 40] constant) -> (y: f32[b, 40]) {\n  y = dot(x, w)\n}\n")
    scratch.succeed("build", "fixed.scl", "--target", "x86-64-v2,x86-64-v3", "--numerics", "bf16")
    main = manifest(scratch, ".", "fixed")
    first = next(variant for variant in main["variants"] if variant.get("cpu") == "x86-64-v3")
    assert "avx" not in main["prepare"]["target"] and "avx2" in first["prepare"]["target"]
    assert not any("prepare" in variant for variant in main["variants"] if variant is not first)


def passes(scratch):
    return re.search(r"One of: (.*)", scratch.run("build", "scaled.scl", "--dump-after", "none").stderr)[1].split(", ")


def dumps(printed):
    """pass -> text, of what a build prints. The lines of the library, its targets and its number formats may follow."""
    last_lines = r"^(for this machine: .*|\w+ is no faster than f32 on .*|\S+: \d+ (kernels in|of \d+ (?:matmuls|convolutions)\b|% of bytes) .*)\n"
    parts = re.split(r"^# after (\w+)\n", re.sub(last_lines, "", printed, flags=re.M), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def dumps_can_be_built(scratch):
    """The pipeline run from any dump makes the same kernels. Numerics are decided by assign_numerics: later dumps are built as they are."""
    every = passes(scratch)
    names = every[: every.index("fuse") + 1]
    scratch.write("as_it_is.yaml", "policy: as_it_is\nrules: []\n")
    command = ("build", "scaled.scl", "--numerics", "scaled.yaml")
    after = dumps(scratch.succeed(*command, *(word for name in every for word in ("--dump-after", name))))
    assert [name for name in after if name in names] == names, list(after)
    assert {"take_loop_shapes", "merge_axes"} <= set(after) - set(names) <= set(every) - {"card_forms", "pack_operands", "fuse_prepare"}
    kernels = texts(manifest(scratch, ".", "step"))
    for i, name in enumerate(names):
        scratch.write("dump.scl", after[name])
        numerics = "scaled.yaml" if i < names.index("assign_numerics") else "as_it_is.yaml"
        again = scratch.succeed("build", "dump.scl", "--numerics", numerics, "-o", name, "--dump-after", "infer_types")
        assert dumps(again)["infer_types"] == after[name], name
        assert texts(manifest(scratch, name, "step")) == kernels, name


TESTS = [warm_build_compiles_nothing, changed_rule_compiles_changed_kernels, changed_policy_compiles_changed_kernels,
         equal_kernels_are_one_object, killed_build_leaves_nothing_broken, damaged_files_of_the_cache_are_made_anew, two_builds_share_a_cache,
         cache_is_shown_and_cleared, f8_operands_are_one_byte, cards_are_chosen_and_reported, another_assembler_compiles_anew, products_without_a_library_are_named,
         several_cpus_share_a_library, each_cpu_prepares_its_constants, cards_that_multiply_otherwise_have_variants,
         dumps_can_be_built]

if __name__ == "__main__":
    test = {t.__name__: t for t in TESTS}[sys.argv[2]]
    with Scratch(sys.argv[1]) as scratch:
        for file in [*HERE.glob("*.*l"), *(HERE.parent / "golden/passes").glob("scaled.*")]:
            shutil.copy(file, scratch.path)
        test(scratch)
    print("ok")
