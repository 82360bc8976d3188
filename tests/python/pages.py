"""The documentation as data: pages, and the Python examples of a page with what they print."""
import contextlib
import doctest
import io
import pathlib
import re
from typing import NamedTuple, Optional

import numpy as np

ROOT = pathlib.Path(__file__).parents[2]
FOLDERS = [ROOT / "runtime/python", ROOT / "generators/frontend/python"]
INDEXES = [folder / "README.md" for folder in FOLDERS]
#: One page for each entry point, beside the README that lists them.
ENTRY_POINTS = [page for folder in FOLDERS for page in sorted(folder.glob("*.md")) if page.name != "README.md"]


class Example(NamedTuple):
    code: str
    line: int
    output: Optional[str]  #: of the block ```text behind it; None: there is none


def examples(page: pathlib.Path) -> list:
    text = page.read_text()
    found = re.finditer(r"^```python\n(.*?)^```\n(?:```text\n(.*?)^```$)?", text, re.S | re.M)
    return [Example(match[1], text[: match.start()].count("\n") + 1, match[2]) for match in found]


def run(page: pathlib.Path):
    """Runs the examples of a page one after the other; yields each with what it printed."""
    names = {"__name__": "page"}
    for example in examples(page):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), np.printoptions():
            exec(compile("\n" * example.line + example.code, str(page.relative_to(ROOT)), "exec"), names)
        yield example, printed.getvalue()


def same(expected: str, printed: str) -> bool:
    """`...` stands for anything."""
    return doctest.OutputChecker().check_output(expected.strip(), printed.strip(), doctest.ELLIPSIS)
