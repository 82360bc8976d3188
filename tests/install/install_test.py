"""The package as a user gets it. Usage: install_test.py BUILD SOURCE WORK TEST, the tests in the order of TESTS: `prefix` installs into
WORK/prefix, the others use that and nothing of the tree: examples are copied out of it and find the package by CMAKE_PREFIX_PATH."""
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

# Generated kernels refer to these names. The runtime defines them (runtime/src/run/hooks.cpp).
HALIDE_HOOKS = {"halide_do_par_for", "halide_malloc", "halide_free", "halide_error"}
SYSTEM_LIBRARIES = r"linux-vdso|ld-linux.*|libc|libm|libstdc\+\+|libgcc_s|libpthread|libdl"
FOREIGN = r"LLVM|llvm|4YAML|3CLI|8nlohmann|6Halide|3fmt|7scalide7Program|7scalide8Rulebook"


def run(*command, variables={}, **options):
    """Returns the command's output. If the command fails, raises AssertionError with the output."""
    environment = {name: text for name, text in os.environ.items() if name not in ("SCALIDE_HOME", "Scalide_DIR")}
    environment |= {"XDG_CACHE_HOME": str(WORK / "cache"), **variables}
    result = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, **options)
    assert result.returncode == 0, f"{command}: status {result.returncode}\n{result.stdout}"
    return result.stdout


def prefix():
    shutil.rmtree(WORK, ignore_errors=True)
    run("cmake", "--install", BUILD, "--prefix", WORK / "prefix")


