"""The page of the built-in policies, from `scalide policies` and their files."""
import re
import subprocess

from references.tables import plain

HEAD = """# Built-in policies

A precision policy says in which number formats a program runs. This page lists the policies that Scalide brings, each with its file.
[Choosing a policy](../concepts/choosing-a-policy.md) compares them. [Policies](policies.md) explains the keys.

"""


def page(tool, root):
    printed = subprocess.run([tool, "policies"], capture_output=True, text=True, check=True).stdout
    text = HEAD
    for name, doc in re.findall(r"^(\S+) +(.*)$", printed, re.M):
        file = root / f"rules/policies/{name}.yaml"
        text += f"## {name}\n\n{plain(doc)}\n\n```yaml title=\"rules/policies/{name}.yaml\"\n{file.read_text().rstrip()}\n```\n\n"
    return text
