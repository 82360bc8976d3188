"""Where the command line tool is, and the command `scalide` of an installed package."""
import os
import pathlib
import sys


def tool_path():
    """The tool: SCALIDE_TOOL of the environment, or the one that came with the package. Raises FileNotFoundError."""
    path = pathlib.Path(os.environ.get("SCALIDE_TOOL") or pathlib.Path(__file__).parent / "_install" / "bin" / "scalide")
    if path.is_file():
        return path
    raise FileNotFoundError(f"{path}: must be the tool scalide, got no such file. Install the package, or name the tool in SCALIDE_TOOL.")


def main():
    tool = tool_path()
    os.execv(tool, [str(tool), *sys.argv[1:]])
