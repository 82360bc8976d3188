"""The pages of the operators, as `scalide rules --reference` writes them."""
import re
import subprocess
import tempfile
from pathlib import Path

HEAD = """# Operators

Each operator is a YAML rule that says what it computes, how scales pass through it, and what its gradient is.
This page lists all of them. [Rules](../rules.md) explains the language.

"""


def pages(tool):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([tool, "rules", "--reference", folder], check=True, stdout=subprocess.DEVNULL)
        texts = {file.stem: file.read_text() for file in Path(folder).glob("*.md")}
    index = texts.pop("README")
    found = {f"reference/operators/{name}.md": with_fences(text) for name, text in texts.items()}
    return found | {"reference/operators/index.md": HEAD + index[index.index("\n|") + 1 :]}


def with_fences(text):
    """Markdown wants an empty line after a heading and before a list."""
    text = re.sub(r"^(# .*)\n(?=\S)", r"\1\n\n", text)
    return re.sub(r"^(\|.*|[^\n-].*)\n(- )", r"\1\n\n\2", text, flags=re.M)
