"""The page of the environment variables, from environment.yaml."""
import yaml

from references.tables import table

HEAD = """# Environment variables

Scalide works without any environment variable. This page lists those that change a default.

"""


def page(root):
    groups = yaml.safe_load((root / "docs/_site/environment.yaml").read_text())
    text = HEAD
    for group in groups:
        rows = [(f"`{name}`", entry["meaning"], entry["default"]) for name, entry in group["variables"].items()]
        text += f"## {group['title']}\n\n" + table(["variable", "meaning", "if it is not set"], rows) + "\n"
    return text
