"""Pictures of the tables in docs/numbers.md."""
import re

from sources import number, printed, table
from style import LIGHT, axes, bars, log_ticks, percent, policy_color, svg

PAGE = "docs/numbers.md"


def step_speed():
    rows = table(PAGE, "A training step, compared with jax.jit")
    figure, plot = axes(6.4, 3.8)
    bars(plot, [row["policy"] for row in rows], {"Scalide": ([number(row["Scalide"]) for row in rows], LIGHT["blue"]),
                                                 "jax.jit": ([number(row["JAX"]) for row in rows], LIGHT["grid"])}, " ms")  # fmt: skip
    plot.set(title="One training step of an MLP 784-512-512-10, batch 128", xlabel="milliseconds")
    return svg(figure, "Time of a training step by policy, next to jax.jit")


def layer_bytes():
    rows = [line.split() for line in printed(PAGE, "policy      kernels")[1:]]
    figure, plot = axes(6.4, 3.6)
    start = [0.0] * len(rows)
    for column, name, color in ((2, "32 bits", "blue"), (3, "16 bits", "sky"), (4, "8 bits", "orange")):
        sizes = [int(row[column]) / 1e6 for row in rows]
        plot.barh([row[0] for row in rows], sizes, left=start, color=LIGHT[color], label=name)
        start = [a + b for a, b in zip(start, sizes)]
    for i, row in enumerate(rows):
        plot.text(start[i], i, f" {row[1]} kernels", va="center", fontsize=9)
    plot.invert_yaxis()
    plot.set(title="Bytes that one step of a transformer layer writes", xlabel="megabytes, by bits of an element")
    plot.set_xlim(0, 2.35)
    plot.legend()
    plot.grid(False, axis="y")
    return svg(figure, "Bytes that a transformer layer writes, by policy")


def training_deviation():
    rows = table(PAGE, "Does low precision train what f32 trains?")
    policies = [column for column in rows[0] if column != "network"]
    figure, plot = axes(6.4, 3.6)
    marks = "os^Dv"
    for mark, row in zip(marks, rows):
        plot.plot([number(row[policy]) for policy in policies], policies, mark, label=row["network"], alpha=0.8, color=LIGHT["blue"], fillstyle="none")
    plot.plot([number(rows[-1][policy]) for policy in policies], policies, "|", markersize=22, markeredgewidth=2, color=LIGHT["red"], label="allowed")
    plot.set_xscale("log")
    log_ticks(plot.xaxis, [1e-4, 1e-3, 1e-2, 0.1, 1], "{:g} %".format)
    plot.invert_yaxis()
    plot.set(title="Largest deviation of the loss from f32 in 200 steps")
    figure.legend(loc="outside lower center", ncols=3, fontsize=9)
    return svg(figure, "Deviation of the loss by policy and network")


def transformer_loss():
    rows = [row for row in table(PAGE, "A byte-level transformer") if "linear" not in row["policy"]]
    names = [re.sub(r" \(.*", "", row["policy"]) for row in rows]
    figure, plot = axes(6.4, 3.6)
    for name, row in zip(names, rows):
        if name.startswith("jax"):
            continue
        x, y = number(row["step"]), number(row["from f32"])
        plot.plot(x, y, "o", color=policy_color(name))
        plot.annotate(name, (x, y), (5, 4), textcoords="offset points", fontsize=9)
    plot.axhspan(-0.005, 0.005, color=LIGHT["grid"], alpha=0.5, linewidth=0)
    plot.set(title="Held-out loss of a byte-level transformer", xlabel="milliseconds of a step (jax.jit in f32: 55.6 ms)",
             ylabel="difference from f32 in nats")  # fmt: skip
    plot.margins(x=0.15, y=0.12)
    return svg(figure, "Held-out loss and time of a step, by policy")


def layers_speed():
    rows = table(PAGE, "Layers of networks, compared with oneDNN and torch")
    labels = [f"{row['layers']}, {row['sizes']}" for row in rows]
    figure, plot = axes(6.8, 4.4)
    for i, row in enumerate(rows):
        plot.plot([number(row["lowest"]), number(row["highest"])], [i, i], "-|", color=LIGHT["muted"], linewidth=2)
        plot.plot(number(row["geometric mean"]), i, "o", color=LIGHT["blue"])
    plot.axvline(1, color=LIGHT["red"], linewidth=1)
    plot.set_yticks(range(len(rows)), labels)
    plot.invert_yaxis()
    plot.set_xscale("log")
    log_ticks(plot.xaxis, [0.25, 0.5, 1, 2, 4], "{:g}x".format)
    plot.set(title="Speed compared with the faster of oneDNN and torch", xlabel="above 1x, Scalide is faster; dots: means")
    return svg(figure, "Speed of layers compared with oneDNN and torch")


def loops_speed():
    rows = table(PAGE, "Loops")
    figure, plot = axes(6.8, 4.2)
    labels = [row["program"] for row in rows]
    values = [number(row["speed-up"]) for row in rows]
    bars(plot, labels, {"f32": (values, LIGHT["blue"])}, "x")
    plot.set_xscale("log")
    plot.set_xlim(0.7, 90)
    log_ticks(plot.xaxis, [1, 2, 5, 10, 20, 40], "{:g}x".format)
    plot.axvline(1, color=LIGHT["red"], linewidth=1)
    plot.set_title("Speed-up over the faster of jax.jit and torch, in f32")
    return svg(figure, "Speed-up of programs of loops")


