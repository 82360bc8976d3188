"""Measures what pictures show and no page has as a table: losses, magnitudes, times of kernels. Writes measured.json.

Usage: measure.py [PART...], with a Python that has scalide and JAX. PARTS lists the parts. All together take some minutes. Use a quiet machine.
"""
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import scalide
import scalide.jax

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "examples/scalify"))
import digits_data  # noqa: E402

POLICIES = ("f32", "bf16", "f16_master", "f8_row", "f8_master", "f8_delayed")
STEPS, EVERY, BATCH, RATE = 400, 10, 128, 0.5
TINY = 2.0**-20  # a loss times this number has gradients that f16 without scales rounds to 0
FILE = Path(__file__).with_name("measured.json")
BYTES = {"f32": 4, "i32": 4, "u32": 4, "bf16": 2, "f16": 2, "f8_e4m3fn": 1, "f8_e5m2": 1, "bool": 1, "i8": 1, "u8": 1}
ROUNDS = 100  # calls of which the fastest counts
WITHOUT_SCALES = """policy: f16_without_scales
rules:
  - {op: dot_general, operand: any, store: f16}
"""


def parameters(sizes, seed=0):
    random = np.random.default_rng(seed)
    return [(random.standard_normal((m, n), np.float32) / np.sqrt(m).astype(np.float32), np.zeros(n, np.float32)) for m, n in zip(sizes, sizes[1:])]


def network(p, x):
    for w, b in p[:-1]:
        x = jax.nn.relu(x @ w + b)
    return x @ p[-1][0] + p[-1][1]


def step(factor, rate=RATE):
    """Gradient descent. The loss is multiplied by the factor, and the rate divided by it."""

    def update(p, x, y):
        value, gradients = jax.value_and_grad(lambda p: factor * digits_data.cross_entropy(network(p, x), y))(p)
        return jax.tree_util.tree_map(lambda p, g: p - rate / factor * g, p, gradients), value / factor, gradients

    return update


def losses(policy, factor=1.0):
    """The losses of each tenth step, and the gradients of the last one."""
    images, labels = digits_data.load("train")
    p, curve, gradients = parameters((64, 128, 10)), [], None
    library = scalide.build(scalide.jax.trace(step(factor), p, images[:BATCH], labels[:BATCH]), numerics=policy)
    for number, (x, y) in enumerate(digits_data.batches(images, labels, BATCH, 1000)):
        if number == STEPS:
            break
        state = library.init(p, x, y) if number == 0 else state
        results = library(p, x, y, state) if state else (library(p, x, y), state)
        (p, value, gradients), state = results
        curve.append(float(value))
    means = [float(np.mean(curve[i : i + EVERY])) for i in range(0, STEPS, EVERY)]
    return [round(value, 5) for value in means], gradients


def magnitudes(arrays):
    """How many elements lie in [2^e, 2^(e+1)), by e."""
    values = np.abs(np.concatenate([np.asarray(array, np.float64).ravel() for array in arrays]))
    values = values[values > 0]
    exponents, counts = np.unique(np.floor(np.log2(values)).astype(int), return_counts=True)
    return {str(e): int(c) for e, c in zip(exponents, counts)}


def tensors():
    """Magnitudes of weights, activations and gradients of the network after training in f32."""
    _, gradients = losses("f32")
    images, _ = digits_data.load("train")
    return {"weights": magnitudes([w for w, _ in parameters((64, 128, 10))]), "pixels": magnitudes([images[:BATCH]]),
            "gradients": magnitudes([g for g, _ in gradients]), "gradients of a loss times 2^-20": magnitudes([g * TINY for g, _ in gradients])}


