"""Pictures of number formats: rounding errors, the ranges of real tensors, and scales over time."""
from sources import measured, printed
from style import LIGHT, axes, log_ticks, svg

#: Smallest subnormal, smallest normal and largest exponent of two.
WINDOWS = {"f16": (-24, -14, 16), "f8_e5m2": (-16, -14, 16), "f8_e4m3fn": (-9, -6, 9)}
FORMAT_COLORS = {"bf16": "blue", "f16": "green", "f8_e5m2": "purple", "f8_e4m3fn": "orange"}


def rounding_errors():
    found = measured()["rounding"]["value"]
    figure, plot = axes(6.4, 3.4)
    for name, errors in found["errors"].items():
        plot.plot(found["exponents"], [100 * error for error in errors], label=name, color=LIGHT[FORMAT_COLORS[name]])
    plot.set_yscale("log")
    log_ticks(plot.yaxis, [0.01, 0.1, 1, 10, 100], "{:g} %".format)
    plot.set_xticks(range(-30, 21, 10), [f"2^{e}" for e in range(-30, 21, 10)])
    plot.set(title="Largest relative error of one rounding, without a scale", xlabel="magnitude of the number")
    plot.legend(ncols=2)
    return svg(figure, "Rounding error of each format by magnitude")


def tensor_ranges():
    found = measured()["magnitudes"]["value"]
    figure, plots = axes(6.4, 6, rows=len(found), sharex=True)
    for plot, (name, counts) in zip(plots, found.items()):
        exponents, total = [int(e) for e in counts], sum(counts.values())
        plot.bar([e + 0.5 for e in exponents], [100 * count / total for count in counts.values()], 0.9, color=LIGHT["blue"])
        low, normal, high = WINDOWS["f8_e4m3fn"]
        plot.axvspan(low, normal, color=LIGHT["sand"], alpha=0.35, linewidth=0)
        plot.axvspan(normal, high, color=LIGHT["orange"], alpha=0.25, linewidth=0)
        plot.set_title(name, fontsize=10, fontweight="normal")
        plot.set_ylabel("%")
    plots[-1].set_xlim(-50, 12)
    plots[-1].set_xticks(range(-50, 11, 10), [f"2^{e}" for e in range(-50, 11, 10)])
    plots[-1].set_xlabel("magnitude; orange: the range of f8_e4m3fn, pale: its subnormal numbers")
    figure.suptitle("Magnitudes of a digit classifier in training", x=0.01, ha="left", fontsize=12, fontweight="bold")
    return svg(figure, "Histograms of the magnitudes of tensors, with the range of f8_e4m3fn")


def delayed_scales():
    rows = [line.split() for line in printed("examples/digits_fp8/README.md", "recipe") if len(line.split()) == 5 and line.split()[1].isdigit()]
    figure, plots = axes(6.4, 4.6, rows=3, sharex=True)
    for plot, tensor in zip(plots, ("features", "last.kernel", "logits_gradient")):
        steps, amax, history, _ = zip(*[map(float, row[1:]) for row in rows if row[0] == tensor])
        plot.plot(steps, amax, "o-", color=LIGHT["blue"], label="amax of the step")
        plot.step(steps, history, where="post", color=LIGHT["orange"], label="largest amax of the history")
        plot.set_title(tensor, fontsize=10, fontweight="normal")
        plot.set_ylim(0)
    plots[-1].set_xscale("log")
    log_ticks(plots[-1].xaxis, [1, 2, 4, 8, 16, 32, 64, 128], "{:g}".format)
    plots[-1].set_xlabel("step")
    figure.suptitle("Delayed scales: f8_delayed in examples/digits_fp8", x=0.01, ha="left", fontsize=12, fontweight="bold")
    figure.legend(*plots[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=9)
    return svg(figure, "The amax of three tensors and of their histories by step")


PICTURES = {"rounding-errors": rounding_errors, "tensor-ranges": tensor_ranges, "delayed-scales": delayed_scales}
