"""Each public name of the package has a page in docs/reference/python, and each page has the same parts. tests/docs runs the pages."""
import pathlib
import re

import pytest
import scalide
import scalide.jax

FOLDER = pathlib.Path(__file__).parents[2] / "docs/reference/python"
PAGES = [page for page in sorted(FOLDER.glob("*.md")) if page.name != "index.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_has_its_parts(page):
    """First an example with its output, then a table of arguments, at last errors. The index lists the page."""
    text = page.read_text()
    headings = re.findall(r"^## (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M), re.M)
    assert headings[0] == "Example" and headings[-1] == "Errors"
    assert re.search(r"^\|[-:| ]+\|$", text, re.M), "a table of arguments"
    assert re.search(r"^```python\n.*?^```\n+```text$", text, re.S | re.M), "an example with its output"
    assert f"({page.name})" in (FOLDER / "index.md").read_text()


@pytest.mark.parametrize("module", [scalide, scalide.jax], ids=lambda module: module.__name__)
def test_names_are_documented(module):
    text = "".join(page.read_text() for page in FOLDER.glob("*.md"))
    for name in (name for name in module.__all__ if not name.startswith("__")):
        thing = getattr(module, name)
        assert thing.__doc__ or not callable(thing), f"{module.__name__}.{name} has no docstring"
        assert re.search(rf"\b{name}\b", text), f"{module.__name__}.{name} stands on no page"


def test_help_is_enough_to_start():
    exec("\n".join(re.findall(r"^    (.*)$", scalide.__doc__, re.M)), {})
    for page in PAGES:
        assert page.name in scalide.__doc__, f"help(scalide) does not name {page.name}"