def build_example(name, folder=None, *options):
    """Builds examples/<name> from a copy of the examples in the folder (default: its name); returns its build folder."""
    folder = WORK / (folder or name)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(SOURCE / "examples", folder / "source")
    run("cmake", "-S", folder / "source" / name, "-B", folder / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={WORK / 'prefix'}", *options)
    run("cmake", "--build", folder / "build")
    return folder / "build"


def tool():
    """The installed tool finds rules, headers and Halide in its own prefix."""
    (WORK / "sum.scl").write_text("program sum(x: f32[n]) -> (s: f32[]) {\n  s = reduce_sum(x) {axes: [0]}\n}\n")
    scalide = WORK / "prefix/bin/scalide"
    assert "1 kernels in 1 steps" in run(scalide, "build", "sum.scl", "--shared", "-o", "sum", cwd=WORK)
    assert (WORK / "sum/libsum.so").exists()
    (halide,) = [line for line in run("ldd", scalide).splitlines() if "libHalide" in line]
    assert f"=> {WORK / 'prefix'}/" in halide, halide


def custom_operator():
    print(run(build_example("custom_operator") / "custom_operator"))


def project(name, calls, **files):
    """Writes a project of these CMake calls, in which Scalide is found, and these files; returns its folder."""
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    start = "cmake_minimum_required(VERSION 3.25)\nproject(user LANGUAGES C CXX)\n"
    (folder / "CMakeLists.txt").write_text(start + calls)
    for file, text in files.items():
        (folder / file.replace("_dot_", ".")).write_text(text)
    return folder


def configure(folder, installed="prefix", *options):
    return run("cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={WORK / installed}", *options)


def fails(*command, **options):
    """Returns the output of a command that must fail."""
    try:
        run(*command, **options)
    except AssertionError as failure:
        return " ".join(str(failure).split())
    raise AssertionError(f"succeeded: {command}")


# The messages of add_scalide_library(l ...) about its arguments.
WRONG_CALLS = {
    "PROGRAM sum.scl NUMERIC bf16 FOO": "unknown keyword 'NUMERIC'. Did you mean 'NUMERICS'?",
    "PROGRAM sum.scl bf16": "unknown keyword 'bf16'. One of: GENERATOR, PROGRAM, OPERATORS_FILE, NUMERICS,",
    "OPERATORS add NUMERIC bf16": "unknown keyword 'NUMERIC'. Did you mean 'NUMERICS'?",
    "PROGRAM sum.scl NUMERICS": "NUMERICS needs a value",
    "PROGRAM sum.scl NUMERICS f32 NUMERICS bf16": "NUMERICS is given twice",
    "PROGRAM sum.scl NUMERICS bf61": "NUMERICS must be a built-in policy or a .yaml file, got 'bf61'. Did you mean 'bf16'?",
    "PROGRAM sum.scl NUMERICS nowhere.yaml": "NUMERICS must exist, got",
    "PROGRAM nowhere.scl": "PROGRAM must exist, got",
    "PROGRAM sum": "without GENERATOR, PROGRAM must be a .scl file, got 'sum'",
    "PROGRAM sum GENERATOR none": "GENERATOR must be a target of add_scalide_generator, got 'none'",
    "PROGRAM sum.scl RULES nope.yaml": "RULES must exist, got",
    "OPERATORS add sofmax": "unknown operator 'sofmax'. Did you mean 'softmax'? 'scalide rules' lists the operators.",
    "OPERATORS add own_op": "unknown operator 'own_op'. 'scalide rules' lists the operators.",
    "PROGRAM sum.scl PARAMETERS width": "PARAMETERS must be name=value, got 'width'",
    "PROGRAM sum.scl STATISTICS 0": "STATISTICS must be a positive number of steps, got '0'",
    "PROGRAM sum.scl STATISTICS often": "STATISTICS must be a positive number of steps, got 'often'",
    "PROGRAM sum.scl STATISTICS": "STATISTICS needs a value",
    "PROGRAM sum.scl SHARED SHARED": "SHARED is given twice",
    "PROGRAM sum.scl OPERATORS add": "PROGRAM cannot be used with OPERATORS",
    "PROGRAM sum.scl DTYPES f16": "DTYPES cannot be used with PROGRAM",
    "PROGRAM sum.scl TARGETS x86-64-v2 x86-64-v9": "unknown CPU 'x86-64-v9'. Did you mean 'x86-64-v2'? One of: host, x86-64-v2, x86-64-v3,",
    "PROGRAM sum.scl TARGETS x86-64-v2 cuda": "unknown CPU 'cuda'. One of: host, x86-64-v2, x86-64-v3, x86-64-v4, x86-64-v4+amx, or a Halide target such as",
    "PROGRAM sum.scl TARGET z80": "unknown target 'z80'. One of: host, x86-64-v2, x86-64-v3, x86-64-v4, x86-64-v4+amx, cuda, opencl, or a Halide target such as",
    "PROGRAM sum.scl TARGETS x86-64-v2 TARGET host": "TARGET cannot be used with TARGETS",
    "PROGRAM sum.scl TARGETS": "TARGETS needs a value",
    "NUMERICS f32": "needs PROGRAM, OPERATORS or OPERATORS_FILE",
}
SUM = "program sum(x: f32[n]) -> (s: f32[]) {\n  s = reduce_sum(x) {axes: [0]}\n}\n"


def cmake_words():
    for words, message in WRONG_CALLS.items():
        folder = project("words", f"find_package(Scalide REQUIRED)\nadd_scalide_library(l {words})\n", sum_dot_scl=SUM)
        said = fails("cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={WORK / 'prefix'}")
        assert f"add_scalide_library(l): {message}" in said, f"{words}: {said}"
    words_on_the_page()


def words_on_the_page():
    """docs/guides/cmake.md has a heading for each function of the module, and a row in a table for each of their words."""
    module, page = ((SOURCE / path).read_text() for path in ("generators/tool/cmake/AddScalide.cmake", "docs/guides/cmake.md"))
    lists = re.findall(r"set\((?:keywords|flags|single|several) ([A-Z_ ]+)\)", module)
    words = set(" ".join(lists).split())
    assert words == set(re.findall(r"^\| `([A-Z_]+)` \|", page, re.M)), words
    assert set(re.findall(r"^function\((add_scalide_\w+)", module, re.M)) == set(re.findall(r"^## (add_scalide_\w+)$", page, re.M))


def cmake_files():
    """A .scl program needs no generator; it and the policies that are read are dependencies. A target may have a name that is none of C."""
    calls = ("find_package(Scalide REQUIRED)\nadd_scalide_library(sum PROGRAM sum.scl NUMERICS own.yaml)\nadd_scalide_library(sum-2.x PROGRAM sum.scl)\n"
             "add_executable(a a.c)\n")  # fmt: skip
    base = "policy: base\nrules:\n  - {argument: x, store: f32}\n"
    folder = project("files", calls + "target_link_libraries(a PRIVATE sum sum-2.x)\n", sum_dot_scl=SUM, base_dot_yaml=base,
                     own_dot_yaml="policy: own\nextends: base.yaml\n",
                     a_dot_c='#include "sum.h"\n#include "sum_2_x.h"\nint main(void) { return sum_program() == sum_2_x_program(); }\n')
    header = folder / "build/sum.scalide/sum.h"
    configure(folder)
    run("cmake", "--build", folder / "build")
    assert "SCALIDE_F32" in header.read_text() or "f32[n]" in header.read_text(), header.read_text()
    run(folder / "build/a")
    for file, text, words in (("sum.scl", SUM.replace("x: f32[n]", "x: f32[many]"), "many"),
                              ("base.yaml", base.replace("f32", "bf16"), "bf16")):
        assert words not in header.read_text()
        (folder / file).write_text(text)
        run("cmake", "--build", folder / "build")
        assert words in header.read_text(), f"{file} is a dependency"


def several_cpus():
    """TARGETS makes one library for several CPUs, of a program and of a kernel list with a policy. The header names the CPUs."""
    calls = ("find_package(Scalide REQUIRED)\nset(cpus TARGETS x86-64-v2 x86-64-v3 x86-64-v4)\nadd_scalide_library(sum PROGRAM sum.scl ${cpus})\n"
             "add_scalide_library(list OPERATORS_FILE list.yaml NUMERICS bf16 ${cpus})\nadd_executable(a a.c)\n")
    folder = project("cpus", calls + "target_link_libraries(a PRIVATE sum list)\n", sum_dot_scl=SUM,
                     list_dot_yaml="- {op: dot_general, name: dot, shapes: {lhs: [b, 64], rhs: [64, 16]}, attributes: {contract: [[1], [0]]}}\n",
                     a_dot_c='#include "list.h"\n#include "sum.h"\n#include <stdio.h>\nint main(void) {\n'
                             '    float x[2] = {1, 2}, s = 0;\n    const int64_t extent = 2;\n    scalide_context *context;\n    scalide_binding *binding = 0;\n'
                             '    sum_arrays arrays = {scalide_dense_array(x, 0, SCALIDE_F32, 1, &extent), scalide_dense_array(&s, 0, SCALIDE_F32, 0, 0)};\n'
                             '    if (scalide_context_create(0, &context) || sum_bind(context, &arrays, &binding) || scalide_run(binding)) return 1;\n'
                             '    printf("%g %s\\n", s, scalide_program_target(list_dot_program()));\n    return 0;\n}\n')  # fmt: skip
    configure(folder)
    run("cmake", "--build", folder / "build")
    for name in ("sum", "list"):
        text = (folder / f"build/{name}.scalide/{name}.h").read_text()
        assert "for x86-64-v2, x86-64-v3, x86-64-v4." in text, text
    printed = run(folder / "build/a")
    assert printed.startswith("3 x86-64-linux-") and "avx" not in printed, printed


def operators():
    lines = run(build_example("operators") / "operators").splitlines()
    assert len(lines) == 10 and all("largest error" in line for line in lines), lines


def two_libraries():
    """Two libraries of operators in one application, in both orders of linking: each has functions of its own."""
    for first, second in (("mine", "other"), ("other", "mine")):
        calls = ("find_package(Scalide REQUIRED)\nadd_scalide_library(mine OPERATORS exp population_count)\nadd_scalide_library(other OPERATORS exp NUMERICS bf16)\n"
                 f"add_scalide_library(one OPERATORS population_count)\nadd_executable(a a.c)\ntarget_link_libraries(a PRIVATE {first} {second} one)\n")  # fmt: skip
        folder = project("two_libraries", calls, a_dot_c="""#include "mine.h"
#include "one.h"
#include "other.h"
#include <stdio.h>
int main(void) {
    printf("%s %s ", scalide_program_name(mine_exp_f32_program()), scalide_program_numerics(mine_exp_f32_program()));
    printf("%s %s ", scalide_program_name(other_exp_f32_program()), scalide_program_numerics(other_exp_f32_program()));
    printf("%s\\n", scalide_program_name(one_population_count_program()));
    return mine_population_count_program() == one_population_count_program();
}
""")
        configure(folder)
        run("cmake", "--build", folder / "build")
        assert run(folder / "build/a") == "mine_exp_f32 f32 other_exp_f32 bf16 one_population_count\n"


OWN_RULE = """op: radius
family: composite
doc: Returns sqrt(x * x + y * y).
operands: {x: T float, y: T float}
value: sqrt(x * x + y * y)
check: {domain: {x: [1, 2]}, cases: [{x: [m], y: [m]}]}
"""
OWN_GENERATOR = """#include "ir/type.h"
#include <scalide/generator.h>
using namespace scalide;
static_assert(mine::is_mine, "the project's own ir/type.h");
class Own : public Generator<Own> {
public:
    Input<Tensor> x{"x", f32, {"b"}}, y{"y", f32, {"b"}};
    Output<Tensor> r{"r", f32, {"b"}};
    void generate() override { r = radius(x, y); }
};
SCALIDE_REGISTER_GENERATOR(Own, own)
"""


def own_headers(folder):
    """Headers of the project in src that are called as ours."""
    for header in ("ir/type.h", "frontend/tensor.h", "expr/error.h", "tool/tool.h", "rulebook/rule.h"):
        (folder / "src" / header).parent.mkdir(parents=True, exist_ok=True)
        (folder / "src" / header).write_text("#pragma once\nnamespace mine { constexpr bool is_mine = true; }\n")


def own_generator():
    """A generator with a rule of its own and headers that are called as ours: it needs no option to find rules and policies, which are those of
    the prefix that it was built with. When the prefix moves, the message says how to name it."""
    prefixes = [WORK / name for name in ("moved", "moved_again")]
    for folder in prefixes:
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(WORK / "prefix", prefixes[0], copy_function=os.link, symlinks=True)
    policies = prefixes[0] / "share/scalide/rules/policies"
    (policies / "only_here.yaml").write_text((policies / "f32.yaml").read_text().replace("policy: f32", "policy: only_here"))
    calls = ("find_package(Scalide REQUIRED)\nadd_scalide_generator(own SOURCES own.cpp RULES radius.yaml)\ntarget_include_directories(own PRIVATE src)\n"
             "add_scalide_library(l GENERATOR own PROGRAM own)\nadd_scalide_library(same GENERATOR own PROGRAM own RULES radius.yaml NUMERICS bf16)\n"
             "add_executable(a a.c)\ntarget_link_libraries(a PRIVATE l same)\n")  # fmt: skip
    folder = project("own_generator", calls, own_dot_cpp=OWN_GENERATOR, radius_dot_yaml=OWN_RULE,
                     a_dot_c='#include "l.h"\n#include "same.h"\nint main(void) { return l_program() == same_program(); }\n')
    own_headers(folder)
    configure(folder, "moved")
    run("cmake", "--build", folder / "build")
    run(folder / "build/a")
    own = WORK / "own_elsewhere"
    shutil.copy(folder / "build/own", own)
    given = "--rules", folder / "radius.yaml", "--home", WORK / "prefix/share/scalide"
    with_options = {command: run(own, command, "own", *given) for command in ("explain", "inspect")}
    shutil.rmtree(folder)
    assert "only_here" in run(own, "policies")
    assert "radius" in run(own, "rules")
    assert run(own, "check", "--draws", "2").count("\nradius: ") == 1
    assert "1 kernels in 1 steps" in run(own, "build", "own", "-n", "only_here", "-o", WORK / "own_library")
    for command, printed in with_options.items():
        assert run(own, command, "own") == printed
    prefixes[0].rename(prefixes[1])
    variables = {"LD_LIBRARY_PATH": str(prefixes[1] / "lib/scalide")}
    for command in (("policies",), ("explain", "own")):
        said = fails(own, *command, variables=variables)
        message = (f"error: cannot find the rules of Scalide: there is no folder {prefixes[0]}/share/scalide/rules, which this executable was "
                   "built with. Set --home or the environment variable SCALIDE_HOME to PREFIX/share/scalide of an installation")  # fmt: skip
        assert message in said, said
    assert "only_here" in run(own, "policies", "--home", prefixes[1] / "share/scalide", variables=variables)
    assert "sqrt" in run(own, "inspect", "own", variables=variables | {"SCALIDE_HOME": str(prefixes[1] / "share/scalide")})


def hello():
    assert run(build_example("hello") / "hello") == "y = 2.000 * x + 1.000, loss 0.000000\n"


POLICIES = ["f32", "bf16", "f16_scaled", "f8_scaled", "f8_master"]


def trained(build, epochs, *options):
    """Trains, writes the runs to build/runs, and returns the rows of the JSON file by policy."""
    shutil.rmtree(build / "runs", ignore_errors=True)
    print(run(build / "digits_train", "--epochs", epochs, "--json", build / "rows.json", "--runs", build / "runs", *options))
    rows = {row["policy"]: row for row in json.loads((build / "rows.json").read_text())}
    assert list(rows) == POLICIES, rows
    return rows


def lines_of(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def check_run(folder, steps, row):
    """The files of a run have the loss of each step, the accuracy of each epoch, and the statistics of each tenth step, with counts that fit."""
    metrics = lines_of(folder / "metrics.jsonl")
    assert [line["step"] for line in metrics if "loss" in line] == list(range(steps)), metrics
    assert [round(line["accuracy"], 6) for line in metrics if "accuracy" in line] == [round(value, 6) for value in row["accuracy"]], (metrics, row)
    header, *lines = lines_of(folder / "statistics.jsonl")
    assert header["program"] == f"digits_{folder.name}" and header["numerics"] == folder.name and {t["tensor"] for t in header["tensors"]} >= {"w1", "h1", "logits_gradient"}, header
    assert [line["step"] for line in lines] == list(range(0, steps, 10)), [line["step"] for line in lines]
    for line in lines:
        sizes = line.get("elements") or [tensor["elements"] for tensor in header["tensors"]]
        for name in ("zeros", "saturated", "subnormal", "non_finite"):
            shares = [count / size for count, size in zip(line.get(name, []), sizes, strict=True) if count is not None]
            is_counted = folder.name != "f32" or name in ("subnormal", "non_finite")  # f32 rounds nothing
            assert bool(shares) == is_counted and all(0 <= share <= 1 for share in shares), (folder.name, name, line)


def digits():
    """The five runs, their files, and their page. In a healthy run, each finding says that nothing unusual was found."""
    build = build_example("digits")
    rows = trained(build, 4)
    assert min(row["accuracy"][-1] for row in rows.values()) > 0.8, rows
    steps = 4 * 24  # 1,500 images in batches of 64
    for policy, row in rows.items():
        check_run(build / "runs" / policy, steps, row)
    again = fails(build / "digits_train", "--epochs", "1", "--runs", build / "runs")
    assert f"cannot write the run {build}/runs/f32: the folder exists. Remove it, or name another one with --runs." in again, again
    assert "--epochs must be a number that is at least 1, got '0'." in fails(build / "digits_train", "--epochs", "0")
    if not (WORK / "prefix/share/scalide/pages/plotly.min.js").exists():
        print("without the page: Scalide was configured without plotly")
        return
    page = build / "page.html"
    *findings, last = run(build / "digits_generator", "report", "digits_step", *(build / "runs" / policy for policy in POLICIES), "-o", page).splitlines()
    assert [line.split(" was found")[0] for line in findings] == [f"good: {policy}: Nothing unusual" for policy in POLICIES], findings
    assert last == str(page), last
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.S)[1])
    assert [each["name"] for each in data["runs"]] == [policy["name"] for policy in data["policies"]] == POLICIES, data["policies"]
    assert data["findings"][0]["text"].startswith("f32: Nothing unusual was found in "), data["findings"][0]


