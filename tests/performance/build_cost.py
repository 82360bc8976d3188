#!/usr/bin/env python3
"""Measures the cost of a build by program size: processor seconds of `scalide inspect` (all passes and fusion, no compiler) for programs of more
and more layers, in several numerics. The last column is the growth: the exponent e where the time grows as layers^e, between the two largest
programs. 1 is linear.

Usage: build_cost.py [--tool TOOL] [--layers 4,12,48] [--numerics f32,f8_scaled] [--programs transformer] [--limit SECONDS] [--most-growth E] [--json FILE]
       build_cost.py --by-pass [the same]     a table for each program: seconds, nodes and memory behind each pass
       build_cost.py --print PROGRAM LAYERS   prints a program
The programs are training steps: `chain` (products and gelu, SGD), `transformer` (layer_norm, attention, MLP; AdamW), `clipped` (the transformer with
its gradients clipped by their global norm), `gru` (a GRU unrolled for as many steps as layers are asked, SGD). Besides: `clip`, the clipping of as
many tensors of 64 elements as layers are asked, and `elementwise`, a chain of as many nodes. --most-growth fails where the time grows faster.
"""
import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
BATCH, LENGTH, HIDDEN, HEADS = 4, 32, 64, 4
ROWS, INNER = BATCH * LENGTH, 4 * HIDDEN


def linear(x, w, c, out, columns):
    return f"""
  {out}_product = dot_general({x}, {w}) {{contract: [[1], [0]]}}
  {out}_bias = broadcast_in_dim({c}) {{dims: [1], shape: {[ROWS, columns]}}}
  {out} = add({out}_product, {out}_bias)"""


def chain_layer(i):
    """Shapes of the parameters, and lines from x{i} to x{i + 1}."""
    shapes = {f"w{i}": [HIDDEN, HIDDEN], f"c{i}": [HIDDEN]}
    return shapes, linear(f"x{i}", f"w{i}", f"c{i}", f"h{i}", HIDDEN) + f"\n  x{i + 1} = gelu_tanh(h{i})"


def transformer_layer(i):
    shapes = {f"g1_{i}": [HIDDEN], f"b1_{i}": [HIDDEN], f"wqkv_{i}": [HIDDEN, 3 * HIDDEN], f"cqkv_{i}": [3 * HIDDEN],
              f"wo_{i}": [HIDDEN, HIDDEN], f"co_{i}": [HIDDEN], f"g2_{i}": [HIDDEN], f"b2_{i}": [HIDDEN], f"w1_{i}": [HIDDEN, INNER],
              f"c1_{i}": [INNER], f"w2_{i}": [INNER, HIDDEN], f"c2_{i}": [HIDDEN]}  # fmt: skip
    lines = f"\n  n1_{i} = layer_norm(x{i}, g1_{i}, b1_{i})" + linear(f"n1_{i}", f"wqkv_{i}", f"cqkv_{i}", f"qkv_{i}", 3 * HIDDEN)
    for place, name in enumerate("qkv"):
        lines += f"""
  {name}_flat_{i} = slice(qkv_{i}) {{start: {[0, place * HIDDEN]}, limit: {[ROWS, (place + 1) * HIDDEN]}}}
  {name}_{i} = reshape({name}_flat_{i}) {{shape: {[BATCH, LENGTH, HEADS, HIDDEN // HEADS]}}}"""
    lines += f"""
  mixed_{i} = attention(q_{i}, k_{i}, v_{i}) {{causal: true}}
  joined_{i} = reshape(mixed_{i}) {{shape: {[ROWS, HIDDEN]}}}"""
    lines += linear(f"joined_{i}", f"wo_{i}", f"co_{i}", f"attended_{i}", HIDDEN)
    lines += f"\n  r_{i} = add(attended_{i}, x{i})\n  n2_{i} = layer_norm(r_{i}, g2_{i}, b2_{i})"
    lines += linear(f"n2_{i}", f"w1_{i}", f"c1_{i}", f"inner_{i}", INNER) + f"\n  a_{i} = gelu_tanh(inner_{i})"
    return shapes, lines + linear(f"a_{i}", f"w2_{i}", f"c2_{i}", f"outer_{i}", HIDDEN) + f"\n  x{i + 1} = add(outer_{i}, r_{i})"


