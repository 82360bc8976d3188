"""The reference pages of rules and policies list each key and keyword that the tool knows; the glossary has its terms in order.

Usage: test_reference.py SCALIDE SOURCE
The tool lists what it knows in the error about an unknown key or keyword. Each probe provokes one such error."""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

RULE = """op: half
family: elementwise
operands: {{x: float}}
{more}
value: 0.5 * x
check: {{cases: [{{x: [m]}}]}}
"""
PROGRAM = "program p(x: f32[n, n]) -> (y: f32[n, n]) {\n  y = dot(x, x)\n}\n"
UNKNOWN = "qqqqqqqq"


def rule(more):
    return RULE.format(more=more)


def policy(more, rules="[]"):
    return f"policy: probe\n{more}\nrules: {rules}\n"


#: page, heading, and the file that provokes the error.
PROBES = [
    ("rules", "Keys of a rule", rule(f"{UNKNOWN}: 1")),
    ("rules", "Families", rule("").replace("elementwise", UNKNOWN)),
    ("rules", "Operands", rule("").replace("x: float", f"x: {UNKNOWN}")),
    ("rules", "Attributes", rule(f"attrs: {{a: {{{UNKNOWN}: 1}}}}")),
    ("rules", "Attribute types", rule(f"attrs: {{a: {UNKNOWN}}}")),
    ("rules", "Results", rule(f"results: {{out: {{{UNKNOWN}: 1}}}}")),
    ("rules", "Constraints", rule(f"where: {{c1: {{{UNKNOWN}: 1}}}}")),
    ("rules", "Gradient", rule(f"grad: {UNKNOWN}")),
    ("rules", "Check", rule("").replace("cases:", f"{UNKNOWN}:")),
    ("rules", "Check", rule("").replace("cases: [{x: [m]}]", f"gradient: {UNKNOWN}")),
    ("rules", "Check", rule("").replace("cases: [{x: [m]}]", f"scaling: {UNKNOWN}")),
    ("policies", "Keys of a policy", policy(f"{UNKNOWN}: 1")),
    *[("policies", "Keys of a policy", policy(f"{key}: {UNKNOWN}"))
      for key in ("scales", "strategy", "rounding", "round", "overflow", "intermediates", "accumulation", "precision")],
    ("policies", "Rules", policy("", f"[{{{UNKNOWN}: 1}}]")),
    ("policies", "Roles", policy("", f"[{{operand: {UNKNOWN}}}]")),
    ("policies", "Roles", policy("", f"[{{op: dot_general, operands: {UNKNOWN}}}]")),
    ("policies", "Layers and sizes", policy("", f"[{{operand: any, layer: {UNKNOWN}}}]")),
    ("policies", "scale", policy("", f"[{{operand: any, scale: {{{UNKNOWN}: 1}}}}]")),
    ("policies", "scale", policy("", f"[{{operand: any, scale: {{by: {UNKNOWN}}}}}]")),
    ("policies", "State", policy(f"state: [{{{UNKNOWN}: 1}}]")),
]  # fmt: skip


def listed(error):
    """The words of the longest list in an error, `a, b, c`."""
    lists = [re.split(r", | or ", found) for found in re.findall(r"\w+(?:(?:, | or )(?!got\b|the\b)\w+)+", error)]
    return max(lists, key=len, default=[])


def section(page, heading):
    """The text under a heading, with the headings below it."""
    found = re.search(rf"^(#+) {re.escape(heading)}\n(.*?)(?=^#{{1,9}} |\Z)", page, re.S | re.M)
    assert found, f"the page has no heading '{heading}'"
    level = len(found[1])
    return re.search(rf"^#{{{level}}} {re.escape(heading)}\n(.*?)(?=^#{{1,{level}}} |\Z)", page, re.S | re.M)[1]


def missing(tool, source, folder, probe):
    """The words of the error that are not in code under the heading."""
    name, heading, text = probe
    (folder / "probe.yaml").write_text(text)
    (folder / "p.scl").write_text(PROGRAM)
    command = ["check", "probe.yaml"] if name == "rules" else ["explain", "p.scl", "-n", "probe.yaml"]
    result = subprocess.run([tool, *command], cwd=folder, capture_output=True, text=True)
    words = listed(result.stderr)
    assert result.returncode == 1 and words, f"no list in the error about\n{text}\n{result.stderr}"
    part = re.sub(r"^```.*?^```$", "", section((source / f"docs/reference/{name}.md").read_text(), heading), flags=re.S | re.M)
    code = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", part))))
    return [f"docs/reference/{name}.md, {heading}: '{word}' is missing. The tool knows: {', '.join(words)}" for word in words if word not in code]


def operators_have_docs(source):
    """Each rule has a doc that is a sentence with a verb."""
    for file in sorted((source / "rules").glob("*/*.yaml")):
        if file.parent.name == "policies":
            continue
        for document in file.read_text().split("\n---"):
            doc = re.search(r"^doc: *>?\s*(.*)", document, re.M)
            if not doc or not re.match(r"Returns ", doc[1]):
                name = re.search(r"^op: *(\S+)", document, re.M)[1]
                yield f"{file}: {name}: doc must begin with 'Returns'"


def glossary_is_right(source):
    """Terms are in order, each has one sentence, kernel classes are those of the code, and links to terms have a target."""
    text = (source / "docs/reference/glossary.md").read_text()
    terms = dict(re.findall(r"^### (.+)\n\n(.+)\n", text, re.M))
    if list(terms) != sorted(terms, key=str.lower):
        yield "glossary.md: the terms must be in alphabetical order"
    yield from (f"glossary.md: {term} must have one sentence" for term, line in terms.items() if not re.fullmatch(r"[^.]+(\.\d[^.]*|\.scl[^.]*)*\.", line))
    classes = re.findall(r'\{"(\w+)", why_no_', (source / "generators/kinds/kernel_kinds.cpp").read_text())
    yield from (f"glossary.md: kernel class '{name}' is missing" for name in classes if f"`{name}`" not in terms["Kernel class"])
    anchors = {term.lower().replace(" ", "-") for term in terms}
    for page in [source / "README.md", *sorted((source / "docs").rglob("*.md"))]:
        for anchor in re.findall(r"glossary\.md#([\w-]+)", page.read_text()):
            if anchor not in anchors:
                yield f"{page}: the glossary has no term '{anchor}'"


def main():
    tool, source = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        problems = [problem for probe in PROBES for problem in missing(tool, source, Path(folder), probe)]
    problems += [*operators_have_docs(source), *glossary_is_right(source)]
    print("\n".join(problems) or f"{len(PROBES)} lists: ok")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
