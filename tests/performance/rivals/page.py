"""The page of rivals.py: one HTML file without other files, with a bar for each ratio. It follows the light or dark setting of the reader."""
import html
import math

from report import heading, notes, summary

STYLE = """
:root { color-scheme: light dark; --text: #1c2430; --quiet: #5a6675; --ground: #ffffff; --line: #d9dee5; --ahead: #0b6e8f; --behind: #b4530a; }
@media (prefers-color-scheme: dark) { :root { --text: #e6eaf0; --quiet: #9aa6b5; --ground: #12171e; --line: #2c3541; --ahead: #4cb8dc; --behind: #f0a04b; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--text); font: 15px/1.45 system-ui, sans-serif; }
main { max-width: 1180px; margin: 0 auto; padding: 24px 16px 48px; }
h1 { font-size: 1.5rem; margin: 0 0 8px; } h2 { font-size: 1.1rem; margin: 32px 0 4px; }
p, li { margin: 4px 0; overflow-wrap: anywhere; } .quiet, small { color: var(--quiet); } ul { padding-left: 18px; }
.row { display: grid; grid-template-columns: minmax(250px, 3.4fr) 3.4fr 54px minmax(210px, 3fr) 92px; gap: 2px 14px; align-items: center; padding: 5px 0;
  border-top: 1px solid var(--line); font-variant-numeric: tabular-nums; }
.head { color: var(--quiet); font-size: 0.85rem; }
.ratio, .share { text-align: right; } .ratio { font-weight: 600; }
.bar { position: relative; height: 14px; border-radius: 3px; background: linear-gradient(90deg, transparent calc(50% - 1px), var(--quiet) 0 calc(50% + 1px), transparent 0), color-mix(in srgb, var(--line) 55%, transparent); }
.bar i { position: absolute; top: 2px; bottom: 2px; border-radius: 2px; } .ahead { background: var(--ahead); } .behind { background: var(--behind); }
@media (max-width: 760px) {
  .row { grid-template-columns: 1fr 84px; } .bar { grid-column: 1; grid-row: 2; } .ratio { grid-column: 2; grid-row: 2; }
  .name { grid-column: 1; grid-row: 1; } .share { grid-column: 2; grid-row: 1; white-space: nowrap; justify-self: end; } .times { grid-column: 1 / 3; }
  .head { display: none; }
}
"""
SECTIONS = (("peak", "Works that multiply", "share of the FMA peak"), ("copy", "Works that move bytes", "share of a copy"))


def bar(ratio):
    """A bar from the middle, to the right if Scalide is faster. Its length is the logarithm of the ratio, at most that of 4."""
    if ratio is None:
        return '<div class="bar"></div>'
    length = 50 * min(abs(math.log(ratio, 4)), 1)
    left = 50 if ratio >= 1 else 50 - length
    return f'<div class="bar"><i class="{"ahead" if ratio >= 1 else "behind"}" style="left:{left:.1f}%;width:{length:.1f}%"></i></div>'


def row(made):
    times = "did not run" if made["ours"] is None else f"{made['ours']:.4g} ms"
    times += f", {html.escape(made['rival'])} {made['rival_ms']:.4g} ms" if made["rival"] else ", no rival"
    warning = ("disturbed " if made["disturbed"] else "") + ("results differ" if made["wrong"] else "")
    ratio = "-" if made["ratio"] is None else f"{made['ratio']:.2f}"
    share = "" if made["share"] is None else f"{made['share']:.2f} of {made['limit']}"
    return (f'<div class="row"><div class="name">{html.escape(made["work"])} <small>{made["dtype"]} {warning}</small></div>{bar(made["ratio"])}'
            f'<div class="ratio">{ratio}</div><div class="times"><small>{times}</small></div><div class="share"><small>{share}</small></div></div>')  # fmt: skip


def section(limit, title, share, summaries):
    mine = [made for made in summaries if made["limit"] == limit]
    head = f'<div class="row head"><div>work</div><div>slower, faster than the best rival: 1/4 to 4</div><div class="ratio">ratio</div><div>times</div><div class="share">{share}</div></div>'
    return f"<h2>{title}</h2>{head}{''.join(map(row, mine))}" if mine else ""


def totals(summaries):
    ratios = [made["ratio"] for made in summaries if made["ratio"] is not None]
    if not ratios:
        return "No rival ran."
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    disturbed = sum(made["disturbed"] > 0 for made in summaries)
    return (f"Scalide is faster than the best rival in {sum(ratio > 1 for ratio in ratios)} of {len(ratios)} works. The geometric mean of the ratios is {mean:.2f}. "
            f"Other programs disturbed {disturbed} of {len(summaries)} rows.")  # fmt: skip


def page(machine, rows):
    """Returns the text of the page."""
    summaries = [summary(row) for row in rows]
    title = f"Scalide next to other systems, {machine['date']}"
    about = "".join(f"<p class=\"quiet\">{html.escape(line)}</p>" for line in heading(machine))
    listed = "".join(f"<li>{html.escape(line.removeprefix('- '))}</li>" for line in notes(rows))
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{html.escape(title)}</title><style>{STYLE}</style></head><body><main><h1>{html.escape(title)}</h1><p>{totals(summaries)}</p>{about}"
            "<p>A ratio is the time of the best rival divided by the time of Scalide. A bar to the right means that Scalide is faster.</p>"
            f"{''.join(section(*words, summaries) for words in SECTIONS)}{f'<h2>Notes</h2><ul>{listed}</ul>' if listed else ''}</main></body></html>\n")  # fmt: skip