def gru_layer(i):
    """A step; all steps share the parameters."""
    shapes = {f"{kind}{gate}": shape for gate in "zrn" for kind, shape in (("u", [HIDDEN, HIDDEN]), ("c", [HIDDEN]))}
    lines = "".join(linear(f"x{i}", f"u{gate}", f"c{gate}", f"h{gate}{i}", HIDDEN) + f"\n  {gate}{i} = logistic(h{gate}{i})" for gate in "zr")
    lines += f"\n  reset{i} = mul(r{i}, x{i})" + linear(f"reset{i}", "un", "cn", f"hn{i}", HIDDEN)
    return shapes, lines + f"""
  n{i} = tanh(hn{i})
  rest{i} = sub(1.0, z{i})
  new{i} = mul(rest{i}, n{i})
  old{i} = mul(z{i}, x{i})
  x{i + 1} = add(new{i}, old{i})"""


def sgd(name, shape):
    return [""], f"""
  {name}_step = mul(d_{name}, 0.01)
  {name}_next = sub({name}, {name}_step)"""  # fmt: skip


def adamw(name, shape):
    return ["", "m_", "v_"], f"""
  {name}_m0 = mul(m_{name}, 0.9)
  {name}_m1 = mul(d_{name}, 0.1)
  m_{name}_next = add({name}_m0, {name}_m1)
  {name}_square = mul(d_{name}, d_{name})
  {name}_v0 = mul(v_{name}, 0.999)
  {name}_v1 = mul({name}_square, 0.001)
  v_{name}_next = add({name}_v0, {name}_v1)
  {name}_root = sqrt(v_{name}_next)
  {name}_below = add({name}_root, 1e-06)
  {name}_ratio = div(m_{name}_next, {name}_below)
  {name}_decay = mul({name}, 0.01)
  {name}_both = add({name}_ratio, {name}_decay)
  {name}_step = mul({name}_both, 0.001)
  {name}_next = sub({name}, {name}_step)"""  # fmt: skip


def elementwise(count):
    """A chain of nodes, each of which reads the one before and the argument; its values stay where they are."""
    lines = "".join(f"\n  x{i + 1} = {('add', 'sub')[i % 2]}(x{i}, a)" for i in range(count))
    return f"program chain(x0: f32[1024] inout, a: f32[1024]) -> (x0 = x{count}) {{{lines}\n}}\n"


def clipping(shapes):
    """Returns lines from raw_NAME to d_NAME: gradients clipped to a global norm of 1."""
    lines, norm = "", None
    for name, shape in shapes.items():
        lines += f"\n  square_{name} = mul(raw_{name}, raw_{name})\n  part_{name} = reduce_sum(square_{name}) {{axes: {list(range(len(shape)))}}}"
        lines += f"\n  sum_{name} = add({norm}, part_{name})" if norm else ""
        norm = f"sum_{name}" if norm else f"part_{name}"
    lines += f"\n  norm = sqrt({norm})\n  is_small = lt(norm, 1.0)"
    for name in shapes:
        lines += f"\n  small_{name} = div(raw_{name}, norm)\n  d_{name} = select_n(is_small, small_{name}, raw_{name})"
    return lines


def clip(count):
    shapes = {f"g{i}": [8, 8] for i in range(count)}
    arguments = ", ".join(f"raw_{name}: {typed(shape)}" for name, shape in shapes.items())
    results = ", ".join(f"d_{name}: {typed(shape)}" for name, shape in shapes.items())
    return f"program clip({arguments}) -> ({results}) {{{clipping(shapes)}\n}}\n"


PROGRAMS = {"chain": (chain_layer, sgd), "transformer": (transformer_layer, adamw), "clipped": (transformer_layer, adamw), "gru": (gru_layer, sgd)}
BARE = {"clip": clip, "elementwise": elementwise}
NUMERICS = ["f32", "bf16", "f16_scaled", "f8_scaled"]


def typed(shape):
    return f"f32{shape}"