def digits_fp8():
    """Each recipe trains what f32 trains, and the report has the scales that f8_delayed keeps: largest amax / largest number of the format."""
    program = build_example("digits_fp8") / "digits_fp8"
    recipes, delayed = (part.splitlines() for part in run(program, "--epochs", "4").split("\n\n"))
    rows = {name: [float(number) for number in numbers] for name, *numbers in map(str.split, recipes[1:])}
    assert list(rows) == ["f32", "f8_current", "f8_delayed", "f8_block"], rows
    for accuracy, first, last, _, _ in rows.values():
        assert accuracy > 0.8 and last < first / 4 and abs(last - rows["f32"][2]) < 0.02 * first, rows
    assert delayed[0] == "f8_delayed: scales and histories after some steps"
    tensors = set()
    for tensor, _, amax, largest, scale in map(str.split, delayed[2:]):
        limit = 57344 if tensor == "logits_gradient" else 448
        assert 0 < float(amax) <= float(largest) and abs(float(scale) * limit / float(largest) - 1) < 1e-3, delayed
        tensors.add(tensor)
    assert tensors == {"features", "last.kernel", "logits_gradient"}, tensors
    assert "unknown option '--epoch'. Options: --epochs N" in fails(program, "--epoch", "4")
    assert "--epochs must be a positive integer, got 'x'" in fails(program, "--epochs", "x")


