"""The page of scalide.hpp, checkpoints.hpp and groups.hpp: their functions, and their classes with their public members."""
import re
from typing import NamedTuple

from references.c_headers import prose, targets
from references.tables import meanings

PAGE = "reference/cpp-runtime.md"
HEADERS = ("scalide.hpp", "checkpoints.hpp", "groups.hpp")
HEAD = """# The C++ interface: scalide.hpp

`scalide.hpp` has the C++17 classes that bind and run generated libraries. `checkpoints.hpp` has the class of checkpoints.
`groups.hpp` has the groups of ranks that exchange arrays.
All names are in the namespace `scalide::runtime`.
The tutorial is [C++ application](../guides/cpp-application.md). The classes call the [C interface](c-runtime.md), whose rules hold here, too.

"""


class Part(NamedTuple):
    """A declaration with its comment. `body` is the text between the braces of a class, or None."""

    code: str
    comment: str
    body: str


def closing(text, start):
    """The position after the bracket that closes the bracket at `start`."""
    depth = 0
    for token in re.finditer(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|//[^\n]*|[({\[]|[)}\]]', text[start:]):
        depth += (token[0] in "({[") - (token[0] in ")}]")
        if depth == 0:
            return start + token.end()
    raise ValueError(f"a bracket is not closed: {text[start : start + 80]}")


TOKEN = re.compile(r"\s+|(?P<doc>///(?!<) ?[^\n]*)|(?P<comment>//[^\n]*)|(?P<directive>#[^\n]*)|(?P<access>(?:public|private|protected):)|(?P<code>.)", re.S)
END = re.compile(r"[;({\[]")


def parts(text):
    """The public declarations of a namespace or of a class."""
    found, comment, position, hidden = [], [], 0, False
    while position < len(text):
        token = TOKEN.match(text, position)
        position = token.end()
        if token["doc"]:
            comment.append(token["doc"][3:].removeprefix(" "))
        elif token["access"]:
            hidden = token["access"] != "public:"
        elif token["code"]:
            code, body, position = declaration(text, token.start())
            after = re.match(r"[ \t]*///< ([^\n]*)", text[position:])
            if not hidden:
                found.append(Part(code, "\n".join(comment) or (after[1] if after else ""), body))
            comment = []
    return found


def declaration(text, position):
    """(code, body of a class or a namespace, the position after it) of the declaration at this position."""
    start, body = position, None
    while True:
        end = END.search(text, position)
        position = end.end() if end[0] == ";" else closing(text, end.start())
        code = text[start : end.start()]
        if end[0] == "{" and not re.search(r"= *$", code):
            if re.match(r"(template<.*?>\s*)?(class|struct|namespace)\b", code):
                body = text[end.end() : position - 1]
                position += text.startswith(";", position)
            return " ".join(code.split()), body, position
        if end[0] == ";":
            return " ".join(code.split()), body, position


def signature(code):
    """A declaration without its initializers and without conditions on types."""
    code = re.sub(r", typename = std::enable_if_t<.*?>>", ">", code)
    code = re.sub(r"(\)(?: const)?) : .*$", r"\1", code)
    return re.sub(r"^inline ", "", code)


def rows(members, known):
    shown = [part for part in members if not re.search(r"= delete$|^friend |^static_assert$", part.code)]
    return [(f"`{signature(part.code)}`", prose(" ".join(part.comment.split("\n")), PAGE, known)) for part in shown]


def runtime(root):
    """The introduction of scalide.hpp, and what the namespaces scalide::runtime of all headers declare."""
    text, *more = ((root / "runtime/include/scalide" / header).read_text() for header in HEADERS)
    intro = "\n".join(re.sub(r"^// ?", "", line) for line in re.match(r"(?://[^\n]*\n)+", text)[0].rstrip().split("\n"))
    namespaces = [part for header in (text, *more) for part in parts(header) if part.code == "namespace scalide::runtime"]
    return intro, [part for space in namespaces for part in parts(space.body) if part.code != "namespace detail"]


def page(root):
    intro, declared = runtime(root)
    known = targets(root)
    code = re.search(r"(?:^    [^\n]*\n)+", intro, re.M)
    text = HEAD + f"```cpp\n{re.sub('^    ', '', code[0], flags=re.M)}```\n\n{prose(intro[code.end() :].strip(), PAGE, known)}\n\n"
    loose = [part for part in declared if part.body is None]
    text += "## Types and functions\n\n" + meanings("declaration", rows(loose, known))
    for part in declared:
        if part.body is None:
            continue
        kind, name = re.match(r"(?:template<.*?>\s*)?(class|struct) (\w+)", part.code).groups()
        text += f"\n## {kind} {name}\n\n{prose(part.comment, PAGE, known)}\n\n" + meanings("member", rows(parts(body_of(part, kind)), known))
    return text


def body_of(part, kind):
    """The members of a class are private before the first `public:`."""
    return ("private:\n" if kind == "class" else "") + part.body