def fastest(call, *arguments):
    """Microseconds of the fastest call."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        call(*arguments)
        times.append(time.perf_counter() - start)
    return min(times) * 1e6


def timed_step(sizes, batch):
    """A training step and its arguments. The rate is so small that all calls compute with about the same numbers."""
    p, random = parameters(sizes), np.random.default_rng(1)
    x, y = random.standard_normal((batch, sizes[0]), np.float32), np.eye(10, dtype=np.float32)[random.integers(0, 10, batch)]
    return scalide.jax.trace(lambda p, x, y: step(1.0, 1e-6)(p, x, y)[:2], p, x, y, donate_argnums=0), {"p": p, "x": x, "y": y}


def by_batch(sizes, policies=("f32", "bf16", "f8_master")):
    """Microseconds of a training step by batch size, on one core, so that other work disturbs little."""
    result = {policy: {} for policy in policies}
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    for batch in (1, 4, 16, 32, 64, 128, 256, 512):
        program, arguments = timed_step(sizes, batch)
        for policy in policies:
            result[policy][str(batch)] = round(fastest(scalide.build(program, numerics=policy), *arguments.values()), 1)
    os.sched_setaffinity(0, cores)
    return result


def profile(program, arguments, policy):
    """Microseconds, bytes and FLOPs of each kernel, by `scalide run --profile` and `scalide inspect`."""
    with tempfile.TemporaryDirectory() as folder:
        program_file, inputs = Path(folder, "program.scl"), Path(folder, "inputs.safetensors")
        program.save(program_file)
        scalide.save(inputs, arguments)
        options = [program_file, "-n", policy]
        listed = tool("inspect", *options)
        rows = tool("run", *options, "-i", inputs, "-o", Path(folder, "outputs.safetensors"), "--profile", "300")
    flops = dict(re.findall(r"^ *\d+  \w+ +(\w+)\n(?:     (?:fuses|recomputes).*\n)*     reads .*, (\d+) FLOPs$", listed, re.M))
    found = re.findall(r"^\d+ +(\w+) +([\d.]+) +[\d.]+ % +(\d+)", rows, re.M)
    return [{"kernel": name, "us": float(us), "bytes": int(size), "flops": int(flops.get(name, 0))} for name, us, size in found]


def tool(*arguments):
    return subprocess.run([scalide.tool_path(), *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def limits():
    """GB/s of a kernel that reads and writes 128 MB each, and GFLOP/s of a matmul 1024 x 1024 x 1024, on all cores."""
    large, square = np.ones(2**25, np.float32), np.ones((1024, 1024), np.float32)
    (copy,) = profile(scalide.jax.trace(lambda x: -x, large), {"x": large}, "f32")
    result = {"copy GB/s": round(copy["bytes"] / copy["us"] / 1e3, 1)}
    for policy in ("f32", "bf16"):
        rows = profile(scalide.jax.trace(lambda x, y: x @ y, square, square), {"x": square, "y": square}, policy)
        result[f"matmul {policy} GFLOP/s"] = round(2 * 1024**3 / sum(row["us"] for row in rows) / 1e3, 1)
    return result


def layer_program():
    """The training step of a transformer layer that docs/numbers.md defines."""
    page = (ROOT / "docs/numbers.md").read_text()
    code = re.search(r"```python\n(import re\n.*?)\nscalide\.jax\.trace", page, re.S)[1]
    names: dict = {}
    exec(code, names)
    arrays = names["ones"](4, 32, 64), names["ones"](4, 32, 64)
    return scalide.jax.trace(names["step"], names["p"], *arrays, donate_argnums=0)


def memory(program, policy):
    """Bytes of intermediate arrays that are alive at each step of the plan."""
    with tempfile.TemporaryDirectory() as folder:
        scalide.build(program, numerics=policy, output=folder)
        plan = json.loads(next(Path(folder).glob("*.json")).read_text())["programs"][0]
    given = {argument["name"] for argument in plan["arguments"]}
    alive = [0] * len(plan["steps"])
    for buffer in plan["buffers"]:
        size = int(np.prod(buffer["shape"])) * BYTES[buffer["dtype"]]
        for number in range(buffer["first_step"], buffer["last_step"] + 1) if buffer["name"] not in given else ():
            alive[number] += size
    return alive


def layer():
    """What reports say about the layer: operators after each pass, memory by step."""
    program = layer_program()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "layer.scl")
        program.save(file)
        costs = tool("inspect", file, "-n", "f8_master", "--costs").splitlines()[1:]
    return {"operators": {line.split()[0]: int(line.split()[2]) for line in costs},
            "memory": {policy: memory(program, policy) for policy in ("f32", "f8_master", "f8_scaled")}}  # fmt: skip


def rounding():
    """The largest relative error of a conversion, in each interval of an eighth of a power of two."""
    exponents = np.arange(-30, 20, 0.125)
    values = (2.0 ** (exponents[:, None] + np.linspace(0, 0.124, 64))).astype(np.float32)
    errors = {}
    for name, dtype in (("bf16", jnp.bfloat16), ("f16", jnp.float16), ("f8_e4m3fn", jnp.float8_e4m3fn), ("f8_e5m2", jnp.float8_e5m2)):
        library = scalide.build(scalide.jax.trace(lambda x: x.astype(dtype).astype(jnp.float32), values))
        wrong = np.abs(library(values) - values) / values
        errors[name] = [float(f"{min(error, 1.0):.3g}") if np.isfinite(error) else 1.0 for error in wrong.max(1)]
    return {"exponents": [float(e) for e in exponents], "errors": errors}


def tiny():
    """Losses of a loss times 2^-20, with and without scales."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as plain:
        plain.write(WITHOUT_SCALES)
        plain.flush()
        policies = {"f32": "f32", "matmuls in f16, without scales": plain.name, "f16_master": "f16_master"}
        return {name: losses(policy, TINY)[0] for name, policy in policies.items()}


