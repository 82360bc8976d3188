"""The command `scalide` of an installed package: it replaces the Python process by the tool."""
import os
import sys

from .tool_process import tool_path


def main():
    tool = tool_path()
    os.execv(tool, [str(tool), *sys.argv[1:]])
