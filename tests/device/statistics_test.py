"""Statistics of a program that the emulated GPU runs: the counts and the bins are the numbers of the CPU. Usage: statistics_test.py SCALIDE SOURCE"""
import json
import random
import shutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from tool import Scratch, floats, safetensors, unpack_floats  # noqa: E402

#: Kernels of the two devices add f32 numbers in different orders.
TOLERANCE = 1e-6
COUNTS = ("elements", "zeros", "saturated", "subnormal", "non_finite", "first", "histogram")


def draw(count, seed):
    numbers = random.Random(seed)
    return floats(*(numbers.gauss(0, 1) * 2.0 ** -numbers.randint(0, 15) for _ in range(count)))


def inputs(batch):
    x = list(unpack_floats(draw(batch * 24, 1)))
    for place, number in enumerate((1000, -464, 464.001, 2.0**-10, 2.0**-9, 1e-30, 3e30, 2.0**-130, float("inf"), float("nan"))):
        x[7 * place] = number
    m = bytes(number % 60 for number in range(batch * 6))  # finite numbers of f16, many of them subnormal
    return safetensors({"x": ("F32", [batch, 24], floats(*x)), "w": ("F32", [24, 16], draw(24 * 16, 2)),
                        "m.data": ("F16", [batch, 3], m), "m.scale": ("F32", [], floats(0.5))})  # fmt: skip


def main(tool, source):
    folder = Path(source) / "tests/tool"
    with Scratch(tool) as scratch:
        for name in ("statistics.scl", "statistics.yaml"):
            shutil.copy(folder / name, scratch.path)
        for batch in (5, 65):
            scratch.write("in.safetensors", inputs(batch))
            run = ("run", "statistics.scl", "-n", "statistics.yaml", "-i", "in.safetensors", "-o", "out.safetensors", "--statistics", "--json")
            on_cpu, on_gpu = (json.loads(scratch.succeed(*run, *target)) for target in ((), ("--target", "cuda", "--cuda-arch", "90")))
            assert len(on_cpu) == len(on_gpu) >= 6
            for cpu, gpu in zip(on_cpu, on_gpu):
                for key, wanted in cpu.items():
                    got = gpu[key]
                    is_exact = key in COUNTS or not isinstance(wanted, float)
                    assert got == wanted if is_exact else abs(got - wanted) <= TOLERANCE * abs(wanted), (batch, cpu["tensor"], cpu["use"], key, got, wanted)
            x = next(row for row in on_gpu if row["tensor"] == "x" and row["format"] == "f8_e4m3fn")
            assert (x["saturated"], x["non_finite"], x["first"]) == (3, 2, 56) and x["zeros"] > 0, x
    print("ok")


if __name__ == "__main__":
    main(*sys.argv[1:])
