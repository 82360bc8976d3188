"""The documentation as data: pages, and the Python examples of a page with what they print."""
import contextlib
import doctest
import io
import pathlib
import re
from typing import NamedTuple, Optional

import numpy as np

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = ROOT / "docs/reference/python"
#: One page for each entry point; index.md lists them.
ENTRY_POINTS = [page for page in sorted(FOLDER.glob("*.md")) if page.name != "index.md"]


class Example(NamedTuple):
    code: str
    line: int
    output: Optional[str]  #: the block ```text that follows; None: no such block


def examples(page: pathlib.Path) -> list:
    text = page.read_text()
    found = re.finditer(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```$)?", text, re.S | re.M)
    return [Example(match[1], text[: match.start()].count("\n") + 1, match[2]) for match in found]


def run(page: pathlib.Path):
    """Writes the files of a page, then runs its examples one after the other; yields each with what it printed."""
    for title, content in re.findall(r'^```\w+ title="(.*?)"\n(.*?)^```$', page.read_text(), re.S | re.M):
        pathlib.Path(title).write_text(content)
    names = {"__name__": "page"}
    for example in examples(page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), np.printoptions():
            exec(compile("\n" * example.line + example.code, page.name, "exec"), names)
        yield example, printed.getvalue()


def same(expected: str, printed: str) -> bool:
    """`...` stands for anything."""
    return doctest.OutputChecker().check_output(expected.strip(), printed.strip(), doctest.ELLIPSIS)
