"""Tests the output of `scalide policies` and `scalide check`. Usage: lists_test.py SCALIDE SOURCE."""
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "support"))
from tool import Scratch  # noqa: E402

RULES = """op: both
family: elementwise
operands: {x: float}
value: x * exp(x)
check: {cases: [{x: [m, n]}, {x: [m]}], vectors: [{x: [0, 1], out: [0, 2.718281828459045]}]}
---
op: steps
family: elementwise
operands: {x: float}
value: floor(x)
check: {gradient: none, cases: [{x: [m, n]}]}
---
op: thrice
family: elementwise
operands: {x: float}
value: 3 * x
scale: x.scale
data: x.data * 3
grad: {x: 3 * ct}
check: {cases: [{x: [m, n]}]}
"""


def policies(scratch, source):
    lines = scratch.succeed("policies").splitlines()
    listed = dict(re.fullmatch(r"(\S+) +(.+)", line).groups() for line in lines)
    files = sorted((source / "rules/policies").glob("*.yaml"))
    assert [file.stem for file in files] == list(listed), lines
    for file in files:
        assert f"doc: {listed[file.stem]}" in file.read_text().replace("doc: >-", "doc:"), file


def check(scratch):
    scratch.write("own.yaml", RULES.encode())
    lines = scratch.succeed("check", "own.yaml").splitlines()
    assert lines == ["both: 2 cases, 3 strategies, gradient, 1 vector", "steps: 1 case, 3 strategies", "thrice: 1 case, 1 strategy, gradient",
                     "3 rules checked, all checks passed (seed 1)"], lines


if __name__ == "__main__":
    with Scratch(sys.argv[1]) as scratch:
        policies(scratch, Path(sys.argv[2]))
        check(scratch)
