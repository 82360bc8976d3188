"""Draws the pictures of docs/images that show numbers of pages, of measured.json or of the built tool.

Usage: draw.py [--check] [NAME...], with a Python that has matplotlib (the environment of the site). SCALIDE_BUILD_DIR names the build folder.
--check writes nothing. It fails if a picture differs from its file.
"""
import argparse
import sys

import of_builds
import of_examples
import of_formats
import of_numbers
import of_runs
from sources import ROOT

PICTURES = {**of_numbers.PICTURES, **of_builds.PICTURES, **of_formats.PICTURES, **of_runs.PICTURES, **of_examples.PICTURES}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME", help="pictures without .svg, all if left out")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(PICTURES)
    if unknown:
        sys.exit(f"unknown picture '{min(unknown)}'. One of: {', '.join(PICTURES)}")
    stale = []
    for name in arguments.names or PICTURES:
        file, text = ROOT / "docs/images" / f"{name}.svg", PICTURES[name]()
        if not arguments.check:
            file.write_text(text)
        elif not file.exists() or file.read_text() != text:
            stale.append(name)
    if stale:
        sys.exit(f"these pictures do not show the numbers of their sources: {', '.join(stale)}. Run docs/_site/pictures/draw.py {' '.join(stale)}")
    print(f"{len(arguments.names or PICTURES)} pictures")


if __name__ == "__main__":
    main()
