"""Drawn compositions (compositions.py) beside JAX. The number in the name of a test is the first seed of its share; what differs is made shorter
and printed as Python. SCALIDE_COMPOSITIONS=FIRST:COUNT chooses other seeds."""
import dataclasses
import json
import os
import subprocess
import sys

import pytest
from compositions import Composition, draw, shorter

SHARE = 10
FIRST, COUNT = map(int, os.environ.get("SCALIDE_COMPOSITIONS", "0:20").split(":"))


class Judge:
    """The process that judges; another one where it died."""

    def __init__(self):
        self.process = None

    def verdict(self, made: Composition) -> str:
        """Empty: the library agrees with JAX."""
        if self.process is None:
            self.process = subprocess.Popen([sys.executable, os.path.join(os.path.dirname(__file__), "compositions.py")], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, text=True)  # fmt: skip
        try:
            print(json.dumps(dataclasses.asdict(made)), file=self.process.stdin, flush=True)
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if answer:
            return json.loads(answer)
        died, self.process = self.process.wait(), None
        return f"the process ended with status {died}"

    def close(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()


@pytest.fixture(scope="module")
def judge():
    judge = Judge()
    yield judge
    judge.close()


def kind_of(verdict: str) -> str:
    """The exception, or that results differ."""
    return verdict.split(":")[0].split(" ")[0]


def shortest(judge: Judge, made: Composition, verdict: str):
    """The shortest composition that fails in the same way, one step at a time, and its verdict."""
    while True:
        found = ((other, judge.verdict(other)) for other in shorter(made))
        following = next(((other, words) for other, words in found if words and kind_of(words) == kind_of(verdict)), None)
        if following is None:
            return made, verdict
        made, verdict = following


@pytest.mark.parametrize("first", range(FIRST, FIRST + COUNT, SHARE))
def test_compositions(judge, first):
    problems = []
    for seed in range(first, min(first + SHARE, FIRST + COUNT)):
        made = draw(seed)
        verdict = judge.verdict(made)
        if verdict:
            small, words = shortest(judge, made, verdict)
            shapes = {name: small.arguments[name] for name in small.used()}
            problems.append(f"seed {seed} in {small.numerics}: {words}\n{shapes}, {small.symbols}\n{small.source()}")
    assert not problems, "\n\n".join(problems)
