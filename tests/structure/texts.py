"""The texts that users read, as pieces of prose: paragraphs, list items, cells of tables, comments, docstrings, help texts."""
import ast
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


class Piece(NamedTuple):
    file: str
    line: int
    text: str


def tracked(*patterns):
    """The tracked files, and new ones that git does not ignore, which match one of the patterns."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout.split("\0")
    return sorted({name for name in names if name and (ROOT / name).is_file()})


def without_code(text):
    """Prose without what stands between backticks, and with the text of links only."""
    text = re.sub(r"(`+).+?\1", "CODE", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"<[^>]+>|\*\*", "", text)


def markdown(name):
    """Paragraphs, items, headings and cells of a page, without its blocks."""
    text = (ROOT / name).read_text()
    blank = lambda match: "\n" * match[0].count("\n")  # noqa: E731
    text = re.sub(r"^( *)(```+).*?^\1\2 *$", blank, text, flags=re.S | re.M)
    text = re.sub(r"(?<=\n\n)( {4}(?! *([-*+]|\d+\.) )[^\n]*\n)+", blank, text)
    text = re.sub(r"<!--.*?-->|\A---\n.*?^---$", blank, text, flags=re.S | re.M)
    piece, start = "", 0
    for number, line in enumerate([*text.split("\n"), ""], 1):
        stripped = line.strip()
        ends = not stripped or re.match(r"#|\||[-*+] |\d+\. |>", stripped)
        if ends and piece:
            yield Piece(name, start, without_code(piece))
            piece = ""
        if stripped.startswith("|"):
            if not re.fullmatch(r"[-:| ]+", stripped):
                for cell in re.split(r"(?<!\\)\|", re.sub(r"`[^`]*`", "CODE", stripped)):
                    if cell.strip():
                        yield Piece(name, number, without_code(cell.strip()))
        elif stripped:
            start = start if piece else number
            piece += " " * bool(piece) + re.sub(r"^(#+|[-*+]|\d+\.|>) +", "", stripped)
            if stripped.startswith("#"):
                yield Piece(name, number, without_code(piece))
                piece = ""


def comments(name):
    """Blocks of comments of a C or C++ header; lines of code in them (indented by four) are left out."""
    text = (ROOT / name).read_text()
    for match in re.finditer(r"/\*.*?\*/|(?:^[^\n\"]*?//[^\n]*\n)(?:[ \t]*//[^\n]*\n)*", text, re.S | re.M):
        body = match[0] if match[0].startswith("/*") else re.sub(r"^.*?//[/!<]*", "", match[0], count=0, flags=re.M)
        lines = [line for line in re.sub(r"^\s*/?\*+/?<?|\*/", "", body, flags=re.M).split("\n") if not line.startswith("    ")]
        yield Piece(name, text[: match.start()].count("\n") + 1, without_code(" ".join(line.strip() for line in lines).strip()))


def hash_comments(name):
    text = (ROOT / name).read_text()
    for match in re.finditer(r"(?:^[ \t]*#[^\n]*\n)+", text, re.M):
        lines = [line.strip().lstrip("#").strip() for line in match[0].split("\n") if not re.match(r"\s*#\s{4,}", line)]
        yield Piece(name, text[: match.start()].count("\n") + 1, without_code(" ".join(lines)))


def docstrings(name):
    for node in ast.walk(ast.parse((ROOT / name).read_text())):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and (text := ast.get_docstring(node)):
            lines = [line for line in text.split("\n") if not line.startswith("    ")]
            yield Piece(name, node.body[0].lineno, without_code(" ".join(lines)))


def docs_of_rules(name):
    text = (ROOT / name).read_text()
    for match in re.finditer(r"^( *)doc: *([^\n]*(?:\n\1 +[^\n]*)*)", text, re.M):
        yield Piece(name, text[: match.start()].count("\n") + 1, without_code(" ".join(match[2].split())))


def helps(tool):
    """What --help prints, by the built tool, or the strings of its sources."""
    if not tool:
        for name in tracked("generators/tool/*.cpp"):
            for number, line in enumerate((ROOT / name).read_text().split("\n"), 1):
                if re.search(r"add_(option|flag|subcommand)|^\s*\"", line):
                    yield Piece(name, number, " ".join(re.findall(r'"((?:[^"\\]|\\.)*)"', line)))
        return
    run = lambda *words: subprocess.run([tool, *words, "--help"], capture_output=True, text=True, check=True).stdout  # noqa: E731
    commands = re.findall(r"^  (\w+) ", run().split("Subcommands:")[1], re.M)
    for words in ([], *([command] for command in commands)):
        for number, line in enumerate(run(*words).split("\n"), 1):
            yield Piece(f"scalide {' '.join([*words, '--help'])}", number, line)


PAGES = ["README.md", "HACKING.md", "CHANGELOG.md", "SECURITY.md", "docs/**.md"]
INSTALLED_HEADERS = ["runtime/include/**.h", "generators/expr/*.h", "generators/ir/*.h", "generators/rulebook/*.h", "generators/frontend/**.h",
                     "generators/tool/tool.h"]  # fmt: skip


def all_pieces(tool):
    """Every piece that users and maintainers read."""
    for kind, patterns in ((markdown, [*PAGES, "**/README.md"]), (comments, INSTALLED_HEADERS), (hash_comments, ["*AddScalide.cmake*"]),
                           (docstrings, ["runtime/python/**.py", "generators/frontend/python/**.py"]), (docs_of_rules, ["rules/**.yaml"])):  # fmt: skip
        for name in tracked(*patterns):
            yield from kind(name)
    yield from helps(tool)
