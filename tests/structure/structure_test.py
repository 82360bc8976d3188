"""The rules that the tree itself keeps: layers, sizes, formatting, no generated files. One command line argument: the test to run."""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# The folders that a folder may include, besides itself (docs/develop/architecture.md, "Layers").
LAYERS = {
    "expr": [],
    "ir": ["expr", "scalide/dtypes.h"],
    "rulebook": ["expr", "ir", "yaml-cpp"],
    "frontend": ["expr", "ir", "rulebook", "transforms", "scalide"],
    "kinds": ["expr", "ir"],
    "transforms": ["expr", "ir", "kinds", "rulebook"],
    "interpret": ["expr", "ir", "kinds", "rulebook"],
    "lower": ["expr", "ir", "kinds", "Halide"],
    "schedules": ["expr", "ir", "rulebook", "lower", "Halide"],
    "emit": ["expr", "ir", "rulebook", "transforms", "lower", "schedules", "scalide", "Halide", "nlohmann", "fmt", "xxhash"],
    "tool": ["expr", "ir", "kinds", "rulebook", "transforms", "interpret", "emit", "lower", "schedules", "frontend", "scalide", "CLI", "fmt", "nlohmann", "dtl"],
}
GENERATED = re.compile(r"\.(o|a|so|stmt|ptx|cubin|pyc|whl)$|^build|(^|/)(coverage|reference)\.(md|html)$")


def tracked(*suffixes):
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout.split("\0")
    return [n for n in names if n and (not suffixes or n.endswith(suffixes)) and (ROOT / n).exists()]


def includes():
    for name in tracked(".h", ".cpp"):
        parts = name.split("/")
        layer = parts[1] if parts[0] == "generators" else parts[0] if parts[0] == "schedules" else None
        if layer not in LAYERS:
            continue
        for number, line in enumerate((ROOT / name).read_text().splitlines(), 1):
            found = re.match(r'\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', line)
            if not found:
                continue
            path = found[1] or found[2]
            top = path.split("/")[0].removesuffix(".h")
            is_std = found[2] and "/" not in path and not path.endswith(".h") or path.startswith("sys/")
            posix = found[2] and re.match(r"(unistd|fcntl|dirent|dlfcn|signal|spawn|poll|pthread|errno)\.h$", path)
            if not (is_std or posix or top == layer or top in LAYERS[layer] or path in LAYERS[layer]):
                yield f"{name}:{number}: {layer} may include only itself and {LAYERS[layer]}, got {path}"


def floors(title):
    """The floors of a section of the page of the architecture: for each line `folder: a, b < c` a dict from name to floor, from 0. Lines that
    are indented further continue the line before."""
    section = (ROOT / "docs/develop/architecture.md").read_text().split(f"## {title}\n")[1].split("\n## ")[0]
    picture = re.sub(r"\n {5,}", " ", "\n".join(re.findall(r"^    .*$", section, re.M)))
    rows = [row.rsplit(":", 1) for row in picture.splitlines()]
    return {row[0].strip(): {name.strip(): floor for floor, names in enumerate(row[1].split("<")) for name in names.split(",")} for row in rows}


def subfolders():
    """A subfolder includes only subfolders of floors below its own, and nothing of the folder around it, which is above all."""
    pages = floors("Subfolders of the layers")
    sources = tracked(".h", ".hpp", ".cpp")
    for layer, floor_of in pages.items():
        # The names in an #include begin at the layer's include path.
        start = {"runtime/src": "", "schedules": "schedules/"}.get(layer, layer.removeprefix("generators/") + "/")
        files = [name.removeprefix(layer + "/") for name in sources if name.startswith(layer + "/")]
        folders = {str(Path(file).parent) for file in files} - {"."}
        yield from (f"{layer}: the page must name the subfolder {folder}" for folder in sorted(folders - set(floor_of)))
        yield from (f"{layer}: the page names a subfolder without sources: {folder}" for folder in sorted(set(floor_of) - folders))
        for file in files:
            folder = str(Path(file).parent)
            if folder == ".":
                continue
            for number, line in enumerate((ROOT / layer / file).read_text().splitlines(), 1):
                found = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
                if not found or not found[1].startswith(start):
                    continue
                path = found[1].removeprefix(start)
                if not (ROOT / layer / path).exists():  # beside the source, or of another layer
                    continue
                target = str(Path(path).parent)
                if target != folder and floor_of.get(target, 99) >= floor_of.get(folder, -1):
                    yield f"{layer}/{file}:{number}: {folder} may include only floors below it, got {path}"
    for name in set(LAYERS) - {"frontend", "tool"}:  # their subfolders have headers for users, and the function main
        layer = name if name == "schedules" else f"generators/{name}"
        if layer not in pages and any("/" in file.removeprefix(layer + "/") for file in sources if file.startswith(layer + "/")):
            yield f"{layer}: the page must have a line for its subfolders"


def functions():
    """The functions of C++: file, line, name and lines, members too, as ctags finds them. The lines are those below the first."""
    listed = subprocess.run(["ctags", "-x", "--_xformat=%{end} %n %F %N", "--languages=C++", "--kinds-C++=f", "--fields=+ne", "-L", "-", "-f", "-"],
                            input="\n".join(tracked(".h", ".cpp", ".hpp")), cwd=ROOT, capture_output=True, text=True, check=True).stdout  # fmt: skip
    rows = [line.split(" ", 3) for line in listed.splitlines()]
    return [(file, int(begin), name, int(end) - int(begin)) for end, begin, file, name in rows if end]


