"""Libraries for several instruction sets. Usage: cpu_test.py SCALIDE TEST [EMULATOR].

native: on this machine those for AVX2 and AVX-512 (where it has that) give the same bits; those without FMA are close.
emulated: under qemu, on CPUs that have no more, libraries for AVX2 and SSE4.1 give the bits that they give here, and one for AVX-512 is refused.
levels: each level of x86-64 that this machine has gives what the interpreter gives. A library for all levels gives the bits of the best one: here, and
under qemu on CPUs of lower levels.
amx: a library for AVX2 and AMX runs with tiles under EMULATOR (tests/cpu/amx). It gives the bits of AVX2 if the CPU lacks tiles, or the system refuses them.
host: `host` means the CPU that SCALIDE_HOST_TARGET names.
tool: under qemu, on a CPU without AVX-512, the tool compiles for that CPU, and the library gives the bits of one for x86-64-v3 that is compiled here.
"""
import errno
import random
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "support"))
from tool import Scratch, read_safetensors, safetensors, unpack_floats  # noqa: E402

SSE, AVX2 = "x86-64-linux-sse41", "x86-64-linux-sse41-avx-avx2-fma-f16c"
AVX512 = f"{AVX2}-avx512-avx512_skylake"
CPU_OF = {SSE: "Nehalem", AVX2: "Haswell"}
FLAGS_OF = {"x86-64-v2": {"sse4_1"}, "x86-64-v3": {"avx2", "fma", "f16c"}, "x86-64-v4": {"avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512cd"}}
# What code for x86-64-v4+amx uses besides tiles, in the programs of this folder. It has AVX-VNNI and AVX512-FP16, too: they use neither.
SAPPHIRE_RAPIDS = FLAGS_OF["x86-64-v4"] | {"avx512_bf16", "avx512_vnni", "avx512_vbmi2", "avx512_bitalg", "avx512vbmi", "avx512ifma", "gfni"}
CPU_OF_LEVEL = {"x86-64-v2": "Nehalem", "x86-64-v3": "Haswell"}
SHAPES = {"x": (37, 40), "w": (40, 24), "g": (24,), "k": (37, 24), "v": (24, 10), "q": (37, 40), "p": (40, 24)}
INTEGERS = {"k": ("I32", "i", range(7)), "q": ("I8", "b", range(-128, 128)), "p": ("I8", "b", range(-128, 128))}


def skip(reason):
    print(reason)
    sys.exit(77)


def cpu_flags():
    return set(re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.M)[1].split())


def write_inputs(scratch, rows=37):
    draw, tensors = random.Random(1), {}
    for argument, shape in SHAPES.items():
        shape = tuple(rows if extent == 37 else extent for extent in shape)
        count = 1
        for extent in shape:
            count *= extent
        if argument in INTEGERS:
            dtype, letter, values = INTEGERS[argument]
            tensors[argument] = (dtype, shape, struct.pack(f"<{count}{letter}", *draw.choices(values, k=count)))
        else:
            tensors[argument] = ("F32", shape, struct.pack(f"<{count}f", *(draw.gauss(0, 1) for _ in range(count))))
    scratch.write("in", safetensors(tensors))


def run(scratch, target, *emulator, program="kinds.scl", options=()):
    """Returns the results of `scalide run` as name -> (dtype, shape, bytes), or its process if it fails."""
    command = [*emulator, scratch.tool, "run", program, "-i", "in", "-o", "out", "--target", target, *options]
    result = subprocess.run(command, cwd=scratch.path, env=scratch.environment, capture_output=True, text=True, timeout=600)
    return read_safetensors(scratch.path / "out") if result.returncode == 0 else result


def distance(results, others):
    """The largest difference of f32, of the largest number of their array."""
    most = 0
    for name, tensor in results.items():
        if tensor[0] == "F32":
            a, b = unpack_floats(tensor[2]), unpack_floats(others[name][2])
            most = max(most, max(abs(x - y) for x, y in zip(a, b)) / max(map(abs, b)))
    return most