def char_lm():
    """A run that is killed goes on with the same bits, and its loss falls. Each run also generates text."""
    options = ("-DCHAR_LM_LAYERS=1", "-DCHAR_LM_STEPS=40", "-DCHAR_LM_POLICIES=f32;f16_scaled")
    build = build_example("char_lm", None, *options)
    program, checkpoint = build / "char_lm", "checkpoint_40.safetensors"
    shutil.rmtree(build / "runs", ignore_errors=True)
    (build / "runs").mkdir()
    losses = {}
    for policy in ("f32", "f16_scaled"):
        whole, killed = build / f"runs/{policy}", build / f"runs/{policy}_killed"
        given = [program, "--policy", policy, "--steps", "40", "--every", "10", "--generate", "8", "--folder"]
        printed = run(*given, whole)
        losses[policy] = [float(loss) for loss in re.findall("held-out loss ([0-9.]+)", printed)]
        assert len(losses[policy]) == 4 and losses[policy][-1] < losses[policy][0] - 0.2 and "ms for each token" in printed, printed
        with subprocess.Popen([*given, killed], stdout=subprocess.DEVNULL) as child:
            while child.poll() is None and not (killed / "checkpoint_10.safetensors").exists():
                time.sleep(0.01)
            child.kill()
        assert "resumed after step" in run(*given, killed)
        assert (killed / checkpoint).read_bytes() == (whole / checkpoint).read_bytes(), policy
        steps = [json.loads(line)["step"] for line in (whole / "metrics.jsonl").read_text().splitlines() if '"loss"' in line]
        assert steps == list(range(40)), steps
    assert abs(losses["f16_scaled"][-1] / losses["f32"][-1] - 1) < 0.01, losses
    assert "--policy must be one of f32, f16_scaled, got 'f8'" in fails(program, "--policy", "f8")
    assert "--steps must be a positive integer, got '0'" in fails(program, "--steps", "0")
    empty = build / "runs/empty"
    empty.mkdir()
    assert f"{empty}: must have text files" in fails(program, "--text", empty)