def constant_gain():
    rows = table(PAGE, "Constant weights")
    figure, plot = axes(6.4, 3.4)
    for label, color, mark in (("f32", "ink", "o"), ("bf16", "blue", "s"), ("u8 by i8", "green", "^"), ("f8_weights", "orange", "D")):
        chosen = [row for row in rows if row["format"] == label]
        plot.plot([number(row["m"]) for row in chosen], [number(row["gain"]) for row in chosen], f"-{mark}", label=label, color=LIGHT[color])
    plot.set_xscale("log")
    log_ticks(plot.xaxis, [1, 8, 64, 256], "{:g}".format)
    plot.set(title="Gain of constant weights, matrix 1024 x 1024", xlabel="rows of the other operand", ylabel="times as fast")
    plot.legend()
    return svg(figure, "Gain of constant weights by rows")


def fp8_steps():
    rows = table(PAGE, "FP8 steps on a CPU")
    figure, plot = axes(6.4, 4.2)
    bars(plot, [row["policy"] for row in rows], {name: ([number(row[name]) for row in rows], LIGHT[color]) for name, color in (("1 core", "sky"), ("2 cores", "blue"))}, " ms")
    plot.set(title="One training step of an MLP, batch 64", xlabel="milliseconds")
    return svg(figure, "Time of a training step in the FP8 policies")


def row_operators():
    rows = table(PAGE, "Operators along rows")
    figure, plot = axes(6.4, 4.2)
    bars(plot, [row["operator"] for row in rows],
         {size: ([number(row[size]) for row in rows], LIGHT[color]) for size, color in (("4096 x 256", "sky"), ("64 x 65536", "blue"))}, "x")  # fmt: skip
    plot.axvline(1, color=LIGHT["red"], linewidth=1)
    plot.set_title("Speed-up over the faster of jax.jit and torch, f32")
    return svg(figure, "Speed-up of operators along rows")


def gpu_share():
    rows = table(PAGE, "GPU", 1)
    figure, plot = axes(6.4, 3.6)
    then, now = list(rows[0])[-2:]
    for i, row in enumerate(rows):
        old, new = number(row[then]), number(row[now])
        plot.plot([old, new], [i, i], "-", color=LIGHT["muted"])
        plot.plot(old, i, "o", color=LIGHT["grid"], markeredgecolor=LIGHT["muted"])
        plot.plot(new, i, "o", color=LIGHT["blue"])
    plot.set_yticks(range(len(rows)), [row["kernel"] for row in rows])
    plot.invert_yaxis()
    plot.set_xscale("log")
    log_ticks(plot.xaxis, [0.3, 1, 3, 10, 30], "{:g}".format)
    plot.axvline(1, color=LIGHT["red"], linewidth=1)
    plot.set(title="Share of a copy that the instructions allow on an H100", xlabel="grey: 2026-11-26, blue: a day later")
    return svg(figure, "Instructions of GPU kernels, before and after a change")


def ranks_efficiency():
    rows = table(PAGE, "Simulated: up to 256 ranks")
    figure, plot = axes(6.4, 3.4)
    for policy, color in (("f32", "ink"), ("bf16", "blue"), ("f8_master", "orange"), ("f8_delayed", "purple")):
        chosen = [row for row in rows if row["policy"].startswith(policy)]
        plot.plot([number(row["ranks"]) for row in chosen], [100 * number(row["efficiency, GPU"]) for row in chosen], "-o", label=policy, color=LIGHT[color])
    plot.set_xscale("log")
    log_ticks(plot.xaxis, [2, 16, 64, 256], "{:g}".format)
    percent(plot.yaxis)
    plot.set_ylim(0, 100)
    plot.set(title="Simulated efficiency of 100 million parameters on GPUs", xlabel="ranks, each with a link of 100 Gbit/s")
    plot.legend(ncols=2)
    return svg(figure, "Simulated efficiency by ranks and policy")


def build_time():
    rows = table(PAGE, "Build time")
    labels = [" ".join(filter(None, (next(iter(row.values())), row["policy"]))) for row in rows]
    figure, plot = axes(6.4, 2.6)
    bars(plot, labels, {"time": ([number(row["time"]) for row in rows], LIGHT["blue"])}, " s")
    plot.set(title="From a JAX function to a library", xlabel="seconds")
    return svg(figure, "Time of a build")


PICTURES = {
    "step-speed": step_speed, "layer-bytes": layer_bytes, "training-deviation": training_deviation, "transformer-loss": transformer_loss,
    "layers-speed": layers_speed, "loops-speed": loops_speed, "constant-gain": constant_gain, "fp8-steps": fp8_steps, "row-operators": row_operators,
    "gpu-share": gpu_share, "ranks-efficiency": ranks_efficiency, "build-time": build_time,
}  # fmt: skip
