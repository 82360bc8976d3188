"""The pages of the C headers: one section for each function, struct, enum and macro, from the comments of the headers."""
import re
from typing import NamedTuple

from references.tables import meanings, plain, table

PLACE = "runtime/include/scalide"
#: Header, its page, the title, the first sentences, and the groups: a title, and the first name of the group in the header.
#: The first group begins with the first declaration.
PAGES = [
    ("scalide.h", "reference/c-runtime.md", "The C interface: scalide.h",
     "`scalide.h` has the C functions that bind and run generated libraries. This page is for applications in C, and for bindings of other languages.\n"
     "The tutorial is [C application](../guides/c-application.md). In C++, use [`scalide.hpp`](cpp-runtime.md) instead.",
     [("Version and limits", "SCALIDE_MAX_RANK"), ("Element types", "scalide_dtype"), ("Statuses", "scalide_status"), ("Arrays", "scalide_array"),
      ("Handles and devices", "scalide_context"), ("Options of a context", "scalide_allocator"), ("Contexts", "scalide_context_create"),
      ("Memory and copies", "scalide_allocate"), ("Conversion", "scalide_convert"), ("Bind", "scalide_bind"), ("Run", "scalide_run"),
      ("Facts about a program", "scalide_role"), ("Facts about a binding", "scalide_step_info"), ("Shared libraries", "scalide_library")]),
    ("safetensors.h", "reference/c-safetensors.md", "Tensor files in C: safetensors.h",
     "`safetensors.h` has the C functions that read and write safetensors files. Other tensor files are not supported.\n"
     "[Files](../guides/c-application.md#files) has an example. In C++, use `State::save` and `State::load` of [`scalide.hpp`](cpp-runtime.md).",
     [("Content of a file", "scalide_tensor"), ("Read a file", "scalide_safetensors_read"), ("Tensors of a file", "scalide_safetensors_count"),
      ("Skipped tensors and metadata", "scalide_skipped_tensor"), ("Write a file", "scalide_safetensors_content")]),
    ("checkpoints.h", "reference/c-checkpoints.md", "Checkpoints in C: checkpoints.h",
     "`checkpoints.h` has the C functions that save and restore the state of a training run. To write a single file, use [`safetensors.h`](c-safetensors.md).\n"
     "[Checkpoints of a training run](../guides/checkpoints.md#checkpoints-of-a-training-run) has examples. In C++, use the class `Checkpoints` of "
     "[`checkpoints.hpp`](cpp-runtime.md).",
     [("Options", "scalide_checkpoint_format"), ("Save a checkpoint", "scalide_checkpoint_save"), ("List checkpoints", "scalide_checkpoint_steps"),
      ("Read a checkpoint", "scalide_checkpoint_path"), ("State of a binding", "scalide_binding_save")]),
    ("msgpack.h", "reference/c-msgpack.md", "Files of Flax in C: msgpack.h",
     "`msgpack.h` has the C functions that read and write the msgpack files of Flax. Other msgpack files are not supported.\n"
     "To save the state of a training run, use [`checkpoints.h`](c-checkpoints.md), which has the same format as an option.",
     [("Leaves", "scalide_leaf_kind"), ("Read a file", "scalide_msgpack_read"), ("Write a file", "scalide_msgpack_write")]),
    ("metrics.h", "reference/c-metrics.md", "Metrics in C: metrics.h",
     "`metrics.h` has the C functions that write the metrics of a training run. They write numbers only, no arrays and no pictures.\n"
     "In C++, use `Metrics` of [`scalide.hpp`](cpp-runtime.md). In Python, use [`scalide.Metrics`](python/metrics.md).",
     [("Options and values", "scalide_metrics"), ("Write metrics", "scalide_metrics_open")]),
    ("statistics.h", "reference/c-statistics.md", "Statistics in C: statistics.h",
     "`statistics.h` has the C functions that collect statistics of the tensors of a compiled program. The program must be built with statistics.\n"
     "In Python, use [`Library.statistics`](python/library.md#statistics).",
     [("Options and values", "scalide_statistics"), ("Describe tensors", "scalide_statistics_count"), ("Collect and read", "scalide_statistics_create")]),
    ("groups.h", "reference/c-groups.md", "Groups of ranks in C: groups.h",
     "`groups.h` has the C functions with which one program runs on several processes or threads, which exchange arrays during a run.\n"
     "Programs that exchange no arrays do not need it. In C++, use [`groups.hpp`](cpp-runtime.md).",
     [("Transports", "SCALIDE_MAX_RANKS"), ("Join a group", "scalide_join"), ("Threads of one process", "scalide_thread_group"),
      ("Facts about a group", "scalide_group_ranks")]),
]  # fmt: skip


