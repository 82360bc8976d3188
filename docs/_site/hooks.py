"""Hooks of mkdocs: pages that are written from the sources and the built tool, the pages of the examples, pictures for light and dark pages, the
navigation, and links to files outside of docs/.

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
    "statistics-in-c": "reference/c-statistics.md",
    "groups-of-ranks-in-c": "reference/c-groups.md",
    "the-c-classes": "reference/cpp-runtime.md",
}
#: The color schemes of a page. The theme shows an image only in the scheme that the end of its address names: #only-light, #only-dark.
SCHEMES = "light", "dark"
DARK_RULES = re.compile(r"@media \(prefers-color-scheme: dark\) \{((?:[^{}]*\{[^{}]*\})*)\s*\}")


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
    for readme in (ROOT / "examples").glob("*/README.md"):
        files.append(File.generated(config, f"examples/{readme.parent.name}.md", content=readme.read_text()))
    for picture in (ROOT / "examples").glob("*/*.svg"):
        files.append(File.generated(config, f"examples/{picture.name}", abs_src_path=str(picture)))
    for picture in [file for file in files if file.src_uri.endswith(".svg")]:
        for scheme in SCHEMES:
            files.append(File.generated(config, of_scheme(picture.src_uri, scheme), content=in_scheme(Path(picture.abs_src_path).read_text(), scheme)))
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


def of_scheme(path, scheme):
    return f"{path[:-len('.svg')]}.{scheme}.svg"


def in_scheme(svg, scheme):
    """A picture in the colors of one scheme. An image cannot see the switch of the page: it follows the system."""
    return DARK_RULES.sub(r"\1" if scheme == "dark" else "", svg)


def on_page_content(html, page, config, files):
    """Each picture becomes two, so that it follows the switch of the page. A number in a cell stays in one line with its unit."""
    html = re.sub(r"(<td[^>]*>[-+]?[\d.,]+) (?=[\w%/]+</td>)", "\\1\u00a0", html)
    return re.sub(r'<img ([^>]*?)src="([^":]+\.svg)"([^>]*)>', in_both_schemes, html)


def in_both_schemes(match):
    return "".join(f'<img {match[1]}src="{of_scheme(match[2], scheme)}#only-{scheme}"{match[3]}>' for scheme in SCHEMES)


def on_page_markdown(markdown, page, config, files):
    """Titles of excerpts are shown, and links to files of the repository become their paths."""
    markdown = re.sub(r"^( *```\w+) from=", r"\1 title=", markdown, flags=re.M)
    markdown = re.sub(r"^( *```\w+) status=\w+", r"\1", markdown, flags=re.M)
    if page.file.src_uri == INDEX:
        markdown = re.sub(r"^## (.+)\n", open_page, markdown, flags=re.M)
    parts = re.split(r"(^ *(?P<fence>```+).*?^ *(?P=fence) *$)", markdown, flags=re.S | re.M)
    source = source_of(page.file.src_uri)
    return "".join(outside_links(part, source.parent, page.file.src_uri) if number % 3 == 0 else part for number, part in enumerate(parts) if number % 3 != 2)


def source_of(page):
    """The file from which a page of the site is written, in which links are relative to its folder."""
    example = re.fullmatch(r"examples/(\w+)\.md", page)
    return ROOT / f"examples/{example[1]}/README.md" if example and example[1] != "index" else ROOT / "docs" / page


def page_of(path):
    """The page of the site that shows this file of the repository, or None."""
    if path.is_relative_to(ROOT / "docs") and not path.is_relative_to(HERE):
        return str(path.relative_to(ROOT / "docs"))
    readme = path / "README.md" if path.is_dir() else path
    if readme.parent.parent == ROOT / "examples" and readme.name == "README.md" and readme.exists():
        return f"examples/{readme.parent.name}.md"
    return "examples/index.md" if path in (ROOT / "examples", ROOT / "examples/README.md") else None


def open_page(match):
    """The heading of a section of the index, with a link to the page that the section is about."""
    path = GENERATED.get(re.sub(r"[^a-z]+", "-", match[1].lower()))
    return match[0] + (f"\n[Open the page]({os.path.relpath(path, os.path.dirname(INDEX))})\n" if path else "")


def outside_links(text, folder, page):
    """Links to files without a page become their paths. Links to a section of the index become links to the generated page."""

    def replace(match):
        label, target = match[1], match[2]
        if re.match(r"\w+:|#|/", target):
            return match[0]
        file, _, anchor = target.partition("#")
        path = Path(os.path.normpath(folder / file))
        found = page_of(path)
        if found == INDEX and anchor in GENERATED:
            found, anchor = GENERATED[anchor], ""
        if found:
            return f"[{label}]({os.path.relpath(found, os.path.dirname(page) or '.')}{anchor and '#' + anchor})"
        if not path.exists():
            raise PluginError(f"{folder.relative_to(ROOT)}: the link to {target} leads to no file")
        name = str(path.relative_to(ROOT))
        return f"`{name}`" if label.strip("`").rstrip("/") in (name, path.name) else f"{label} (`{name}`)"

    return re.sub(r"(?<!!)\[([^\]\n]+)\]\(([^)\s]+)\)", replace, text)