def data_parallel():
    """The C++ program gives all ranks the same bits, over Open MPI and over MPICH, and the loss of one rank. Its state loads on more ranks."""
    program = build_example("data_parallel", None, "-DDATA_PARALLEL_POLICIES=f32;f8_delayed") / "data_parallel"
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    launchers = {"mpirun.openmpi": ("--oversubscribe", "--mca", "btl", "self,vader"), "mpirun.mpich": ()}
    known = [(name, *options) for name, options in launchers.items() if shutil.which(name)]
    if not known:
        print("skipped: neither mpirun.openmpi nor mpirun.mpich is installed")
        sys.exit(77)
    losses, hashes = {}, {}
    for policy in ("f32", "f8_delayed"):
        for launcher in known:
            for ranks in (1, 2, 4):
                printed = run(*launcher, "-n", ranks, program, "--policy", policy, "--epochs", "2", "--save", WORK / f"ranks_{ranks}.safetensors")
                losses[policy, ranks] = float(re.findall("epoch 2: loss ([0-9.]+)", printed)[0])
                own = re.findall(r"rank \d of \d: parameters (\w+)", printed)
                assert len(own) == ranks and set(own) == {hashes.setdefault((policy, ranks), own[0])}, (launcher, printed)
        assert all(abs(losses[policy, ranks] / losses[policy, 1] - 1) < 1e-3 for ranks in (2, 4)), losses
    more = run(*known[0], "-n", 4, program, "--policy", "f8_delayed", "--epochs", "1", "--load", WORK / "ranks_2.safetensors")
    assert float(re.findall("epoch 1: loss ([0-9.]+)", more)[0]) < losses["f8_delayed", 2], more
    assert "--batch must be a multiple of the number of ranks, 2, got 61" in fails(*known[0], "-n", 2, program, "--batch", "61")


def fp8_encoder():
    """Each switch adds a row, and its loss follows that of f32."""
    program = build_example("fp8_encoder", None, "-DENCODER_PARAMETERS=layers=2;batch=2;length=32;width=64;heads=4") / "fp8_encoder"
    rows = [line.split() for line in run(program, "--mixed", "--fp8", "--steps", "30").splitlines()[1:]]
    assert [row[0] for row in rows] == ["f32", "bf16", "f8_delayed"], rows
    reference = float(rows[0][4])
    for _, _, _, first, last, _ in rows:
        assert float(last) < float(first) / 2 and abs(float(last) - reference) < 0.02 * float(first), rows
        assert abs(float(first) - float(rows[0][3])) < 0.01 * float(first), "fit_scales changed a parameter"
    assert len(run(program, "--steps", "1").splitlines()) == 2
    assert "unknown option '--fp16'. Options: --mixed, --fp8" in fails(program, "--fp16")
    assert "--steps must be a positive integer, got ''" in fails(program, "--steps")


