"""Names and quoted strings in the text of programs."""
from __future__ import annotations

import difflib
import re
from typing import Iterable

_PLAIN = re.compile(r"(?!(?:inf|nan)\Z)[A-Za-z_$][A-Za-z0-9_.$]*\Z")


def meant(word: str, names: Iterable[str]) -> str:
    """Returns the end of a message about an unknown word: the nearest name, or else the first 20 names."""
    names = list(names)
    near = difflib.get_close_matches(word, names, 1)
    return f"Did you mean {near[0]!r}?" if near else f"There are: {', '.join(names[:20])}."


def is_name(text: str) -> bool:
    """Returns True if a program can use the text as a name: 1 to 1000 bytes of UTF-8 without zero bytes."""
    size = len(text.encode(errors="replace"))
    return 1 <= size <= 1000 and not re.search("[\0\ud800-\udfff]", text)


def name_text(name: str) -> str:
    """Returns a name as in the text of a program: plain or in quotes."""
    return name if _PLAIN.match(name) else quoted(name)


def identifier(name: str) -> str:
    """Returns the name for files and C functions: `_` replaces each byte that is not an ASCII letter or digit."""
    return re.sub(rb"[^A-Za-z0-9]", b"_", re.sub(rb"\A(?=[0-9]|\Z)", b"_", name.encode())).decode()


def quoted(text: str) -> str:
    """Returns the text in double quotes, with the escapes `\\"`, `\\\\` and `\\xHH`."""
    return '"' + re.sub(r'["\\\x00-\x1f\x7f]', lambda found: "\\" + found[0] if found[0] in '"\\' else f"\\x{ord(found[0]):02x}", text) + '"'


def unquoted(text: str) -> str:
    """Returns the text without quotes and escapes."""
    escape = re.compile(rb"\\(?:x([0-9A-Fa-f]{2})|(.))", re.S)
    return escape.sub(lambda found: bytes.fromhex(found[1].decode()) if found[1] else found[2], text[1:-1].encode()).decode()


def glob_pattern(glob: str) -> str:
    """Returns a regular expression that matches whole names and scopes as the glob does in policies (docs/reference/policies.md)."""
    pattern, place = "", 0
    while place < len(glob):
        rest = glob[place:]
        begins_segment = place == 0 or glob[place - 1] in "/."
        if len(rest) == 3 and rest[0] in "/." and rest.endswith("**"):
            return pattern + f"(?:{re.escape(rest[0])}.*)?"
        if rest.startswith("**") and begins_segment and rest[2:3] in ("/", "."):
            pattern, place = pattern + "(?:.*[/.])?", place + 3
        elif rest.startswith("**"):
            pattern, place = pattern + ".*", place + 2
        else:
            pattern, place = pattern + ("[^/.]*" if rest[0] == "*" else re.escape(rest[0])), place + 1
    return pattern
