"""The Python examples in the documentation run, those of a page one after the other, and print what the page says."""
import re

import pages
import pytest


def name_of(page):
    return str(page.relative_to(pages.ROOT))


@pytest.mark.parametrize("page", [pages.ROOT / "README.md", *pages.ENTRY_POINTS], ids=name_of)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert pages.examples(page)
    for example, printed in pages.run(page):
        if example.output is not None:
            assert pages.same(example.output, printed), f"{name_of(page)}:{example.line} prints\n{printed}"
        else:
            assert not printed, f"{name_of(page)}:{example.line}: what it prints must be shown"


@pytest.mark.parametrize("page", pages.ENTRY_POINTS, ids=name_of)
def test_page_has_its_parts(page):
    """What it is, an example with its output, the arguments, errors; the index lists it."""
    text = page.read_text()
    headings = re.findall(r"^## (.*)$", re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M), re.M)
    assert headings[0] == "Example" and headings[-1] == "Errors"
    assert "\n|---|" in text, "a table of arguments"
    assert all(example.output is not None for example in pages.examples(page))
    assert f"({page.name})" in (page.parent / "index.md").read_text()


def test_help_is_enough_to_start():
    import scalide
    import scalide.jax

    for thing in (scalide, scalide.jax):
        for name in thing.__all__:
            assert getattr(thing, name).__doc__ or not callable(getattr(thing, name)), f"{thing.__name__}.{name} has no docstring"
    examples = re.findall(r"^    (.*)$", scalide.__doc__, re.M)
    exec("\n".join(examples), {})
    for page in pages.ENTRY_POINTS:
        assert f"{page.name}" in scalide.__doc__, f"help(scalide) names every page, not {page.name}"
