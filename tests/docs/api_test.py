"""The generated pages of the C headers and of the C++ headers have every public name, with its signature and its comment."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs/_site"))
from references import c_headers, cpp_header  # noqa: E402

FOLDER = ROOT / "runtime/include/scalide"


def sections(page):
    """{name: text} of the sections of a page."""
    return dict(re.findall(r"^### `(\w+)`\n(.*?)(?=^#{1,3} |\Z)", page, re.S | re.M))


def c_pages():
    """Each function has its signature and its comment, each struct its members, each enum its values. Returns the number of functions."""
    count = 0
    pages = c_headers.pages(ROOT)
    for header, path, *_ in c_headers.PAGES:
        text = re.sub(r"/\*.*?\*/|^ *#[^\n]*", "", (FOLDER / header).read_text(), flags=re.S | re.M)
        found = sections(pages[path])
        functions = re.findall(r"^[^;{}]*?\b(scalide_\w+)\(([^;{}]*)\);", text, re.M)
        for name, arguments in functions:
            signature, comment = re.fullmatch(r"\n```c\n(.*)\n```\n\n(.*?)\s*", found[name], re.S).groups()
            assert f"{name}({' '.join(arguments.split())});" in signature, f"{name}: {signature}"
            assert len(comment) > 10, f"{name} has no comment"
        count += len(functions)
        for kind, body, name in re.findall(r"typedef (struct|enum) \{(.*?)\} (\w+);", text, re.S):
            words = re.findall(r"\b(SCALIDE_[A-Z_]+)(?:,| =|\s*$)", body) if kind == "enum" else re.findall(r"(\w+)(?:\[\w+\])*(?=[,;]|\)\()", body)
            words = [word for word in words if word != "SCALIDE_ENUMERATOR"]
            assert words or name == "scalide_dtype", name
            assert all(re.search(rf"^\| `[^`]*\b{word}\b", found[name], re.M) for word in words), f"{name}: {words}"
        assert set(re.findall(r"\b(scalide_\w+);", text)) - {name for name, _ in functions} <= found.keys() | {"scalide_array", "scalide_parallel_for"}
    assert len(re.findall("SCALIDE_F8_", sections(pages["reference/c-runtime.md"])["scalide_dtype"])) > 7
    return count


def cpp_page():
    """Each class and each public function of the C++ headers is on the page. Returns the number of functions."""
    page = cpp_header.page(ROOT)
    text = re.sub(r"^namespace detail \{.*?^\} // namespace detail$", "", "".join((FOLDER / header).read_text() for header in cpp_header.HEADERS), flags=re.S | re.M)
    classes = re.findall(r"^(class|struct) (\w+)[^;]*?\{$(.*?)^\};$", text, re.S | re.M)
    assert len(classes) > 7, classes
    count = 0
    for kind, name, body in classes:
        (section,) = re.findall(rf"^## {kind} {name}\n\n(\S.*?)(?=^## |\Z)", page, re.S | re.M)
        shown = set(re.findall(r"([\w~]+|operator\S+)\(", section))
        public = re.sub(r"^private:$.*?(?=^public:$|\Z)", "", body, flags=re.S | re.M)
        names = re.findall(r"^    (?=\S)(?!template|///|return|if|//)[\w:<>*& ,]*?\b(operator(?:\[\]|bool)?|\w+)\(", public, re.M)
        assert (names or kind == "struct") and set(names) <= shown | {"operator"}, f"{name}: {set(names) - shown}"
        count += len(names)
        for private in re.findall(r"^private:$.*?(?=^public:$|\Z)", body, re.S | re.M):
            assert not {member for member in re.findall(r"\b(\w+_);", private)} & set(re.findall(r"\w+", section)), f"{name} shows private members"
    functions = re.findall(r"^inline [\w:<>]+ (\w+)\(", text, re.M)
    assert functions and all(f"{function}(" in page for function in functions), functions
    return count + len(functions)


if __name__ == "__main__":
    in_c, in_cpp = c_pages(), cpp_page()
    assert in_c >= 65 and in_cpp >= 70, (in_c, in_cpp)
    print(f"ok: {in_c} functions of the C headers, {in_cpp} functions of scalide.hpp")