class Item(NamedTuple):
    """One declaration of a header. `members` holds (code, comment) of a struct or an enum."""

    name: str
    code: str
    comment: str
    members: list


def without_stars(comment):
    """The lines of a `/* */` comment."""
    return "\n".join(re.sub(r"^\s*\* ?|^\s+", "", line) for line in comment[2:-2].strip().split("\n"))


TOKEN = re.compile(r"(?P<comment>/\*.*?\*/)|(?P<directive>^[ \t]*#(?:[^\n\\]|\\.)*)|(?P<newline>\n)|(?P<open>[{(])|(?P<close>[})])"
                   r"|(?P<end>[;,])|(?P<code>[^{}();,/\n#]+|.)", re.S | re.M)  # fmt: skip


def statements(text, end):
    """[code, comment] of each part of a text that ends with the sign `end` outside of brackets. A directive of the preprocessor is a part, too.
    A comment belongs to the part that follows it, or to the part before it if it starts in the last line of that part."""
    found, code, comment, depth, same_line = [], "", "", 0, False
    for token in TOKEN.finditer(text):
        kind, piece = token.lastgroup, token[0]
        depth += (kind == "open") - (kind == "close")
        if depth > 0 or kind in ("open", "close") or kind == "end" and piece != end:
            code += piece
        elif kind == "comment" and same_line:
            found[-1][1] = without_stars(piece)
        elif kind == "comment":
            comment = without_stars(piece)
        elif kind in ("directive", "end"):
            found.append([piece.strip() if kind == "directive" else code.strip(), comment])
            code, comment, same_line = "", "", True
        else:
            same_line = same_line and kind != "newline"
            code += " " if kind == "newline" else piece
    return found + [[code.strip(), comment]] * bool(code.strip())


def dtypes(root):
    """The values of scalide_dtype: the rows of a table that macros expand."""
    text = (root / PLACE / "dtypes.h").read_text()
    rows = re.search(r"#define SCALIDE_DTYPES\(row\)(.*?)\n#define", text, re.S)[1]
    return [(f"SCALIDE_{name} = {number}", f"`{word}`") for name, word, number in re.findall(r'row\((\w+), +\w+, +"(\w+)", +(\d+)', rows)]


def enumerators(body):
    """The values of an enum with their numbers."""
    members, number = [], 0
    for code, comment in statements(body, ","):
        name, _, value = code.partition("=")
        number = int(value) if value.strip() else number
        members.append((f"{name.strip()} = {number}", comment))
        number += 1
    return members


def item(code, comment, root):
    """The Item of a declaration, or None if the part declares nothing that a program uses."""
    macro = re.match(r"(#define (SCALIDE_\w+) +\S+) *(/\*.*\*/)?$", code, re.S)
    if macro:
        return Item(macro[2], macro[1], without_stars(macro[3]) if macro[3] else comment, [])
    body = re.match(r"typedef (struct|enum) *\{(.*)\} *(\w+)$", code, re.S)
    if body:
        members = dtypes(root) if "SCALIDE_ENUMERATOR" in body[2] else enumerators(body[2]) if body[1] == "enum" else statements(body[2], ";")
        return Item(body[3], "", comment, [(" ".join(member.split()), text) for member, text in members])
    name = re.search(r"\(\*(\w+)\)\(|(\w+)\(|(\w+)$", code)
    is_declaration = re.match(r"(typedef|const|void|[a-z]\w+) ", code) and "{" not in code
    return Item(next(filter(None, name.groups())), " ".join(code.split()) + ";", comment, []) if is_declaration else None