def sizes():
    for name in tracked(".h", ".cpp", ".py", ".c"):
        count = len((ROOT / name).read_text().splitlines())
        if count > 800:
            yield f"{name}: a file has at most 800 lines, got {count}"
    found = functions()
    if len(found) < 5000:
        yield f"ctags finds at least 5000 functions, got {len(found)}"
    for file, line, name, count in found:
        most = 80 if file.startswith("tests/") else 40
        if count > most:
            yield f"{file}:{line}: {name}: a function has at most {most} lines, got {count}"
    for folder in ("generators", "schedules", "runtime", "tests"):
        counts = sorted(count for file, _, _, count in found if file.startswith(folder + "/"))
        print(f"{folder}: {len(counts)} functions, median {counts[len(counts) // 2]}, 90 % at most {counts[len(counts) * 9 // 10]}, most {counts[-1]} lines")


def rules_have_checks():
    for name in tracked(".yaml"):
        if not name.startswith("rules/") or name.startswith("rules/policies/"):
            continue
        for document in (ROOT / name).read_text().split("\n---"):
            op = re.search(r"^op:\s*(\S+)", document, re.M)
            if op and not re.search(r"^check:", document, re.M):
                yield f"{name}: {op[1]}: every rule has a check"


def nothing_generated():
    for name in tracked():
        if GENERATED.search(name):
            yield f"{name}: generated files are not tracked"
        elif (ROOT / name).stat().st_size > 1 << 20:
            yield f"{name}: a tracked file has at most 1 MiB"


def formatting():
    sources = tracked(".h", ".cpp")
    result = subprocess.run(["clang-format", "--dry-run", "-Werror", "--ferror-limit=1", *sources], cwd=ROOT, capture_output=True, text=True)
    yield from (line for line in result.stderr.splitlines() if "error:" in line)


def ascii_sources():
    for name in tracked(".h", ".cpp", ".py", ".c", ".yaml", ".cmake"):
        for number, line in enumerate((ROOT / name).read_bytes().splitlines(), 1):
            if any(byte > 126 for byte in line):
                yield f"{name}:{number}: sources are ASCII"


def mutations_apply():
    """Each wrong edit of tests/mutations stands for one place that is there."""
    text = (ROOT / "tests/mutations/mutations.yaml").read_text()
    for file, before in re.findall(r"^  file: (\S+)\n  from: '(.*)'$", text, re.M):
        count = (ROOT / file).read_text().count(before.replace("''", "'"))
        if count != 1:
            yield f"tests/mutations/mutations.yaml: {file}: `from` stands there once, got {count}: {before}"


def files_of_tables(text):
    """The files that the columns `file` of the tables of a page name, one list per row. A name without a folder may have the one before it."""
    for header, rows in re.findall(r"^\|(.*)\n\|[-| ]+\|\n((?:\|.*\n?)+)", text, re.M):
        columns = [n for n, cell in enumerate(header.split("|")) if re.match(r" files?\b", cell)]
        for row in rows.splitlines():
            for column in columns:
                yield re.findall(r"`([^`]+)`", row.split("|")[column + 1])


def readmes():
    """A folder with more than 8 sources has a README.md. Its rows name files that exist: `name.cpp`, or `name` for `name.h` and `name.cpp`."""
    folders = {}
    for name in tracked(".h", ".hpp", ".cpp", ".c", ".py"):
        if name.startswith(("generators/", "schedules/", "runtime/", "examples/", "tests/")):
            folders.setdefault(str(Path(name).parent), []).append(name)
    for folder, names in sorted(folders.items()):
        if len(names) > 8 and not (ROOT / folder / "README.md").exists():
            yield f"{folder}: a folder with more than 8 sources has a README.md, got {len(names)} sources and none"
    for name in tracked("README.md"):
        if not name.startswith(("generators/", "schedules/", "runtime/", "tests/")):  # pages for users also name files that a command writes
            continue
        for files in files_of_tables((ROOT / name).read_text()):
            place = (ROOT / name).parent
            for file in files:
                found = [folder for folder in (place, (ROOT / name).parent) if any(folder.glob(file)) or any(folder.glob(f"{file}.*"))]
                if not found:
                    yield f"{name}: a row names a file that does not exist: {file}"
                place = (found[0] / file).parent if found else place


def cmake_files():
    """The CMake files of the product give a target its own options, and read nothing outside of the project."""
    edits = re.compile(r"^\s*(?:set|string|list)\(.*\bCMAKE_(?:C|CXX)_FLAGS", re.M)
    for name in tracked("CMakeLists.txt", ".cmake"):
        text = (ROOT / name).read_text()
        for found in edits.finditer(text):
            yield f"{name}: options of a target must be its property, got {found[0].strip()}. Use target_compile_options"
        for found in re.finditer(r"PROJECT_SOURCE_DIR\}/\.\..*", text):
            yield f"{name}: a path must be inside the project, got {found[0]}"


TESTS = [includes, subfolders, sizes, rules_have_checks, nothing_generated, formatting, ascii_sources, mutations_apply, readmes, cmake_files]

if __name__ == "__main__":
    test = {t.__name__: t for t in TESTS}[sys.argv[1]]
    problems = list(test())
    print("\n".join(problems[:50]) or f"{test.__name__}: ok, {len(tracked())} files")
    sys.exit(bool(problems))
