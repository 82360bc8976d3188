"""The bytes of the messages of a group of ranks, as formulas. run_ranks counts them, and ranks.py and simulation.py compare the two."""
import json
import os
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
UNIT = 64  # a message consists of so many bytes
SENT_WHOLE = 64  # an array of at most so many elements goes to all ranks at once
WIRES = {"f32": 4, "f16": 2, "bf16": 2, "f8": 1}


def padded(size):
    return -(-size // UNIT) * UNIT


def of_array(elements, ranks, width):
    """The bytes to each rank in the exchange and in the collect of all_reduce. Below f32, a scale goes with each chunk."""
    if elements <= SENT_WHOLE:
        return 0, padded(4 * elements)
    each = padded(-(-elements // ranks) * width) + (UNIT if width < 4 else 0)
    return each, each


def sent(elements, ranks, width):
    """The bytes that a rank sends to other ranks."""
    return (ranks - 1) * sum(of_array(elements, ranks, width))


def ring(elements, ranks, width=2):
    """The bytes that a rank sends in a ring all-reduce."""
    return 2 * (ranks - 1) / ranks * elements * width


def char_lm_sizes(layers, width, length):
    """The elements of each parameter of examples/char_lm."""
    layer = 4 * [width * width, width] + [4 * width * width, 4 * width, 4 * width * width, width] + 4 * [width]
    return [256 * width, length * width] + layers * layer + [width, width, 256 * width]


def of_step(sizes, ranks, wire, least=256):
    """The bytes to each rank in the exchange and in the collect of a training step. Gradients of fewer than `least` elements are f32."""
    parts = [of_array(size, ranks, WIRES[wire] if size >= least else 4) for size in sizes]
    return sum(exchange for exchange, _ in parts), sum(collect for _, collect in parts) + UNIT  # the loss


class Builder:
    """Builds libraries into BUILD/performance and runs them by run_ranks."""

    def __init__(self, build):
        self.folder = build / "performance" / "ranks"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.tool, self.programs = build / "generators" / "scalide", build / "tests" / "performance"

    def build(self, command, name):
        subprocess.run([*map(str, command), "--name", name, "--output", self.folder, "--shared"], check=True, stdout=subprocess.DEVNULL)
        return name

    def reduction(self, elements, wire):
        """all_reduce of f32 elements, sent in a format."""
        name = f"reduce_{wire}_{elements}"
        operator = "all_reduce(x) {group: data}" if wire == "f32" else f"all_reduce_as(x) {{group: data, dtype: {'f8_e4m3fn' if wire == 'f8' else wire}}}"
        text = self.folder / f"{name}.scl"
        text.write_text(f"program {name} [data ranks] (x: f32[{elements}]) -> (y: f32[{elements}]) {{\n  y = {operator}\n}}\n")
        return self.build([self.tool, "build", text], name)

    def char_lm(self, policy, **parameters):
        name = "_".join(["char_lm", policy, *(f"{key}{value}" for key, value in parameters.items())])
        numerics = HERE / f"{policy}.yaml" if (HERE / f"{policy}.yaml").exists() else policy
        words = [word for key, value in parameters.items() for word in ("-p", f"{key}={value}")]
        return self.build([self.programs / "char_lm_ranks_generator", "build", "char_lm_ranks", "-n", numerics, *words], name)

    def run(self, how, ranks, name, rounds=1, runs=1, rival=None, launcher=(), library=None):
        command = [*launcher, self.programs / "run_ranks", how, ranks, self.folder / f"lib{name}.so", name, rounds, runs]
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **({"SCALIDE_MPI": library} if library else {}))
        done = subprocess.run([*map(str, command), *([str(rival)] if rival else [])], env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr}")
        return json.loads(done.stdout)


def print_table(title, columns, rows):
    print(f"\n{title}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |")
