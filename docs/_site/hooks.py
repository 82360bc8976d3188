"""Hooks of mkdocs: pages that are written from the sources and the built tool, the navigation, and links to files outside of docs/.

The variable SCALIDE_BUILD_DIR names the build folder (default: build in the repository)."""
import os
import re
import sys
from pathlib import Path

import yaml
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
from references import c_headers, cli, cpp_header, dsl, environment, formats, operators, policies  # noqa: E402

#: The sections of reference/index.md about pages that exist in the site only. Links to a section become links to the page.
INDEX = "reference/index.md"
GENERATED = {
    "the-tool": "reference/cli.md",
    "operators": "reference/operators/index.md",
    "built-in-policies": "reference/built-in-policies.md",
    "number-formats": "reference/formats.md",
    "environment-variables": "reference/environment.md",
    "functions-of-c-programs": "reference/dsl.md",
    "the-c-interface": "reference/c-runtime.md",
    "tensor-files-in-c": "reference/c-safetensors.md",
    "checkpoints-in-c": "reference/c-checkpoints.md",
    "files-of-flax-in-c": "reference/c-msgpack.md",
    "metrics-in-c": "reference/c-metrics.md",
    "groups-of-ranks-in-c": "reference/c-groups.md",
    "the-c-classes": "reference/cpp-runtime.md",
}


def on_files(files, config):
    build = Path(os.environ.get("SCALIDE_BUILD_DIR", ROOT / "build"))
    tool = build / "generators/scalide"
    if not tool.exists():
        raise PluginError(f"cannot write the reference pages: {tool} does not exist. Build the target scalide, or name the build folder in SCALIDE_BUILD_DIR")
    pages = {
        "reference/cli.md": cli.page(tool),
        "reference/built-in-policies.md": policies.page(tool, ROOT),
        "reference/formats.md": formats.page(ROOT),
        "reference/environment.md": environment.page(ROOT),
        "reference/dsl.md": dsl.page(tool, ROOT),
        cpp_header.PAGE: cpp_header.page(ROOT),
        **c_headers.pages(ROOT),
        **operators.pages(tool),
    }
    unlisted = {path for path in pages if "/operators/" not in path} ^ set(GENERATED.values()) - {"reference/operators/index.md"}
    if unlisted:
        raise PluginError(f"each generated page must be in GENERATED of docs/_site/hooks.py, these differ: {sorted(unlisted)}")
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    existing = {file.src_uri for file in files.documentation_pages()}
    config.nav = navigation(yaml.safe_load((HERE / "nav.yaml").read_text()), existing)
    return files


def navigation(entries, existing):
    """The entries whose pages exist, with `folder/*` replaced by the other pages of the folder."""
    named = set(re.findall(r"[\w/.-]+\.md", str(entries)))

    def resolve(entry):
        if isinstance(entry, dict):
            ((title, below),) = entry.items()
            if isinstance(below, str):
                return [{title: below}] if below in existing else []
            below = [page for part in below for page in resolve(part)]
            return [{title: below}] if below else []
        if entry.endswith("/*"):
            return sorted(page for page in existing - named if page.rpartition("/")[0] == entry[:-2])
        return [entry] if entry in existing else []

    return [page for entry in entries for page in resolve(entry)]


def on_page_markdown(markdown, page, config, files):
    """Titles of excerpts are shown, and links to files of the repository become their paths."""
    markdown = re.sub(r"^( *```\w+) from=", r"\1 title=", markdown, flags=re.M)
    markdown = re.sub(r"^( *```\w+) status=\w+", r"\1", markdown, flags=re.M)
    if page.file.src_uri == INDEX:
        markdown = re.sub(r"^## (.+)\n", open_page, markdown, flags=re.M)
    parts = re.split(r"(^ *(?P<fence>```+).*?^ *(?P=fence) *$)", markdown, flags=re.S | re.M)
    folder = (ROOT / "docs" / page.file.src_uri).parent
    return "".join(outside_links(part, folder) if number % 3 == 0 else part for number, part in enumerate(parts) if number % 3 != 2)


def open_page(match):
    """The heading of a section of the index, with a link to the page that the section is about."""
    path = GENERATED.get(re.sub(r"[^a-z]+", "-", match[1].lower()))
    return match[0] + (f"\n[Open the page]({os.path.relpath(path, os.path.dirname(INDEX))})\n" if path else "")


def outside_links(text, folder):
    """Links to files outside of docs/ become their paths. Links to a section of the index become links to the generated page."""

    def replace(match):
        label, target = match[1], match[2]
        file, _, anchor = target.partition("#")
        if os.path.normpath(folder / file) == str(ROOT / "docs" / INDEX) and anchor in GENERATED:
            return f"[{label}]({os.path.relpath(ROOT / 'docs' / GENERATED[anchor], folder)})"
        path = Path(os.path.normpath(folder / target.partition("#")[0]))
        if re.match(r"\w+:|#|/", target) or path.is_relative_to(ROOT / "docs") and not path.is_relative_to(HERE):
            return match[0]
        if not path.exists():
            raise PluginError(f"{folder.relative_to(ROOT)}: the link to {target} leads to no file")
        name = str(path.relative_to(ROOT))
        return f"`{name}`" if label.strip("`").rstrip("/") in (name, path.name) else f"{label} (`{name}`)"

    return re.sub(r"(?<!!)\[([^\]\n]+)\]\(([^)\s]+)\)", replace, text)
