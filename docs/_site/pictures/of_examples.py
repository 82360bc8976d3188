"""Pictures of the examples, from what their README files and programs say."""
import re

from sources import measured, number, printed, table
from style import LIGHT, axes, bars, log_ticks, policy_color, svg


def two_columns(names, columns, description):
    """Two plots of bars that share their labels; a column has a title, values, a color and a unit."""
    figure, plots = axes(6.4, 0.9 + 0.35 * len(names), columns=2, sharey=True)
    for plot, (title, values, color, unit) in zip(plots, columns):
        drawn = plot.barh(names, values, color=LIGHT[color])
        plot.bar_label(drawn, [f" {value:.3g}{unit}" for value in values], fontsize=9, color=LIGHT["ink"])
        plot.set_title(title, fontsize=10, fontweight="normal")
        plot.margins(x=0.4)
        plot.grid(False, axis="y")
    plots[0].invert_yaxis()
    return svg(figure, description)


def example_digits():
    rows = [line.split() for line in printed("examples/digits/README.md", "policy")[1:]]
    return two_columns([row[0] for row in rows], (("test accuracy", [100 * float(row[1]) for row in rows], "blue", " %"),
                                                  ("bytes of the state", [float(row[3]) / 1e3 for row in rows], "orange", " kB")),
                       "Test accuracy and bytes of the state in five policies")  # fmt: skip


def example_digits_fp8():
    rows = [line.split() for line in printed("examples/digits_fp8/README.md", "recipe")[1:5]]
    return two_columns([row[0] for row in rows], (("test accuracy", [100 * float(row[1]) for row in rows], "orange", " %"),
                                                  ("milliseconds of a step", [float(row[5]) for row in rows], "blue", " ms")),
                       "Accuracy and time of a step of three FP8 recipes")  # fmt: skip


def example_char_lm():
    rows = table("examples/char_lm/README.md", "What the policies give")
    differences = {name: 1000 * (number(row["difference from f32"]) or 0) for row in rows for name in row["policy"].split(", ")}
    names = list(differences)
    figure, plot = axes(6.4, 3.8)
    plot.barh(names, differences.values(), color=[policy_color(name) for name in names])
    plot.axvline(0, color=LIGHT["ink"], linewidth=1)
    plot.invert_yaxis()
    plot.grid(False, axis="y")
    plot.set(title="A language model after 2,000 steps", xlabel="held-out loss, difference from f32 (1.056), in 0.001 nats")
    return svg(figure, "Held-out loss of a language model by policy")


def example_encoder():
    rows = [line.split() for line in printed("examples/fp8_encoder/README.md", "policy")[1:]]
    figure, plot = axes(6.4, 1.9)
    bars(plot, [row[0] for row in rows], {"ms": ([float(row[1]) for row in rows], LIGHT["blue"])}, " ms")
    plot.set(title="A training step of a transformer encoder, one thread", xlabel="milliseconds")
    return svg(figure, "Time of a training step of an encoder")


def example_operators():
    lines = printed("examples/operators/README.md", "add")
    found = [re.match(r"(\w+) +largest error (\S+) in f32, (\S+) in scaled f16", line) for line in lines]
    figure, plot = axes(6.4, 3.2)
    for group, color, name in ((2, "blue", "f32"), (3, "orange", "scaled f16")):
        plot.plot([max(float(match[group]), 1e-9) for match in found], [match[1] for match in found], "o", color=LIGHT[color], label=name)
    plot.set_xscale("log")
    log_ticks(plot.xaxis, [1e-9, 1e-7, 1e-5, 1e-3], lambda value: "exact" if value == 1e-9 else f"{value:.0e}")
    plot.invert_yaxis()
    plot.set(title="Largest error of ten operators", xlabel="difference from the formula")
    plot.legend()
    return svg(figure, "Largest error of single operators")


def example_ranks():
    rows = table("examples/data_parallel/README.md", "C++ and MPI")
    figure, plot = axes(6.4, 2.8)
    ranks = [column for column in rows[0] if "rank" in column]
    for row in rows:
        plot.plot([number(column) for column in ranks], [number(row[column]) for column in ranks], "o--" if row["policy"].startswith("f16") else "o-",
                  label=row["policy"], color=policy_color(row["policy"]))  # fmt: skip
    plot.set_xticks([1, 2, 4])
    plot.set_ylim(0.55, 0.57)
    plot.set(title="Loss after 5 epochs in 1, 2 and 4 processes", xlabel="ranks that share each batch", ylabel="loss")
    figure.legend(loc="outside lower center", ncols=4, fontsize=9)
    return svg(figure, "Loss after five epochs by number of ranks")


def example_scalify():
    rows = table("examples/scalify/README.md", "Run", 1)
    figure, plot = axes(6.4, 3)
    for row, color in zip(rows, ("green", "orange", "blue", "purple")):
        for column, style in (("losses, FP32", "-"), ("losses, scaled", "--")):
            plot.plot(range(1, 5), [float(loss) for loss in row[column].split()], style, color=LIGHT[color], label=row["script"] if style == "--" else None)
    plot.set_xticks(range(1, 5))
    plot.set(title="Loss of four scripts", xlabel="epoch; dashed: scaled, solid: FP32", ylabel="loss")
    plot.legend(fontsize=9)
    return svg(figure, "Loss of scaled and of FP32 training in four scripts")


def example_softsign():
    found = measured()["softsign"]["value"]
    figure, plot = axes(6.4, 2.8)
    for name, color in (("softsign", "orange"), ("tanh", "grid")):
        plot.plot(found["x"], found[name], color=LIGHT[color], linewidth=2, label=name)
    plot.set_title("An operator of seven lines, and tanh")
    plot.legend()
    return svg(figure, "The operator softsign")


def example_fit():
    path = measured()["fit"]["value"]
    figure, plot = axes(6.4, 2.8)
    for i, (name, color) in enumerate((("first weight", "blue"), ("second weight", "orange"))):
        plot.plot(range(len(path)), [weights[i] for weights in path], "o-", markersize=3, color=LIGHT[color], label=name)
    plot.set(title="Gradient descent to the weights 2 and 1", xlabel="step")
    plot.legend()
    return svg(figure, "Two weights by step")


PICTURES = {
    "example-digits": example_digits, "example-digits-fp8": example_digits_fp8, "example-char-lm": example_char_lm, "example-encoder": example_encoder,
    "example-operators": example_operators, "example-ranks": example_ranks, "example-scalify": example_scalify, "example-softsign": example_softsign,
    "example-fit": example_fit,
}  # fmt: skip