def native(scratch):
    has_avx512 = FLAGS_OF["x86-64-v4"] <= cpu_flags()
    avx2, sse = run(scratch, AVX2), run(scratch, SSE)
    print(f"without FMA {distance(sse, avx2):.2g} from AVX2")
    assert distance(sse, avx2) < 1e-5
    if has_avx512:
        assert run(scratch, AVX512) == avx2
    else:
        print("no AVX-512 here: libraries for it were not compared")


def emulated(scratch):
    qemu = shutil.which("qemu-x86_64") or skip("no qemu-x86_64 (Debian: qemu-user): nothing was emulated")
    for target, cpu in CPU_OF.items():
        here = run(scratch, target)  # first: nothing is compiled on the emulated CPU
        assert run(scratch, target, qemu, "-cpu", cpu) == here, target
    scratch.succeed("build", "kinds.scl", "-o", "lib", "--target", AVX512)
    refused = run(scratch, AVX512, qemu, "-cpu", CPU_OF[AVX2])
    assert refused.returncode == 1, refused
    assert "kinds: the CPU must have all features of the target" in refused.stderr and "but it has no avx512. Build the program for this CPU, or one library for several CPUs" in refused.stderr


def levels(scratch):
    present = [level for level, flags in FLAGS_OF.items() if flags <= cpu_flags()]
    qemu, every = shutil.which("qemu-x86_64"), ",".join(FLAGS_OF)
    for program, rows in (("kinds.scl", 37), ("constants.scl", 37), ("constants.scl", 5), ("constants.scl", 1)):
        write_inputs(scratch, rows)
        wanted = run(scratch, "host", program=program, options=("--interpret", "real"))
        results = {level: run(scratch, level, program=program) for level in present}
        for level, result in results.items():
            assert distance(result, wanted) < 1e-5, (program, rows, level)
            assert result.get("z") == wanted.get("z"), "products of integers are exact"
        assert run(scratch, every, program=program) == results[present[-1]], (program, rows)
        for level, cpu in CPU_OF_LEVEL.items() if qemu else ():
            assert run(scratch, every, qemu, "-cpu", cpu, program=program) == results[level], (program, rows, level)
    if qemu:
        refused = run(scratch, "x86-64-v3,x86-64-v4", qemu, "-cpu", CPU_OF_LEVEL["x86-64-v2"])
        assert refused.returncode == 1 and "but it has no avx. Build the program for this CPU, or one library for several CPUs" in refused.stderr, refused
    else:
        print("no qemu-x86_64 (Debian: qemu-user): the choice was tested only for the CPU of this machine")