def digits_opencl():
    """The same training on an OpenCL device: every loss and statistic equals that of the CPU, but where the CPU adds bf16 products in pairs."""
    devices = subprocess.run([WORK / "prefix/bin/scalide", "devices", "opencl"], capture_output=True, text=True)
    if devices.returncode != 0:
        print(devices.stderr)
        sys.exit(SKIPPED)
    builds = on_device, on_cpu = build_example("digits", "digits_opencl", "-DDIGITS_TARGET=opencl"), WORK / "digits/build"
    device_rows, cpu_rows = (trained(build, 1) for build in builds)
    for name in POLICIES:
        device, cpu = device_rows[name], cpu_rows[name]
        print(name, device["loss"], cpu["loss"])
        assert abs(device["loss"][0] - cpu["loss"][0]) < 1e-4
        if name != "bf16":
            assert all(device[key] == cpu[key] for key in ("loss", "accuracy")), name
            (device_header, *device_lines), (cpu_header, *cpu_lines) = (lines_of(build / f"runs/{name}/statistics.jsonl") for build in builds)
            assert device_header["tensors"] == cpu_header["tensors"] and len(device_lines) == len(cpu_lines) == 3, name
            for line, other in zip(device_lines, cpu_lines):
                means, other_means = line.pop("rms"), other.pop("rms")  # sums in f32, which a device adds in another order
                assert {**line, "time": 0} == {**other, "time": 0}, (name, line, other)
                assert all(a is b or abs(a - b) <= 1e-6 * b for a, b in zip(means, other_means, strict=True)), (name, means, other_means)


def digits_cuda():
    """Whole plans through the CUDA driver's interface: on its stand-in they bind and launch, whatever they compute; without a driver the
    program says what is missing."""
    build = build_example("digits", "digits_cuda", "-DDIGITS_TARGET=cuda", "-DDIGITS_CUDA_ARCH=90")
    for driver, words in (("no_driver", "digits_train: cannot load the CUDA driver: "), ("standin_cuda", "f8_master  ")):
        environment = {**os.environ, "LD_LIBRARY_PATH": str(BUILD / "tests/device" / driver)}
        result = subprocess.run([build / "digits_train", "--epochs", "1", "--runs", build / f"runs-{driver}"], capture_output=True, text=True, env=environment)
        assert words in result.stdout + result.stderr, result
        assert result.returncode == (driver == "no_driver"), result


def proof():
    """The training program of `digits`: no part of the generator, and of Halide only the few names that the runtime defines."""
    program = WORK / "digits/build/digits_train"
    libraries = [line.split()[0] for line in run("ldd", program).splitlines()]
    foreign = [name for name in libraries if not re.match(rf"(.*/)?({SYSTEM_LIBRARIES})\.so", name)]
    assert not foreign, foreign
    symbols = {line.split()[-1] for line in run("nm", program).splitlines() if line.strip()}
    assert len(symbols) > 100 and "main" in symbols, "nm reads the program"
    foreign = sorted(name for name in symbols if re.search(FOREIGN, name))
    assert not foreign, foreign
    assert {name for name in symbols if name.startswith("halide_")} <= HALIDE_HOOKS, {n for n in symbols if n.startswith("halide_")}


FIRST = """#include "sum.h"
#include <stdio.h>
int main(void) {
    float x[] = {1, 2, 3}, s = 0;
    const int64_t shape[] = {3};
    const scalide_array arrays[] = {scalide_dense_array(x, NULL, SCALIDE_F32, 1, shape), scalide_dense_array(&s, NULL, SCALIDE_F32, 0, NULL)};
    scalide_context *context;
    scalide_binding *binding = NULL;
    if (scalide_context_create(NULL, &context) != SCALIDE_OK) return 1;
    scalide_status status = scalide_bind(context, sum_program(), arrays, 2, &binding);
    if (status == SCALIDE_OK) status = scalide_run(binding);
    printf("%s %g\\n", status == SCALIDE_OK ? "sum" : scalide_message(context), s);
    scalide_binding_destroy(binding);
    scalide_context_destroy(context);
    return 0;
}
"""
#: Without these packages a project can still use the component `runtime`.
NO_DEPENDENCIES = [f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in ("yaml-cpp", "fmt", "CLI11", "nlohmann_json")]


def install_runtime(folder):
    shutil.rmtree(folder, ignore_errors=True)
    run("cmake", "--install", BUILD, "--component", "runtime", "--prefix", folder)
    return folder


def components():
    """The component `runtime` is small and needs no other package. Wrong components give one clear error."""
    runtime = install_runtime(WORK / "runtime")
    files = {str(path.relative_to(runtime)) for path in runtime.rglob("*") if path.is_file()}
    strange = [name for name in files if not re.fullmatch(r"include/scalide/\w+\.hp?p?|lib/(libscalide_runtime\.(a|so\.\d+)|scalide/libscalide_runtime\.so|"
                                                         r"pkgconfig/scalide-runtime(-shared)?\.pc|cmake/Scalide/.*)", name)]
    assert not strange and len(files) > 8, files
    assert sum((runtime / name).stat().st_size for name in files) < 2.5e6
    use = "add_executable(a a.c)\ntarget_link_libraries(a PRIVATE Scalide::runtime)\n"
    main = "#include <scalide/scalide.h>\nint main(void) { return scalide_program_device == 0; }\n"
    for call, installed in (("COMPONENTS runtime", "runtime"), ("", "runtime"), ("COMPONENTS runtime", "prefix"),
                            ("COMPONENTS runtime OPTIONAL_COMPONENTS generator", "runtime")):
        folder = project("uses_runtime", f"find_package(Scalide 0.1 REQUIRED {call})\n{use}", a_dot_c=main)
        configure(folder, installed, *NO_DEPENDENCIES)
        run("cmake", "--build", folder / "build")
    for calls, installed, message in (
            ("find_package(Scalide REQUIRED COMPONENTS runtim)", "prefix", "unknown component 'runtim'. Did you mean 'runtime'? One of: runtime, generator"),
            ("find_package(Scalide REQUIRED COMPONENTS generator)", "runtime", f"cannot use component 'generator': it is not in {runtime}/. Install it: "),
            ("find_package(Scalide REQUIRED)\nadd_scalide_library(l OPERATORS add)", "runtime", "add_scalide_library(l): needs the component 'generator' of Scalide."),
            ("find_package(Scalide 0.9 REQUIRED)", "prefix", 'requested version "0.9"')):
        said = fails("cmake", "-S", project("components", calls + "\n"), "-B", WORK / "components/build", f"-DCMAKE_PREFIX_PATH={WORK / installed}")
        assert message.replace(f"{runtime}/.", f"{runtime}.") in said, said


