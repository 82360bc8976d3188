"""The table of rivals.py: what the rounds of a work say, and text for a terminal."""
import statistics

DISTURBED = 0.06  # share of the cores that other programs took


def summary(row):
    """Returns the numbers of a row. `ours` is None if Scalide did not run, `rival` is None if no rival did."""
    rounds = row["rounds"]
    medians = {name: statistics.median(made["ms"][name] for made in rounds if name in made["ms"]) for name in {name for made in rounds for name in made["ms"]}}
    ours = next((name for name in medians if name.startswith("scalide ")), None)
    rival = min((name for name in medians if name != ours), key=medians.get, default=None)
    made = {"work": row["work"], "dtype": row["dtype"], "ours": medians.get(ours), "rival": rival, "rival_ms": medians.get(rival), "ratio": None, "share": None,
            "limit": "peak" if row["flops"] else "copy", "disturbed": sum(made["others"] > DISTURBED for made in rounds), "rounds": len(rounds),
            "wrong": {name: difference for name, difference in row["differences"].items() if not difference <= row["tolerance"]}}  # fmt: skip
    if ours and rival:
        made["ratio"] = statistics.median(round_["ms"][rival] / round_["ms"][ours] for round_ in rounds if {rival, ours} <= set(round_["ms"]))
    if ours and (row["flops"] or row["bytes"]):
        peak = max(round_["fma_gflops"] for round_ in rounds)  # other programs only lower it
        made["share"] = statistics.median(share(row, round_, ours, peak) for round_ in rounds)
    return made


def share(row, made, ours, peak):
    """The speed of Scalide in one round, divided by the peak, or by the copy of the same round: the bandwidth of shared machines varies."""
    seconds = 1e-3 * made["ms"][ours]
    return 1e-9 * (row["flops"] / peak if row["flops"] else row["bytes"] / made["copy_gbs"]) / seconds


def marks(made):
    return ("~" if made["disturbed"] else "") + ("!" if made["wrong"] else "")


def heading(machine):
    """Lines about the machine and the versions."""
    yield f"CPU: {machine['cpu']} (family/model {machine['family']}), {machine['threads']} of {machine['cores']} cores. Features: {' '.join(machine['features'])}."
    named = (("AMX", "amx_tile"), ("AVX-512 BF16", "avx512_bf16"))
    yield " ".join(f"{feature}: {'yes' if flag in machine['features'] else 'no'}." for feature, flag in named)
    yield f"Date: {machine['date']}. Versions: {', '.join(machine['versions'].values())}. {machine['rounds']} rounds of {machine['seconds']} s."
    for name, reason in machine["missing"].items():
        yield f"{name}: {reason}"


def notes(rows):
    """Lines about what a system cannot do, one for each reason."""
    reasons = {}
    for row in rows:
        for name, reason in row["failed"].items():
            reasons.setdefault((name, reason), []).append(f"{row['work']} {row['dtype']}")
    for (name, reason), works in reasons.items():
        yield f"- {name}: {reason}. Works: {', '.join(works) if len(works) <= 4 else f'{len(works)} works'}"
    for row in rows:
        for name, difference in summary(row)["wrong"].items():
            yield f"! {row['work']} {row['dtype']}: the results of {name} and Scalide differ by {difference:.1e}, allowed is {row['tolerance']:.0e}"


def cells(made):
    """The texts of a row."""
    def number(value, digits):
        return "-" if value is None else f"{value:.{digits}f}"

    limit = "" if made["share"] is None else f" of {made['limit']}"
    return [made["work"], made["dtype"], number(made["ours"], 4), number(made["rival_ms"], 4), made["rival"] or "-", number(made["ratio"], 2),
            number(made["share"], 2) + limit, marks(made)]  # fmt: skip


TITLES = ["work", "dtype", "ours ms", "rival ms", "best rival", "ratio", "share", ""]


def table(machine, rows):
    lines = [TITLES, *(cells(summary(row)) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(TITLES))]
    right = {2, 3, 5}
    text = list(heading(machine))
    text += ["  ".join(f"{cell:>{width}}" if column in right else f"{cell:<{width}}" for column, (cell, width) in enumerate(zip(line, widths))).rstrip() for line in lines]
    text += ["ratio: best rival / ours, above 1 Scalide is faster. ~ other programs disturbed rounds. ! results differ. - see the notes.", *notes(rows)]
    return "\n".join(text)
