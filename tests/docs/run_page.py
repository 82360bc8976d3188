"""Runs a page of the documentation: writes its files, runs its commands and its Python, compares what they print.

Usage: run_page.py PAGE.md --build BUILD [--prefix PREFIX] [--work FOLDER] [--update]
  --build   the build folder
  --prefix  an installation of that build; by default this script installs it into BUILD/tests/docs/prefix
  --python  the Python of the page; by default the Python of the build
  --work    the folder in which the page runs; by default a temporary folder
  --set     an environment variable of the page, as NAME=VALUE; repeatable
  --update  writes the printed text into the page, with `...` for the folder of the page and for measured seconds
The script ends with status 77 if the page needs the Python package and the build has none.
The kinds of blocks are described in docs/develop/writing.md."""
import argparse
import difflib
import doctest
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import blocks as page_blocks
import environment
import installation
from blocks import Block, PageError

PYTHON_PROCESS = pathlib.Path(__file__).with_name("python_process.py")
COMMAND_SECONDS = 300
SKIPPED = 77
SECONDS = re.compile(r"\b\d+\.\d+ s\b")


def clean(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))


def same(expected: str, printed: str) -> bool:
    """True if the printed text is the expected one. `...` in the expected text matches anything."""
    return doctest.OutputChecker().check_output(clean(expected), clean(printed), doctest.ELLIPSIS)


def difference(expected: str, printed: str) -> str:
    return "\n".join(difflib.unified_diff(clean(expected).split("\n"), clean(printed).split("\n"), "page", "printed", lineterm=""))


