"""Facts on which the pages and their tests rely. Usage: facts_test.py CTEST BUILD."""
import os
import re
import subprocess
import sys
from pathlib import Path

import installation

ROOT = Path(__file__).resolve().parents[2]
READS = re.compile(r'getenv\("(\w+)"|environ(?:\.get)?[\[(]"(\w+)"|envname\("(\w+)"|\$\{((?:SCALIDE|CUDA)\w+):-|\$ENV\{(\w+)')
#: What the scripts pass to each other, and what launchers of MPI pass to processes. Users do not set these variables.
INTERNAL = {"SCALIDE_WITH_PYTHON", "SCALIDE_WITH_DOCS", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE"}


def environment_variables():
    """The table of environment variables has the names that the sources read."""
    text = (ROOT / "docs/_site/environment.yaml").read_text()
    listed = set(re.findall(r"^    (\w+):$", text, re.M))
    files = [ROOT / "check", ROOT / "demo", ROOT / "tests/fuzz/run.sh", *ROOT.glob(".ci/*")]
    for folder in ("generators", "runtime", "schedules"):
        files += [file for file in (ROOT / folder).rglob("*") if file.suffix in (".h", ".cpp", ".c", ".py", ".cmake", ".txt")]
    read = {name for file in files if file.is_file() for found in READS.findall(file.read_text()) for name in found if name} - INTERNAL
    assert len(read) > 8
    assert read == listed, f"not in docs/_site/environment.yaml: {sorted(read - listed)}; not in the sources: {sorted(listed - read)}"


def anchors(page):
    """The anchors of the headings of a page."""
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", page.read_text(), re.M)}


def links():
    """The links of all Markdown files between files of the repository lead to a file of the repository. Pages that the site generates have a
    section in docs/reference/index.md."""
    names = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    dead = []
    for name in names:
        text = re.sub(r"^( *)(```+).*?^\1\2 *$|`[^`\n]*`", "", (ROOT / name).read_text(), flags=re.S | re.M)
        for target in re.findall(r"\]\(([^)\s]+)\)|<img[^>]* src=\"([^\"]+)", text):
            path, _, anchor = "".join(target).partition("#")
            if path and not re.match(r"\w+:", path):
                found = ROOT / os.path.normpath(os.path.join(os.path.dirname(name), path))
                if not found.exists() or anchor and found.suffix == ".md" and anchor not in anchors(found):
                    dead.append(f"{name}: {''.join(target)}")
    assert not dead, "dead links: " + ", ".join(dead)


def gallery():
    """The gallery has each example, with its number of lines in tens."""
    page = (ROOT / "docs/examples/index.md").read_text()
    counted = dict(re.findall(r"^\[`examples/(\w+)`\].*?(?:, | \| )(\d+) lines", page, re.S | re.M))
    counted.update(re.findall(r"^\| `(\w+)` \|.*\| (\d+) \|$", page, re.M))
    for folder in sorted({file.parent for file in (ROOT / "examples").glob("*/README.md")}):
        sources = [file for file in folder.glob("*") if file.suffix in (".cpp", ".h", ".py", ".rs", ".f90", ".scl", ".yaml") or file.name == "CMakeLists.txt"]
        lines = sum(len(file.read_text().splitlines()) for file in sources)
        assert abs(int(counted.get(folder.name, 0)) - lines) <= 5, f"docs/examples/index.md: {folder.name} has {lines} lines, the page says {counted.get(folder.name)}"


def halide_version():
    """Pages that name a version of Halide name the one that Scalide is built with."""
    version = re.search(r"^set\(SCALIDE_HALIDE_VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for other in re.findall(r"halide(?:==|-)(\d+\.\d+\.\d+)", page.read_text()):
            assert other == version, f"{page.relative_to(ROOT)} names Halide {other}, the build uses {version}"


def installation_tests(ctest, build):
    """The tests that tests/docs/installation.py names exist. Those of the Python package need a build that has it."""
    printed = subprocess.run([ctest, "-N", "--test-dir", build], capture_output=True, text=True, check=True).stdout
    tests = set(re.findall(r"Test +#\d+: (\S+)", printed))
    for line, test in installation.TESTED.items():
        if test == installation.WHOLE_SUITE:
            continue
        has_package = (Path(build) / "python/scalide").is_dir()
        assert test in tests or (test.startswith("python.") and not has_package), f"`{line}`: there is no test {test}"


if __name__ == "__main__":
    environment_variables()
    links()
    gallery()
    halide_version()
    installation_tests(*sys.argv[1:3])
    print("ok")
