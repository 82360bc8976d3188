"""The command `scalide` of an installed package."""
import os
import sys

from .build import tool_path


def main():
    tool = tool_path()
    os.execv(tool, [str(tool), *sys.argv[1:]])
