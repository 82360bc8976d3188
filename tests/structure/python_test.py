"""structure.python_modules: the floors of the Python package, as docs/develop/architecture.md has them."""
import ast
import re
import sys
from pathlib import Path

from structure_test import floors

ROOT = Path(__file__).resolve().parents[2]
HALVES = [ROOT / "runtime/python/scalide", ROOT / "generators/frontend/python/scalide"]
TOP = {"", "__main__"}  # the package itself, which imports what is public


def module_of(half, file):
    """The name of a module inside of the package: `jax.call`, and "" for the package itself."""
    return ".".join(file.relative_to(half).with_suffix("").parts).removesuffix("__init__").rstrip(".")


MODULES = {module_of(half, file): file for half in HALVES for file in sorted(half.rglob("*.py"))}


def imported(module, node):
    """What a statement imports from the package: pairs of a module and a name in it (None: the module itself)."""
    if isinstance(node, ast.Import):
        return [(alias.name.removeprefix("scalide").lstrip("."), None) for alias in node.names if alias.name.split(".")[0] == "scalide"]
    here = module.split(".") if module else []
    folder = here if MODULES[module].name == "__init__.py" else here[:-1]
    if not node.level and (node.module or "").split(".")[0] != "scalide":
        return []
    base = folder[: len(folder) - node.level + 1] if node.level else []
    base += (node.module or "").removeprefix("" if node.level else "scalide").lstrip(".").split(".") if node.module else []
    name = ".".join(filter(None, base))
    pairs = [(f"{name}.{alias.name}".lstrip("."), None) for alias in node.names]
    return [pair if pair[0] in MODULES else (name, alias.name) for pair, alias in zip(pairs, node.names)]


def problems():
    floor_of = floors("Modules of the Python package")["scalide"]
    for name in sorted(set(MODULES) - TOP - set(floor_of)):
        yield f"{name}: the page must name the module"
    for name in sorted(set(floor_of) - set(MODULES)):
        yield f"{name}: the page names a module that does not exist"
    for module, file in MODULES.items():
        tree = ast.parse(file.read_text())
        inside = {id(node) for function in ast.walk(tree) if isinstance(function, (ast.FunctionDef, ast.Lambda)) for node in ast.walk(function)}
        for node in ast.walk(tree):
            for target, name in imported(module, node) if isinstance(node, (ast.Import, ast.ImportFrom)) else ():
                place = f"{file.relative_to(ROOT)}:{node.lineno}"
                if name == "_runtime" or target == "_runtime":  # the native module is below all
                    continue
                if id(node) in inside:
                    yield f"{place}: a function must not import {target or 'scalide'}"
                if name and name.startswith("_"):
                    yield f"{place}: {name} is private to {target}"
                if module not in TOP and floor_of.get(target, 99) >= floor_of.get(module, -1):
                    yield f"{place}: {module} must import floors below it, got {target or 'scalide'}"


if __name__ == "__main__":
    found = list(problems())
    print("\n".join(found) or f"python_modules: ok, {len(MODULES)} modules")
    sys.exit(bool(found))
