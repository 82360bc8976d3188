"""The style of the pictures in docs/images: SVG with text as text, in colors for light and dark pages."""
import io
import re
from xml.sax.saxutils import escape

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot  # noqa: E402
from matplotlib.ticker import FuncFormatter, NullLocator  # noqa: E402

#: The colors on light and on dark pages. matplotlib draws with the first; the SVG has a variable for each.
COLORS = {
    "page": ("#ffffff", "#0d1117"), "ink": ("#1f2328", "#f0f6fc"), "muted": ("#59636e", "#9198a1"), "grid": ("#d1d9e0", "#3d444d"),
    "blue": ("#0969da", "#58a6ff"), "green": ("#1a7f37", "#3fb950"), "orange": ("#bc4c00", "#f0883e"), "purple": ("#8250df", "#bc8cff"),
    "red": ("#cf222e", "#f85149"), "sky": ("#7ab8f5", "#1f6feb"), "leaf": ("#8ddb9c", "#238636"), "sand": ("#f2b888", "#9e4a10"),
}  # fmt: skip
LIGHT = {name: colors[0] for name, colors in COLORS.items()}
#: The color of a policy, by the start of its name.
POLICY_COLORS = {"f32": "ink", "bf16": "blue", "amp": "blue", "f16": "green", "state8": "green", "f8_delayed": "purple", "f8_scaled": "red", "f8_row": "sand", "f8": "orange", "mxfp8": "purple"}
FONT = '-apple-system, "Segoe UI", Arial, "DejaVu Sans", sans-serif'

matplotlib.rcParams.update({
    "svg.fonttype": "none", "svg.hashsalt": "scalide", "font.size": 11, "axes.titlesize": 12, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "figure.facecolor": LIGHT["page"], "axes.facecolor": LIGHT["page"], "savefig.facecolor": LIGHT["page"], "text.color": LIGHT["ink"],
    "axes.labelcolor": LIGHT["ink"], "axes.edgecolor": LIGHT["muted"], "xtick.color": LIGHT["muted"], "ytick.color": LIGHT["muted"],
    "xtick.labelcolor": LIGHT["ink"], "ytick.labelcolor": LIGHT["ink"], "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "axes.axisbelow": True, "grid.color": LIGHT["grid"], "grid.linewidth": 0.7, "legend.frameon": False, "figure.constrained_layout.use": True,
})  # fmt: skip


def policy_color(policy):
    return LIGHT[next((POLICY_COLORS[start] for start in POLICY_COLORS if policy.startswith(start)), "muted")]


def axes(width=6.4, height=3.4, rows=1, columns=1, **arguments):
    """A figure of this size in inches, and its axes."""
    return pyplot.subplots(rows, columns, figsize=(width, height), **arguments)


def log_ticks(axis, values, text=str):
    """A logarithmic axis with exactly these ticks."""
    axis.set_ticks(values, [text(value) for value in values])
    axis.set_minor_locator(NullLocator())


def percent(axis):
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} %"))


def bars(plot, labels, series, unit="", width=0.8, text="{:g}"):
    """Horizontal bars, from the top: for each label one bar of each series (name: (values, color))."""
    thick = width / len(series)
    for number, (name, (values, color)) in enumerate(series.items()):
        positions = [i + (number + 0.5) * thick - width / 2 for i in range(len(labels))]
        drawn = plot.barh(positions, [0 if value is None else value for value in values], thick * 0.9, color=color, label=name)
        plot.bar_label(drawn, ["" if value is None else " " + text.format(value) + unit for value in values], fontsize=9, color=LIGHT["ink"])
    plot.set_yticks(range(len(labels)), labels)
    plot.invert_yaxis()
    plot.grid(False, axis="y")
    plot.margins(x=0.12)
    if len(series) > 1:
        plot.legend()


def svg(figure, title):
    """The text of the figure as an SVG in both colors."""
    if len(figure.axes) == 1: # a title above the labels too, so that it has the width of the picture
        figure.suptitle(figure.axes[0].get_title(loc="left"), x=0.01, ha="left", fontsize=12, fontweight="bold")
        figure.axes[0].set_title("")
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    pyplot.close(figure)
    return in_both_colors(out.getvalue(), title)


def in_both_colors(text, title):
    """Replaces the light colors by variables, and the font by the fonts of a page."""
    text = text[text.index("<svg") :]
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", text, flags=re.S)
    for name, (light, _) in COLORS.items():
        text = re.sub(light, f"var(--{name})", text, flags=re.I)
    text = re.sub(r"font: ((?:bold )?)(?:\d+ )?([\d.]+px) [^;\"]+", r"font: \1\2 var(--font)", text)
    sets = [" ".join(f"--{name}: {colors[dark]};" for name, colors in COLORS.items()) for dark in (0, 1)]
    style = f"<style>\n    svg {{ --font: {FONT}; {sets[0]} }}\n    @media (prefers-color-scheme: dark) {{\n      svg {{ {sets[1]} }}\n    }}\n  </style>"
    end = text.index(">") + 1
    head = re.sub(r'(width|height)="([\d.]+)pt"', lambda m: f'{m[1]}="{float(m[2]) * 4 / 3:.0f}"', text[:end])
    body = re.sub(r"^\s+", "", text[end:], flags=re.M)
    return f'{head[:-1]} role="img">\n  <title>{escape(title)}</title>\n  {style}\n{body}'