def program(name, layers):
    if name in BARE:
        return BARE[name](layers)
    layer, update = PROGRAMS[name]
    shapes, body = {}, ""
    for i in range(layers):
        more, lines = layer(i)
        shapes |= more
        body += lines
    data = {"x0": [ROWS, HIDDEN], "target": [ROWS, HIDDEN]}
    updates = {each: update(each, shape) for each, shape in shapes.items()}
    state = [(kind + each, shape) for each, shape in shapes.items() for kind in updates[each][0]]
    plain = ", ".join(f"{each}: {typed(shape)}" for each, shape in (data | shapes).items())
    inout = ", ".join([f"{each}: {typed(shape)}" for each, shape in data.items()] + [f"{each}: {typed(shape)} inout" for each, shape in state])
    gradients = ", ".join(f"{'raw' if name == 'clipped' else 'd'}_{each}" for each in shapes)
    clipped = clipping(shapes) if name == "clipped" else ""
    return f"""program model({plain}) -> (loss: f32[]) {{{body}
  error = sub(x{layers}, target)
  square = mul(error, error)
  loss = reduce_sum(square) {{axes: [0, 1]}}
}}
program step({inout}) -> (loss: f32[], {", ".join(f"{each} = {each}_next" for each, _ in state)}) {{
  loss, {gradients} = value_and_grad({", ".join(data | shapes)}) {{program: model, wrt: [{", ".join(shapes)}]}}{clipped}{"".join(lines for _, lines in updates.values())}
}}
"""


def seconds(tool, file, numerics, limit):
    """Returns processor seconds, or infinity if the time limit is exceeded."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        subprocess.run([tool, "inspect", "-n", numerics, file], check=True, stdout=subprocess.DEVNULL, timeout=limit)
    except subprocess.TimeoutExpired:
        return math.inf
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def print_passes(arguments):
    for name in arguments.programs:
        for numerics in arguments.numerics:
            for layers in arguments.layers:
                with tempfile.TemporaryDirectory(prefix="scalide-performance-") as scratch:
                    file = Path(scratch) / "program.scl"
                    file.write_text(program(name, layers))
                    print(f"\n{name}, {layers} layers, {numerics}", flush=True)
                    subprocess.run([arguments.tool, "inspect", "--costs", "-n", numerics, file], check=True, timeout=arguments.limit)


def measure(arguments, name, numerics):
    row = {"program": name, "numerics": numerics, "seconds": {}}
    with tempfile.TemporaryDirectory(prefix="scalide-performance-") as scratch:
        for layers in arguments.layers:
            file = Path(scratch) / f"{layers}.scl"
            file.write_text(program(name, layers))
            row["seconds"][layers] = seconds(arguments.tool, file, numerics, arguments.limit)
            if math.isinf(row["seconds"][layers]):
                break
    known = list(row["seconds"].items())[-2:]
    if len(known) == 2:
        (few, less), (many, more) = known
        row["growth"] = math.log(more / less) / math.log(many / few)
    return row


def words(kind):
    return lambda text: [kind(word) for word in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", type=Path, default=HERE.parents[1] / "build/generators/scalide")
    parser.add_argument("--layers", type=words(int), default=[4, 12, 48])
    parser.add_argument("--numerics", type=words(str), default=NUMERICS)
    parser.add_argument("--programs", type=words(str), default=list(PROGRAMS))
    parser.add_argument("--limit", type=float, default=300)
    parser.add_argument("--most-growth", type=float, default=math.inf)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--by-pass", action="store_true")
    parser.add_argument("--print", nargs=2, metavar=("PROGRAM", "LAYERS"))
    arguments = parser.parse_args()
    if arguments.print:
        print(program(arguments.print[0], int(arguments.print[1])), end="")
        return
    if arguments.by_pass:
        return print_passes(arguments)
    print(f"{'program':<12} {'numerics':<11}" + "".join(f"{layers:>5} layers" for layers in arguments.layers) + "   growth")
    rows = []
    for name in arguments.programs:
        for numerics in arguments.numerics:
            row = measure(arguments, name, numerics)
            rows.append(row)
            columns = "".join(f"{row['seconds'].get(layers, math.nan):>12.2f}" for layers in arguments.layers)
            print(f"{name:<12} {numerics:<11}{columns}{row.get('growth', math.nan):>9.2f}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    if any(not row.get("growth", 0) <= arguments.most_growth for row in rows):
        sys.exit(f"must grow at most as layers^{arguments.most_growth}")


if __name__ == "__main__":
    main()
