"""The Python examples in the documentation run, those of a file one after the other."""
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGES = [str(page.relative_to(ROOT)) for page in (ROOT / "README.md", *ROOT.glob("*/python/README.md"), *ROOT.glob("*/*/python/README.md"))]


@pytest.mark.parametrize("page", PAGES)
def test_examples_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    examples = list(re.finditer(r"^```python\n(.*?)^```$", (ROOT / page).read_text(), re.S | re.M))
    assert examples
    names = {}
    for example in examples:
        line = (ROOT / page).read_text()[: example.start()].count("\n") + 1
        exec(compile("\n" * line + example[1], page, "exec"), names)


def test_help_is_enough_to_start():
    import scalide
    import scalide.jax

    for thing in (scalide, scalide.jax):
        for name in thing.__all__:
            assert getattr(thing, name).__doc__ or not callable(getattr(thing, name)), f"{thing.__name__}.{name} has no docstring"
    examples = re.findall(r"^    (.*)$", scalide.__doc__, re.M)
    exec("\n".join(examples), {})