def pkg_config():
    """The .pc file has no absolute path, so it works in a prefix that has moved."""
    moved = install_runtime(WORK / "runtime before").rename(WORK / "runtime_moved")
    variables = {"PKG_CONFIG_PATH": str(moved / "lib/pkgconfig")}
    flags = run("pkg-config", "--cflags", "--libs", "scalide-runtime", variables=variables).split()
    (WORK / "sum.scl").write_text(SUM)
    run(WORK / "prefix/bin/scalide", "build", "sum.scl", "-o", "pkg_config", cwd=WORK)
    (WORK / "pkg_config/a.c").write_text(FIRST)
    run("cc", "a.c", "libsum.a", *flags, "-o", "a", cwd=WORK / "pkg_config")
    assert run(WORK / "pkg_config/a") == "sum 6\n"


def exported():
    """A project installs its kernels, static and shared. Another one uses them when the first one, its build and the generator are gone.
    Folders may have spaces and letters of any language."""
    calls = """find_package(Scalide REQUIRED)
add_scalide_library(sum PROGRAM sum.scl)
add_scalide_library(shared_sum SHARED PROGRAM sum.scl NUMERICS bf16)
add_executable(a a.c)
target_link_libraries(a PRIVATE sum)
install(TARGETS sum shared_sum EXPORT app)
install(EXPORT app NAMESPACE app:: DESTINATION lib/cmake/app FILE appConfig.cmake)
"""
    use = """set(CMAKE_CONFIGURATION_TYPES Release)
find_package(Scalide REQUIRED COMPONENTS runtime)
find_package(app REQUIRED)
add_executable(a a.c)
target_link_libraries(a PRIVATE app::sum app::shared_sum)
"""
    main = FIRST.replace('#include "sum.h"', '#include "shared_sum.h"\n#include "sum.h"').replace("{\n    float", "{\n    puts(scalide_program_numerics(shared_sum_program()));\n    float")
    install_runtime(WORK / "runtime_only")
    for generator in ("Unix Makefiles", "Ninja Multi-Config"):
        app, library = project("gr\u00f6\u00dfe \u6570 app", use, a_dot_c=main), project("gr\u00f6\u00dfe \u6570 library", calls, sum_dot_scl=SUM, a_dot_c=FIRST)
        prefix = WORK / "gr\u00f6\u00dfe \u6570 prefix"
        shutil.rmtree(prefix, ignore_errors=True)
        run("cmake", "-S", library, "-B", library / "build", "-G", generator, "-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_PREFIX_PATH={WORK / 'prefix'}")
        run("cmake", "--build", library / "build", "--config", "Release", "--parallel", "2")
        built = library / "build" / ("Release/a" if "Multi" in generator else "a")
        assert run(built) == "sum 6\n"
        (library / "sum.scl").write_text(SUM.replace("  s = reduce_sum(x)", "  y = add(x, x)\n  s = reduce_sum(y)"))
        run("cmake", "--build", library / "build", "--config", "Release")
        assert run(built) == "sum 12\n", "a changed program is linked again"
        run("cmake", "--install", library / "build", "--config", "Release", "--prefix", prefix)
        shutil.rmtree(library)
        run("cmake", "-S", app, "-B", app / "build", "-G", generator, f"-DCMAKE_PREFIX_PATH={prefix};{WORK / 'runtime_only'}", *NO_DEPENDENCIES)
        run("cmake", "--build", app / "build", "--config", "Release")
        assert run(app / "build" / ("Release/a" if "Multi" in generator else "a")) == "bf16\nsum 12\n"


SUM_GENERATOR = """#include <scalide/generator.h>
using namespace scalide;
class Sum : public Generator<Sum> {
public:
    Input<Tensor> x{"x", f32, {"n"}};
    Output<Tensor> s{"s", f32, {}};
    void generate() override { s = reduce_sum(x, {0}); }
};
SCALIDE_REGISTER_GENERATOR(Sum, sum)
"""


