"""The page of the commands, from what --help prints."""
import re
import subprocess

from references.tables import plain, table

HEAD = """# The command line

The tool `scalide` compiles, runs and inspects programs. This page lists every command with its options, as `scalide COMMAND --help` prints them.

## Exit codes

| code | meaning |
|---|---|
| 0 | The command succeeded. |
| 1 | Something that you passed is wrong. One line on stderr names the mistake. |
| 2 | The command line is wrong: an unknown command or option, or a missing argument. |
| 70 | Scalide has a bug. Please report it. |

"""


def help_of(tool, *words):
    printed = subprocess.run([tool, *words, "--help"], capture_output=True, text=True, check=True).stdout
    return printed.replace(str(tool), "scalide")


def entries(text, section):
    """(name, meaning) of each entry of a section such as Options."""
    found = re.search(rf"^{section}:\n((?:  .*\n)+)", text, re.M)
    rows = []
    for line in found[1].splitlines() if found else []:
        name, _, meaning = line.strip().partition("  ")
        if line.startswith(" " * 10):
            rows[-1][1] = f"{rows[-1][1]} {line.strip()}".strip()
        else:
            rows.append([name, meaning.strip()])
    return rows


def page(tool):
    text = HEAD
    whole = help_of(tool)
    for command, _ in entries(whole, "Subcommands"):
        printed = help_of(tool, command)
        usage = re.search(r"^Usage: (.*)$", printed, re.M)[1]
        summary = printed.split("\n")[0]
        text += f"## scalide {command}\n\n{plain(summary)}\n\n```\n{usage}\n```\n\n"
        for section, heading in (("Positionals", "argument"), ("Options", "option")):
            rows = [(f"`{name}`", plain(meaning)) for name, meaning in entries(printed, section)]
            if rows:
                text += table([heading, "meaning"], rows) + "\n"
    return text