class Page:
    """One run of one page. `problems` holds what is wrong, `edits` the outputs that --update writes."""

    def __init__(self, path: pathlib.Path, variables: dict, work: pathlib.Path):
        self.path, self.variables, self.work = path.resolve(), variables, work
        self.root = page_blocks.root_of(self.path)
        self.folder = work / "page"
        self.text = self.path.read_text()
        self.python = None
        self.problems, self.edits = [], []

    def run(self):
        for name in ("page", "home", "tmp"):
            (self.work / name).mkdir()
        try:
            found = page_blocks.blocks(self.text)
            self._check_text_blocks(found)
            for number, block in enumerate(found):
                following = found[number + 1] if number + 1 < len(found) else None
                is_output = following and following.language == "text" and not following.attributes and page_blocks.follows(block, following, self.text)
                self._run_block(block, following if is_output else None)
        except PageError as error:
            self.problems.append((error.line, str(error)))
        finally:
            if self.python:
                self.python.stdin.close()
                self.python.wait()

    def _run_block(self, block: Block, output):
        if "title" in block.attributes:
            self._write(block)
        elif "from" in block.attributes:
            self._excerpt(block)
        elif block.language == "python":
            self._python(block, output)
        elif block.language == "console":
            self._console(block)
        elif block.language == "sh":
            self._installation(block)
        elif block.language not in ("text", "markdown"):
            raise PageError(block.line, f"a block of language {block.language!r} must have title= (a file that the page writes) or from= (an excerpt)")

    def _check_text_blocks(self, found):
        for before, block in zip([None, *found], found):
            is_output = before and before.language == "python" and "title" not in before.attributes and page_blocks.follows(before, block, self.text)
            if block.language == "text" and not block.attributes and not is_output:
                raise PageError(block.line, "a text block must directly follow a python block, whose output it is, or have title=")

    def _write(self, block: Block):
        if block.language == "text":  # a grammar or a picture
            return
        file = self.folder / block.attributes["title"]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text)

    def _excerpt(self, block: Block):
        file = self.root / block.attributes["from"]
        if not file.is_file():
            raise PageError(block.line, f"cannot read {block.attributes['from']}: there is no such file in the repository")
        if not page_blocks.is_excerpt(block, file):
            self.problems.append((block.line, f"these lines are not in {block.attributes['from']}"))

    def _python(self, block: Block, output):
        if not self.python:
            command = [self.work / "bin/python", PYTHON_PROCESS]
            self.python = subprocess.Popen(command, cwd=self.folder, env=self.variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        print(json.dumps({"code": block.text, "file": self.path.name, "line": block.line}), file=self.python.stdin, flush=True)
        answer = self.python.stdout.readline()
        if not answer:
            raise PageError(block.line, f"the Python process ended with status {self.python.wait()}")
        answer = json.loads(answer)
        if answer["error"]:
            raise PageError(block.line, answer["printed"] + answer["error"])
        if output:
            self._compare(block.line, output.text, answer["printed"], (output.line, output.end - 1, output.indent, ""))
        elif answer["printed"]:
            self._compare(block.line, "", answer["printed"], (block.end, block.end, block.indent, "```text\n"))

    def _console(self, block: Block):
        found = page_blocks.commands(block)
        for command in found:
            if command.text.split()[0] in ("cd", "export"):
                raise PageError(command.line, "each command runs in a shell of its own, in the folder of the page")
            result = self._shell(command)
            wanted = int(block.attributes.get("status", 0)) if command is found[-1] else 0
            if result.returncode != wanted:
                raise PageError(command.line, f"`{command.text}` ended with status {result.returncode}, the page says {wanted}\n{result.stdout}")
            if command.output is not None:
                first = command.first_output - 1
                self._compare(command.line, command.output, result.stdout, (first, first + command.output.count("\n"), block.indent, ""))

    def _shell(self, command):
        options = {"cwd": self.folder, "env": self.variables, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
        try:
            return subprocess.run(["bash", "-o", "pipefail", "-c", command.text], text=True, errors="replace", timeout=COMMAND_SECONDS, **options)
        except subprocess.TimeoutExpired:
            raise PageError(command.line, f"`{command.text}` took longer than {COMMAND_SECONDS} seconds") from None

    def _installation(self, block: Block):
        for offset, line in enumerate(block.text.splitlines()):
            if line.strip() and not line.startswith("#") and not installation.is_tested(line, self.root):
                self.problems.append((block.line + 1 + offset, f"no test runs `{line}`. Add the line to tests/docs/installation.py"))

    def _compare(self, line: int, expected: str, printed: str, place):
        """`place` is where --update writes: the first line and the line after the last one (from 0), the indentation, and a fence that is missing."""
        if not same(expected, printed):
            self.problems.append((line, f"prints something else:\n{difference(expected, printed)}"))
            self.edits.append((place, SECONDS.sub("... s", clean(printed).replace(str(self.folder), "..."))))

    def update(self):
        """Writes the printed outputs into the page."""
        lines = self.text.split("\n")
        for (first, end, indent, fence), printed in sorted(self.edits, reverse=True):
            text = fence + printed + ("\n```" if fence else "")
            lines[first:end] = [(" " * indent + line).rstrip() for line in text.split("\n")]
        self.path.write_text("\n".join(lines))


def needs_python(path: pathlib.Path) -> bool:
    """True if a block of the page runs Python."""
    found = page_blocks.blocks(path.read_text())
    return any(block.language == "python" and not block.attributes or "$ python" in block.text for block in found)


def run_page(path: pathlib.Path, variables: dict, work: pathlib.Path) -> Page:
    page = Page(path, variables, work)
    page.run()
    return page


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--prefix", type=pathlib.Path)
    parser.add_argument("--python", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--update", action="store_true")
    return parser.parse_args()


def main():
    given = arguments()
    build = given.build.resolve()
    if needs_python(given.page) and not (build / "python/scalide").is_dir():
        print(f"{given.page}: skipped, the build has no Python package (CMake option SCALIDE_BUILD_PYTHON)")
        sys.exit(SKIPPED)
    prefix = given.prefix.resolve() if given.prefix else environment.install(build)
    with tempfile.TemporaryDirectory(prefix="page-") as temporary:
        work = given.work.resolve() if given.work else pathlib.Path(temporary) / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        variables = environment.environment(build, prefix, given.python or environment.python_of(build), work)
        page = run_page(given.page, variables | dict(text.split("=", 1) for text in given.set), work)
    for line, message in page.problems:
        print(f"{given.page}:{line}: {message}")
    if given.update and page.edits:
        page.update()
        print(f"{given.page}: wrote {len(page.edits)} outputs")
    if not page.problems:
        print(f"{given.page}: ok")
    sys.exit(bool(page.problems))


if __name__ == "__main__":
    main()
