"""Tables and texts in Markdown."""


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ").strip()


def plain(text):
    """Text of the tool or of a comment, in which `*`, `_` and `<` stand for themselves."""
    parts = text.split("`")
    for number in range(0, len(parts), 2):
        for sign in "*_<[":
            parts[number] = parts[number].replace(sign, "\\" + sign)
    return "`".join(parts)


def table(headings, rows):
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return "\n".join(lines + ["| " + " | ".join(map(cell, row)) + " |" for row in rows]) + "\n"


def meanings(heading, rows):
    """A table of code and its meaning. The second column is left out if it is empty in all rows."""
    return table([heading, "meaning"], rows) if any(meaning for _, meaning in rows) else table([heading], [(code,) for code, _ in rows])
