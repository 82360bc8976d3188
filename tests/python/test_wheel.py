"""Tests the content of the wheel without building it: the same install rules."""
import os
import pathlib
import subprocess
import sys

from conftest import TOOL

BUILD = pathlib.Path(TOOL).parents[1]
CODE = """
import sys
import numpy as np, scalide
library = scalide.build(scalide.Program("program twice(x: f32[n]) -> (y: f32[n]) {\\n  y = add(x, x)\\n}\\n"), cache="cache")
assert (library(np.arange(3, dtype=np.float32)) == [0, 2, 4]).all()
if len(sys.argv) > 2:
    assert library.program.report(output="page.html").startswith("note: No run was given")
assert "jax" not in sys.modules and scalide.__file__.startswith(sys.argv[1])
"""


def test_installed_package_builds_and_runs(tmp_path):
    site = tmp_path / "site"
    for component in ("python", "python_tool"):
        subprocess.run(["cmake", "--install", BUILD, "--component", component, "--prefix", site], check=True, stdout=subprocess.DEVNULL)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SCALIDE_", "LD_"))} | {"PYTHONPATH": str(site)}
    has_plotly = (BUILD / "home/share/scalide/pages/plotly.min.js").exists()  # the configure step found or fetched it
    subprocess.run([sys.executable, "-c", CODE, site, *["report"] * has_plotly], check=True, cwd=tmp_path, env=environment)
    names = {str(path.relative_to(site / "scalide")) for path in site.joinpath("scalide").rglob("*") if path.is_file()}
    assert {"py.typed", "_runtime.pyi", "_install/bin/scalide", "_install/share/scalide/rules/policies/f32.yaml", "_install/include/scalide/plan.h",
            "jax/trace.py", "jax/scalify.py", "__main__.py", "docs/trace.md", "docs/library.md", "_install/share/scalide/pages/page.html"} <= names  # fmt: skip
    assert not has_plotly or "_install/share/scalide/pages/plotly-LICENSE.txt" in names
    assert not any("__pycache__" in name for name in names)
