#!/usr/bin/env python3
"""Do the tests notice small wrong edits? Each edit of mutations.yaml is made in this tree, what it touches is built, its tests run, and the
tree is as it was. An edit with which all tests pass has survived: a test is missing.

Usage: mutate.py [--build FOLDER] [REGEX]     FOLDER: of a finished ./check (default: build); REGEX: only edits whose name matches
Status 0: all were caught. 1: one survived, or its tests did not run.
"""
import argparse
import re
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]


def edits():
    return yaml.safe_load((Path(__file__).parent / "mutations.yaml").read_text())


def build(folder, targets):
    """True when it compiles: an edit that does not is caught too."""
    return not targets or subprocess.run(["cmake", "--build", folder, "--target", *targets], stdout=subprocess.DEVNULL).returncode == 0


def verdict(folder, edit):
    if not build(folder, edit["build"]):
        return "caught by the compiler"
    tests = subprocess.run(["ctest", "--test-dir", folder, "-R", edit["tests"], "-LE", "^(slow|card)$", "--no-tests=error", "--stop-on-failure"],
                           capture_output=True, text=True)  # fmt: skip
    if "No tests were found" in tests.stdout + tests.stderr:
        return "NO TESTS"
    failed = re.search(r"- (\S+).*\((?:Failed|Timeout|SEGFAULT|Subprocess aborted)\)", tests.stdout)
    return f"caught by {failed[1]}" if failed else "SURVIVED"


def try_edit(folder, edit):
    file = ROOT / edit["file"]
    before = file.read_text()
    if before.count(edit["from"]) != 1:
        return "NOT APPLICABLE: `from` must stand in the file once"
    try:
        file.write_text(before.replace(edit["from"], edit["to"]))
        return verdict(folder, edit)
    finally:
        file.write_text(before)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build", type=Path, metavar="FOLDER")
    parser.add_argument("regex", nargs="?", default="")
    options = parser.parse_args()
    chosen = [edit for edit in edits() if re.search(options.regex, edit["name"])]
    verdicts = []
    for edit in chosen:
        verdicts.append(try_edit(options.build, edit))
        print(f"{edit['name']:48} {verdicts[-1]}", flush=True)
    build(options.build, sorted({target for edit in chosen for target in edit["build"]}))
    caught = sum(text.startswith("caught") for text in verdicts)
    print(f"{caught} of {len(verdicts)} caught")
    sys.exit(caught < len(verdicts))


if __name__ == "__main__":
    main()