def fit():
    """Both weights of examples/rust/fit.scl in each step, for the points of the example."""
    library = scalide.build(scalide.Program.load(ROOT / "examples/rust/fit.scl"))
    x, y, w, path = np.array([[0, 1], [1, 1], [1, -1], [-1, 1]], np.float32), np.array([1, 3, 1, -1], np.float32), np.zeros(2, np.float32), []
    for _ in range(30):
        path.append([round(float(value), 4) for value in w])
        _, w = library(x, y, w)
    return path


def softsign():
    """The operator of examples/custom_operator, and tanh, at some numbers."""
    x = np.linspace(-4, 4, 65, dtype=np.float32)
    text = "program both(x: f32[65]) -> (s: f32[65], t: f32[65]) {\n  s = softsign(x)\n  t = tanh(x)\n}\n"
    library = scalide.build(scalide.Program(text), rules=[ROOT / "examples/custom_operator/softsign.yaml"])
    return {name: [round(float(value), 4) for value in values] for name, values in zip(("x", "softsign", "tanh"), (x, *library(x)))}


#: What measured.json has, by name.
PARTS = {
    "losses": lambda: {policy: losses(policy)[0] for policy in POLICIES},
    "tiny losses": tiny,
    "magnitudes": tensors,
    "rounding": rounding,
    "layer": layer,
    "fit": fit,
    "softsign": softsign,
    "limits": limits,
    "profile": lambda: {policy: profile(*timed_step((784, 512, 512, 10), 128), policy) for policy in ("f32", "f8_master")},
    "small network": lambda: by_batch((64, 128, 10)),
    "large network": lambda: by_batch((784, 512, 512, 10)),
}


def main():
    known = json.loads(FILE.read_text()) if FILE.exists() else {}
    for name in sys.argv[1:] or PARTS:
        known[name] = {"date": datetime.date.today().isoformat(), "value": PARTS[name]()}
        FILE.write_text(json.dumps(known, separators=(",", ":")).replace('"date"', '\n"date"') + "\n")


if __name__ == "__main__":
    main()
