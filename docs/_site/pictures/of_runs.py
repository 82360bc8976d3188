"""Pictures of runs: losses, times of kernels, times by batch size."""
from sources import measured
from style import LIGHT, axes, bars, log_ticks, percent, policy_color, svg


def loss_curves():
    curves = measured()["losses"]["value"]
    figure, plots = axes(6.4, 4.8, rows=2, sharex=True)
    steps = [10 * i + 5 for i in range(len(curves["f32"]))]
    for policy, losses in curves.items():
        style = {"color": policy_color(policy), "linewidth": 1.2, "label": policy}
        plots[0].plot(steps, losses, **style)
        plots[1].plot(steps, [100 * (loss / plain - 1) for loss, plain in zip(losses, curves["f32"])], **style)
    plots[0].set_title("Loss of a digit classifier", fontsize=10, fontweight="normal")
    plots[1].set_title("Difference from f32", fontsize=10, fontweight="normal")
    percent(plots[1].yaxis)
    plots[1].set_xlabel("step; each point is the mean of 10 steps")
    figure.legend(*plots[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
    figure.suptitle("One training in six policies", x=0.01, ha="left", fontsize=12, fontweight="bold")
    return svg(figure, "Loss of one training in six policies")


def loss_without_scales():
    curves = measured()["tiny losses"]["value"]
    figure, plot = axes(6.4, 3.2)
    for (name, losses), color, style in zip(curves.items(), ("ink", "red", "green"), ("-", "-", "--")):
        plot.plot([10 * i + 5 for i in range(len(losses))], losses, style, label=name, color=LIGHT[color], linewidth=2)
    plot.set_ylim(0)
    plot.set(title="A loss times 2^-20, so that gradients are tiny", xlabel="step", ylabel="loss, times 2^20")
    plot.legend()
    return svg(figure, "A training with tiny gradients, with and without scales")


def roofline():
    limits, found = measured()["limits"]["value"], measured()["profile"]["value"]
    copy = limits["copy GB/s"]
    figure, plot = axes(6.4, 3.8)
    for dtype, style in (("f32", "-"), ("bf16", "--")):
        peak = limits[f"matmul {dtype} GFLOP/s"]
        intensity = [0.1, peak / copy, 300]
        plot.plot(intensity, [min(peak, copy * i) for i in intensity], style, color=LIGHT["muted"], label=f"limit: {copy:.0f} GB/s, {peak:.0f} GFLOP/s in {dtype}")
    for policy, color, mark in (("f32", "blue", "o"), ("f8_master", "orange", "D")):
        chosen = [kernel for kernel in found[policy] if kernel["flops"] and kernel["us"]]
        plot.scatter([k["flops"] / k["bytes"] for k in chosen], [k["flops"] / k["us"] / 1e3 for k in chosen], [20 + k["us"] / 4 for k in chosen], marker=mark,
                     color=LIGHT[color], label=policy, alpha=0.7)  # fmt: skip
    plot.set_xscale("log")
    plot.set_yscale("log")
    log_ticks(plot.xaxis, [0.1, 1, 10, 100], "{:g}".format)
    log_ticks(plot.yaxis, [1, 10, 100, 1000], "{:g}".format)
    plot.set(title="Kernels of a training step: larger marks take longer", xlabel="FLOP for each byte that the kernel reads or writes", ylabel="GFLOP/s")
    plot.legend(fontsize=9)
    return svg(figure, "Kernels of a training step on a roofline")


def kernel_times():
    found = sorted(measured()["profile"]["value"]["f8_master"], key=lambda kernel: -kernel["us"])
    figure, plot = axes(6.4, 3.8)
    bars(plot, [kernel["kernel"] for kernel in found], {"us": ([kernel["us"] for kernel in found], LIGHT["blue"])}, " us")
    plot.set(title="Time of each kernel of a training step, f8_master", xlabel="microseconds")
    return svg(figure, "Time of each kernel of a training step")


def batch_sizes():
    figure, plots = axes(6.4, 3.4, columns=2)
    for plot, (part, sizes) in zip(plots, (("small network", "64-128-10"), ("large network", "784-512-512-10"))):
        for policy, times in measured()[part]["value"].items():
            batches = [int(batch) for batch in times]
            plot.plot(batches, [time / batch for batch, time in zip(batches, times.values())], "o-", markersize=4, label=policy, color=policy_color(policy))
        plot.set_xscale("log")
        plot.set_yscale("log")
        log_ticks(plot.xaxis, [1, 4, 16, 64, 256], "{:g}".format)
        low = 0.3 if part.startswith("small") else 3
        log_ticks(plot.yaxis, [low, 3 * low, 10 * low, 30 * low, 100 * low, 300 * low], "{:g}".format)
        plot.set_title(sizes, fontsize=10, fontweight="normal")
        plot.set_xlabel("batch size")
    plots[0].set_ylabel("microseconds per example")
    plots[0].legend()
    figure.suptitle("A training step from Python, one core", x=0.01, ha="left", fontsize=12, fontweight="bold")
    return svg(figure, "Time per example by batch size")


PICTURES = {"loss-curves": loss_curves, "loss-without-scales": loss_without_scales, "roofline": roofline, "kernel-times": kernel_times,
            "batch-sizes": batch_sizes}  # fmt: skip
