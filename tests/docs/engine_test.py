"""run_page.py finds each kind of mistake in a page, at the right line, and updates outputs. Needs no build."""
import os
import sys
import tempfile
from pathlib import Path

import run_page

#: A page, the line of its problem (None: it has none), and words of the message.
PAGES = [
    ("```python\nprint(1)\n```\n```text\n1\n```\n", None, ""),
    ("```python\nprint(1)\n```\n\n```text\n...\n```\n", None, ""),
    ("```python\nprint(1)\n```\n```text\n2\n```\n", 1, "prints something else"),
    ("```python\nprint(1)\n```\n", 1, "prints something else"),
    ("```python\nx = 1\n```\n```python\nprint(x + y)\n```\n", 4, "NameError"),
    ("```python\nimport os\nos.write(1, b'raw')\n```\n```text\nraw\n```\n", None, ""),
    ('```c title="a/b.c"\nint x;\n```\n```console\n$ cat a/b.c\nint x;\n$ echo seen\n```\n', None, ""),
    ("```console\n$ echo a\n$ echo b\nc\n```\n", 3, "prints something else"),
    ("```console\n$ false | cat\n```\n", 2, "ended with status 1"),
    ("```console status=3\n$ true\n$ exit 3\n```\n", None, ""),
    ("```console status=1\n$ false\n$ false\n```\n", 2, "ended with status 1"),
    ("```console\n$ cd elsewhere\n```\n", 2, "a shell of its own"),
    ('```toml from="pyproject.toml"\n[build-system]\n```\n', None, ""),
    ('```toml from="pyproject.toml"\n[no-system]\n```\n', 1, "are not in pyproject.toml"),
    ('```toml from="nowhere.toml"\nx\n```\n', 1, "no such file"),
    ("```sh\npip install .\n# a comment\n```\n", None, ""),
    ("```sh\npip install other\n```\n", 2, "no test runs"),
    ("```text\nalone\n```\n", 1, "must directly follow"),
    ('```text title="a grammar"\nx = y\n```\n', None, ""),
    ("```c\nint x;\n```\n", 1, "must have title="),
    ("```python titel=x\n```\n", 1, "unknown word 'titel=x'"),
    ("text\n```python\n", 2, "no closing fence"),
    ("- item\n  ```python\n  print(3)\n  ```\n  ```text\n  3\n  ```\n", None, ""),
]
UPDATED = ("```python\nprint('took 1.5 s')\n```\n- item\n  ```console\n  $ echo new\n  old\n  ```\n",
           "```python\nprint('took 1.5 s')\n```\n```text\ntook ... s\n```\n- item\n  ```console\n  $ echo new\n  new\n  ```\n")  # fmt: skip


def run(folder, text):
    work = folder / "work"
    work.mkdir(parents=True)
    (folder / "pyproject.toml").write_text("[build-system]\n")
    (folder / "page.md").write_text(text)
    (work / "bin").mkdir()
    (work / "bin/python").symlink_to(sys.executable)
    return run_page.run_page(folder / "page.md", dict(os.environ), work)


def main():
    with tempfile.TemporaryDirectory() as temporary:
        for number, (text, line, words) in enumerate(PAGES):
            problems = run(Path(temporary) / str(number), text).problems
            assert bool(problems) == (line is not None), (text, problems)
            assert not problems or problems[0][0] == line and words in problems[0][1], (text, problems)
        page = run(Path(temporary) / "updated", UPDATED[0])
        page.update()
        assert page.path.read_text() == UPDATED[1], page.path.read_text()
    print(f"{len(PAGES)} pages: ok")


main()
