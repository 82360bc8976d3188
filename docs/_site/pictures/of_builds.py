"""Pictures of a build: its stations, its passes, the kernels of a program, and the memory that a run needs."""
import re
import subprocess
import tempfile
from pathlib import Path
from xml.sax.saxutils import escape

from sources import LAYER, TARGET, measured, tool
from style import LIGHT, axes, in_both_colors, svg

#: The stations of a build: what exists there, who makes it, in which folder. The last three are in a process of the user.
STATIONS = [
    ("program", "text, JAX function or C++ generator", "generators/frontend"),
    ("program with formats", "the policy adds conversions", "transforms/numerics"),
    ("base operators and scales", "rules replace each operator", "transforms/expand"),
    ("kernels", "operators that share loops", "transforms/fusion"),
    ("Halide pipelines", "loops, vectors and threads", "lower, schedules"),
    ("library", "object files, plan, header", "emit"),
    ("binding", "arrays, sizes, memory, device", "runtime/src/bind"),
    ("run", "kernels in the order of the plan", "runtime/src/run"),
]


def build_stations():
    """Boxes from top to bottom: left the name and what happens, right the folder."""
    width, box, gap = 560, 50, 18
    height = len(STATIONS) * (box + gap) + 14
    parts = [f'<rect x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8" fill="{LIGHT["page"]}" stroke="{LIGHT["grid"]}"/>']
    for i, (name, doing, folder) in enumerate(STATIONS):
        y, color = 14 + i * (box + gap), LIGHT["blue" if i < 4 else "green" if i < 6 else "orange"]
        parts.append(f'<rect x="14" y="{y}" width="330" height="{box}" rx="6" fill="none" stroke="{color}" stroke-width="1.5"/>')
        parts.append(f'<text class="bold" x="28" y="{y + 21}">{escape(name)}</text><text x="28" y="{y + 40}">{escape(doing)}</text>')
        parts.append(f'<text class="mono" x="360" y="{y + 30}">{escape(folder)}</text>')
        if i + 1 < len(STATIONS):
            parts.append(f'<path d="M179 {y + box}v{gap - 6}m-5 0h10l-5 6z" fill="{LIGHT["muted"]}" stroke="{LIGHT["muted"]}"/>')
    style = ('<style>text { font: 14px var(--font); fill: var(--ink) } .bold { font-weight: 700 } '
             '.mono { font-family: ui-monospace, Consolas, "DejaVu Sans Mono", monospace; fill: var(--muted) }</style>')  # fmt: skip
    text = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n{style}\n' + "\n".join(parts) + "\n</svg>\n"
    return in_both_colors(text, "The stations of a build, and the folder of each")


def operators_by_pass():
    counts = measured()["layer"]["value"]["operators"]
    figure, plot = axes(6.4, 5)
    names = list(counts)
    plot.barh(names, counts.values(), color=[LIGHT["blue"] if i == 0 or counts[name] != counts[names[i - 1]] else LIGHT["grid"] for i, name in enumerate(names)])
    for i, name in enumerate(names):
        plot.text(counts[name], i, f" {counts[name]}", va="center", fontsize=9)
    plot.invert_yaxis()
    plot.grid(False, axis="y")
    plot.margins(x=0.1)
    plot.set(title="Operators of a transformer layer after each pass, f8_master", xlabel="blue: the pass changed their number")
    return svg(figure, "Number of operators after each pass")


def memory_by_step():
    curves = measured()["layer"]["value"]["memory"]
    figure, plot = axes(6.4, 3.2)
    for policy, color in (("f32", "ink"), ("f8_master", "orange"), ("f8_scaled", "purple")):
        plot.step(range(len(curves[policy])), [size / 1024 for size in curves[policy]], where="mid", label=policy, color=LIGHT[color])
    plot.set_ylim(0)
    plot.set(title="Intermediate arrays of a transformer layer that are alive", xlabel="step of the plan", ylabel="KiB")
    plot.legend()
    return svg(figure, "Memory over the steps of a plan")


def kernels(policy):
    """The calls of a program after the pass fuse, as (results, kernel, operands), and the operators of each kernel."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "layer.scl").write_text(LAYER)
        text = tool("build", "layer.scl", "-n", policy, *TARGET, "-o", "out", "--dump-after", "fuse", cwd=folder)
        listed = tool("inspect", "layer.scl", "-n", policy, *TARGET, cwd=folder)
    calls = re.findall(r"^  (.+) = call\((.*)\) {program: (\w+)}", text, re.M)
    fused = dict(re.findall(r"^ *\d+  \w+ +(\w+)\n(?:     computes .*\n)?     fuses +(.*)$", listed, re.M))
    return [([name.strip() for name in results.split(",")], kernel, [name.strip() for name in operands.split(",")], fused[kernel])
            for results, operands, kernel in calls]  # fmt: skip


def kernel_graph(policy, title):
    """Arrays as ellipses, kernels as boxes. graphviz lays them out."""
    lines = [f'bgcolor="{LIGHT["page"]}"; rankdir=TB; nodesep=.3; ranksep=.35; pad=.15',
             f'node [fontname="DejaVu Sans", fontsize=11, fontcolor="{LIGHT["ink"]}", color="{LIGHT["muted"]}"]', f'edge [color="{LIGHT["muted"]}", arrowsize=.7]']  # fmt: skip
    for results, kernel, operands, fused in kernels(policy):
        lines.append(f'{kernel} [shape=box, style="rounded", color="{LIGHT["blue"]}", penwidth=1.5, label="{kernel}\\n{fused}"]')
        lines += [f'"{name}" -> {kernel}' for name in operands] + [f'{kernel} -> "{name}"' for name in results]
    dot = subprocess.run(["dot", "-Tsvg"], input="digraph {\n" + ";\n".join(lines) + "\n}", check=True, capture_output=True, text=True).stdout
    return in_both_colors(re.sub(r"<!--.*?-->\s*", "", dot, flags=re.S).replace('font-family="DejaVu Sans"', 'style="font-family: var(--font)"'), title)


PICTURES = {
    "build-stations": build_stations,
    "operators-by-pass": operators_by_pass,
    "memory-by-step": memory_by_step,
    "kernels-f32": lambda: kernel_graph("f32", "The kernels of a layer in f32"),
    "kernels-f8": lambda: kernel_graph("f8_master", "The kernels of a layer in f8_master"),
}
