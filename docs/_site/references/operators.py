"""The pages of the operators, as `scalide rules --reference` writes them."""
import re
import subprocess
import tempfile
from pathlib import Path

from references.tables import plain, table

HEAD = """# Operators

Each operator is a YAML rule that says what it computes, how scales pass through it, and what its gradient is.
This page lists all operators by family. [Rules](../rules.md) explains the language of the rules, and [Coverage](coverage.md) lists the tests.

"""
COVERAGE = """# Coverage of the operators

This table shows for each operator how its value, its scale and its gradient are defined, and which tests check them.

"""
FAMILIES = {
    "composite": "Layers, losses and transforms", "contract": "Matrix products", "elementwise": "Elementwise", "reduce": "Reductions", "scan": "Scans",
    "movement": "Shapes and movement", "index": "Indexing, gather and scatter", "window": "Windows and convolutions", "sort": "Sorting",
    "random": "Random numbers", "source": "Constants", "scaling": "Scales and rounding", "debug": "Debugging",
}  # fmt: skip


def by_family(names):
    """(title, operators) for each family, from {operator: family}."""
    for family in sorted(set(names.values()), key=lambda word: (list(FAMILIES) + [word]).index(word)):
        yield FAMILIES.get(family, family.capitalize()), sorted(name for name in names if names[name] == family)


def first_sentence(text):
    body = text.split("\n", 1)[1].strip().split("\n\n")[0]
    return re.split(r"(?<=[.]) (?=[A-Z])", " ".join(body.split()), maxsplit=1)[0]


def pages(tool):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([tool, "rules", "--reference", folder], check=True, stdout=subprocess.DEVNULL)
        texts = {file.stem: file.read_text() for file in Path(folder).glob("*.md")}
    coverage = texts.pop("README")
    families = dict(re.findall(r"^\| \[(\w+)\]\(\S+\) \| (\w+)", coverage, re.M))
    index = HEAD
    for title, names in by_family(families):
        rows = [(f"[{name}]({name}.md)", plain(first_sentence(texts[name]))) for name in names]
        index += f"## {title}\n\n" + table(["operator", "meaning"], rows) + "\n"
    found = {f"reference/operators/{name}.md": with_empty_lines(text) for name, text in texts.items()}
    coverage = COVERAGE + coverage[coverage.index("\n|") + 1 :]
    return found | {"reference/operators/index.md": index, "reference/operators/coverage.md": coverage}


def with_empty_lines(text):
    """Markdown wants an empty line after a heading and before a list."""
    text = re.sub(r"^(# .*)\n(?=\S)", r"\1\n\n", text)
    return re.sub(r"^(\|.*|[^\n -].*)\n(- )", r"\1\n\n\2", text, flags=re.M)