def cross_build(name, toolchain, emulator=()):
    """Builds Scalide's runtime and an application with a toolchain file. The installed generator compiles its kernels, and an own one."""
    folder = project(name, f"""add_subdirectory("{SOURCE}" scalide)
add_scalide_library(sum PROGRAM sum.scl)
add_scalide_generator(own SOURCES own.cpp)
add_scalide_library(of_own GENERATOR own PROGRAM sum)
add_executable(a a.c)
target_link_libraries(a PRIVATE sum of_own)
""", sum_dot_scl=SUM, own_dot_cpp=SUM_GENERATOR, a_dot_c=FIRST.replace('#include "sum.h"', '#include "of_own.h"\n#include "sum.h"').replace(
        "return 0;", "return of_own_program() == NULL;"), toolchain_dot_cmake=toolchain)  # fmt: skip
    command = ["cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja", f"-DCMAKE_TOOLCHAIN_FILE={folder / 'toolchain.cmake'}"]
    said = fails(*command)
    assert "add_scalide_library(sum): needs the component 'generator' of Scalide. Use cmake -DSCALIDE_HOST_PREFIX=PREFIX" in said, said
    said = fails(*command, "-DSCALIDE_HOST_PREFIX=/nowhere")
    assert "SCALIDE_HOST_PREFIX must be the prefix of an installation of Scalide for the build machine, got '/nowhere'" in said, said
    run(*command, f"-DSCALIDE_HOST_PREFIX={WORK / 'prefix'}")
    run("cmake", "--build", folder / "build")
    assert run(*emulator, folder / "build/a") == "sum 6\n"
    return folder


def cross():
    """A toolchain file for this machine: without the extensions of its CPU."""
    folder = cross_build("cross", "set(CMAKE_SYSTEM_NAME Linux)\nset(CMAKE_SYSTEM_PROCESSOR x86_64)\n")
    assert '"x86-64-linux' in (folder / "build/sum.scalide/sum.json").read_text()


def cross_arm():
    """The same for another machine, which qemu emulates."""
    missing = [program for program in ("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++", "qemu-aarch64") if not shutil.which(program)]
    if missing:
        print(f"cannot test a cross build: no {', '.join(missing)} (Debian: g++-aarch64-linux-gnu, qemu-user)")
        sys.exit(SKIPPED)
    cross_build("cross_arm", "set(CMAKE_SYSTEM_NAME Linux)\nset(CMAKE_SYSTEM_PROCESSOR aarch64)\nset(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)\n"
                "set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)\n", ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"])  # fmt: skip


def subproject_of(name, add_scalide):
    folder = project(name, f"""set(CMAKE_CXX_STANDARD 23)
{add_scalide}
foreach(variable CMAKE_BUILD_TYPE CMAKE_POSITION_INDEPENDENT_CODE CMAKE_CXX_EXTENSIONS)
    if(DEFINED ${{variable}} AND ${{variable}})
        message(FATAL_ERROR "${{variable}} is ${{${{variable}}}}")
    endif()
endforeach()
if(NOT CMAKE_CXX_STANDARD EQUAL 23 OR TARGET reference)
    message(FATAL_ERROR "Scalide changes the project")
endif()
add_scalide_generator(own SOURCES own.cpp RULES radius.yaml)
target_include_directories(own PRIVATE src)
add_scalide_library(l GENERATOR own PROGRAM own)
add_scalide_library(sum PROGRAM sum.scl)
add_executable(a a.c)
target_link_libraries(a PRIVATE l sum)
install(TARGETS sum EXPORT app)
install(EXPORT app NAMESPACE app:: DESTINATION lib/cmake/app FILE appConfig.cmake)
""", sum_dot_scl=SUM, own_dot_cpp=OWN_GENERATOR, radius_dot_yaml=OWN_RULE, a_dot_c=FIRST)  # fmt: skip
    own_headers(folder)
    cache = (BUILD / "CMakeCache.txt").read_text()
    halide = Path(re.search(r"^SCALIDE_HALIDE_LIBRARY:\w+=(.*)$", cache, re.M)[1]).parents[1]
    configure(folder, "nothing", f"-DSCALIDE_HALIDE_ROOT={halide}")
    return folder


def subproject():
    """A project with Scalide as a part: its own settings do not change, and the functions are there."""
    for add in (f'add_subdirectory("{SOURCE}" scalide)', f'include(FetchContent)\nFetchContent_Declare(scalide SOURCE_DIR "{SOURCE}" BINARY_DIR scalide)\n'
                "FetchContent_MakeAvailable(scalide)"):  # fmt: skip
        folder = subproject_of("subproject", add)
        run("cmake", "--build", folder / "build", "--target", "scalide_installed_headers")
        assert (folder / "build/scalide/installed_headers/scalide/generator/ir/type.h").exists()


def subproject_build():
    """Builds it. This compiles the whole generator."""
    folder = subproject_of("subproject_build", f'add_subdirectory("{SOURCE}" scalide EXCLUDE_FROM_ALL)')
    run("cmake", "--build", folder / "build")
    assert run(folder / "build/a") == "sum 6\n"
    run("cmake", "--install", folder / "build", "--prefix", folder / "prefix")
    assert (folder / "prefix/lib/libsum.a").exists() and not (folder / "prefix/bin").exists()


TESTS = [prefix, tool, cmake_words, cmake_files, several_cpus, custom_operator, operators, two_libraries, own_generator, hello, digits, digits_fp8,
         fp8_encoder, char_lm, data_parallel, digits_opencl, digits_cuda, proof, components, pkg_config, exported, cross, cross_arm, subproject, subproject_build]  # fmt: skip
SKIPPED = 77  # an exit status

if __name__ == "__main__":
    BUILD, SOURCE, WORK = (Path(path).resolve() for path in sys.argv[1:4])
    {t.__name__: t for t in TESTS}[sys.argv[4]]()
    print("ok")