def items(root, header):
    """The introduction of a header, and its declarations."""
    text = (root / PLACE / header).read_text()
    intro, text = re.match(r"(/\*.*?\*/)(.*)", text, re.S).groups()
    text = re.sub(r"#ifdef __cplusplus\n.*?#endif\n", "", text, flags=re.S)
    found, kept = [], ""
    for code, comment in statements(text, ";"):
        if re.match(r"#define \w+\(", code):  # the macro that expands a table: its comment is about the enum after it
            kept = comment
            continue
        one = item(code, comment or kept, root)
        if one:
            found.append(one)
            kept = ""
    return without_stars(intro), found


def targets(root):
    """{name: (page, anchor)} of all declarations of the C headers. A value of an enum has the anchor of the enum. A function and a macro may
    differ in case only; the second anchor then has the number 1, as in the site."""
    found = {}
    for header, page, *_ in PAGES:
        used = set()
        for one in items(root, header)[1]:
            anchor = one.name.lower()
            anchor += "_1" * (anchor in used)
            used.add(anchor)
            found[one.name] = (page, anchor)
            found.update({code.split(" = ")[0]: (page, anchor) for code, _ in one.members if " = " in code})
    return found


def lists(comment):
    """A comment with the empty lines that Markdown needs before and after a list. Lines of a list are indented."""
    lines, in_list = [], False
    for line in comment.split("\n"):
        is_item = bool(re.match(r" +(\d+\.|-) ", line))
        belongs = is_item or in_list and line.startswith(" ")
        lines += [""] * (belongs != in_list and bool(line.strip())) + [line.strip() if belongs else line]
        in_list = belongs
    return "\n".join(lines)


def prose(comment, page, known):
    """A comment as Markdown, in which names of declarations are links."""

    def link(word):
        if word not in known:
            return f"`{word}`"
        target, anchor = known[word]
        return f"[`{word}`]({'' if target == page else target.rpartition('/')[2]}#{anchor})"

    parts = re.split(r"(`[^`]*`|\b(?:scalide|SCALIDE)_\w+)", lists(comment))
    text = "".join(plain(part) if number % 2 == 0 else part if part[0] == "`" else link(part) for number, part in enumerate(parts))
    return text


def sentence(comment):
    """A comment that is a phrase gets the form of a sentence."""
    return comment[0].upper() + comment[1:] + "." * (comment[-1] not in ".:)") if comment else ""


def section(one, page, known):
    text = f"### `{one.name}`\n\n"
    if one.code:
        text += f"```c\n{one.code}\n```\n\n"
    text += prose(sentence(one.comment), page, known) + "\n\n" if one.comment else ""
    if one.members:
        rows = [(f"`{code}`", prose(" ".join(comment.split()), page, known)) for code, comment in one.members]
        text += meanings("member", rows) + "\n"
    return text


def page(root, header, path, title, start, groups, known):
    intro, found = items(root, header)
    first = {name: heading for heading, name in groups}
    missing = set(first.values()) - {first.get(one.name) for one in found}
    if missing:
        raise ValueError(f"{header}: the groups {sorted(missing)} of docs/_site/references/c_headers.py start with names that it does not declare")
    sections, names, heading = {}, {}, groups[0][0]
    for one in found:
        heading = first.get(one.name, heading)
        sections[heading] = sections.get(heading, "") + section(one, path, known)
        names.setdefault(heading, []).append(prose(one.name, path, known))
    text = f"# {title}\n\n{start}\n\n{prose(intro, path, known)}\n\n"
    text += table(["group", "names"], [(f"[{heading}](#{heading.lower().replace(' ', '-')})", ", ".join(names[heading])) for heading in names])
    return text + "".join(f"\n## {heading}\n\n{body}" for heading, body in sections.items())


def pages(root):
    """{path: text} of the pages."""
    known = targets(root)
    return {path: page(root, header, path, title, start, groups, known) for header, path, title, start, groups in PAGES}