def amx(scratch):
    emulator = sys.argv[3] if len(sys.argv) > 3 else skip("no emulated tile unit: the sanitizers, or no x86-64")
    if not SAPPHIRE_RAPIDS <= cpu_flags():
        skip("this machine has no " + ", ".join(sorted(SAPPHIRE_RAPIDS - cpu_flags())))
    level, both = "x86-64-v4+amx", "x86-64-v3,x86-64-v4+amx"
    refuse = {"LD_PRELOAD": emulator, "EMULATED_TILES_REFUSED": str(errno.ENOSPC)}
    plain = dict(scratch.environment)

    def results(target, program, **variables):
        scratch.environment.clear()
        scratch.environment.update(plain, **variables)
        return run(scratch, target, program=program)

    # Conversions to f16 are AVX512-FP16, which the emulator lacks.
    (scratch.path / "without_f16.scl").write_text((HERE / "kinds.scl").read_text().replace(" f16", " bf16"))
    for program in ("without_f16.scl", "constants.scl", "convolution.scl"):
        wanted = run(scratch, "host", program=program, options=("--interpret", "real"))
        today = results("x86-64-v3", program)
        tiles = results(level, program, LD_PRELOAD=emulator)
        assert isinstance(tiles, dict), tiles
        assert distance(tiles, wanted) < 1e-5 and tiles.get("z") == wanted.get("z"), program
        assert results(both, program, LD_PRELOAD=emulator) == tiles, program
        if program == "without_f16.scl":  # without products of bf16 or bytes, nobody asks for tiles
            assert results(level, program, **refuse) == tiles
            continue
        assert results(both, program, **refuse) == today, program
        refused = results(level, program, **refuse)
        assert refused.returncode == 1 and "the CPU has the AMX tiles of the target" in refused.stderr, refused
        assert "sigaltstack" in refused.stderr and "No space left on device. " in refused.stderr, refused.stderr
        refused = results(level, program, LD_PRELOAD=emulator, EMULATED_TILES_REFUSED=str(errno.EPERM))
        assert "(seccomp). " in refused.stderr, refused.stderr
        if "amx_tile" not in cpu_flags():
            assert results(both, program) == today, program
            lacking = results(level, program)
            assert lacking.returncode == 1 and "the CPU must have all features of the target" in lacking.stderr, lacking
    # A factor for each block of the depth: the operands are codes of f8 times f32, and the codes are multiplied by tiles. The emulated unit
    # refuses a tile without permission.
    scratch.write("blocks.scl", "program blocks(x: f32[37, 40], w: f32[40, 24]) -> (y: f32[37, 24]) {\n  y = dot(x, w)\n}\n")
    blocks = {"program": "blocks.scl", "options": ("-n", "f8_block")}
    today = run(scratch, "x86-64-v3", **blocks)
    scratch.environment["LD_PRELOAD"] = emulator
    tiles = run(scratch, level, **blocks)
    assert isinstance(tiles, dict) and distance(tiles, today) < 1e-5, tiles
    scratch.environment.update(refuse)
    refused = run(scratch, level, **blocks)
    assert refused.returncode == 1 and "the CPU has the AMX tiles of the target" in refused.stderr, refused
    scratch.environment.clear()
    scratch.environment.update(plain)


def host(scratch):
    named = scratch.succeed("build", "constants.scl", "-o", "named", "--target", "x86-64-v3")
    scratch.environment["SCALIDE_HOST_TARGET"] = "x86-64-v3"
    meant = scratch.succeed("build", "constants.scl", "-o", "meant")
    assert "\nfor x86-64-v3\n" in named and "\nfor this machine: x86-64-v3 (SCALIDE_HOST_TARGET)\n" in meant, meant
    assert " 0 compiled," in meant, "the kernels are those of x86-64-v3"
    assert "for x86-64-v3 (SCALIDE_HOST_TARGET)." in (scratch.path / "meant/constants.h").read_text()
    scratch.environment["SCALIDE_HOST_TARGET"] = ""
    assert "SCALIDE_HOST_TARGET" not in scratch.succeed("build", "constants.scl", "-o", "empty"), "an empty name is no name"


def tool(scratch):
    qemu = shutil.which("qemu-x86_64") or skip("no qemu-x86_64 (Debian: qemu-user): nothing was emulated")
    here = run(scratch, "x86-64-v3", program="constants.scl")
    shutil.rmtree(scratch.path / "cache")
    command = [qemu, "-cpu", CPU_OF_LEVEL["x86-64-v3"], scratch.tool, "build", "constants.scl", "-o", "lib"]
    built = subprocess.run(command, cwd=scratch.path, env=scratch.environment, capture_output=True, text=True, timeout=900)
    assert built.returncode == 0, built.stderr
    assert " 0 from the cache," in built.stdout and "\nfor this machine: x86-64-v3\n" in built.stdout, built.stdout
    assert run(scratch, "host", qemu, "-cpu", CPU_OF_LEVEL["x86-64-v3"], program="constants.scl") == here


TESTS = {test.__name__: test for test in (native, emulated, levels, amx, host, tool)}

if __name__ == "__main__":
    if "avx2" not in cpu_flags():
        skip("this machine has no AVX2")
    with Scratch(sys.argv[1]) as scratch:
        for program in ("kinds.scl", "constants.scl", "convolution.scl"):
            shutil.copy(HERE / program, scratch.path)
        scratch.environment.pop("SCALIDE_HOST_TARGET", None)
        write_inputs(scratch)
        TESTS[sys.argv[2]](scratch)
    print("ok")
