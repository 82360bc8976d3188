"""Forms of a program for one row, one column or a likely value: bind chooses them, and they give what the general program gives."""
import json

import numpy as np
import pytest
from conftest import compile_text

from scalide import Library

ROWS = "program p{s}(x: f32[b, 96], w: f32[96, 40]) -> (y: f32[b, 40]) {{\n  h = dot_general(x, w) {{contract: [[1], [0]]}}\n  y = tanh(h)\n}}\n"
COLUMNS = "program p{s}(x: f32[40, 96], w: f32[96, b]) -> (y: f32[40, b]) {{\n  h = dot_general(x, w) {{contract: [[1], [0]]}}\n  y = tanh(h)\n}}\n"
TOKENS = "program p{s}(x: f32[b, t, 96], w: f32[96, 40]) -> (y: f32[b, t, 40]) {{\n  y = dot_general(x, w) {{contract: [[2], [0]]}}\n}}\n"
# The largest error of an element of sums of 96 products of numbers from -1 to 1, by policy: f32 sums, operands in bf16 (2^-9), operands in f8 (2^-4).
TOLERANCES = {"f32": 1e-5, "bf16": 0.08, "f8_master": 0.9}


def uniform(*shape):
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(np.float32)


def values_of(path):
    """The values of symbols for which the library has forms."""
    program, = json.loads((path.parent / "p.json").read_text())["programs"]
    return [variant["values"] for variant in program.get("variants", [])]


@pytest.mark.parametrize("policy", TOLERANCES)
@pytest.mark.parametrize("text", [ROWS, COLUMNS], ids=["rows", "columns"])
def test_one_row_or_column(text, policy, tmp_path):
    library = Library(compile_text(tmp_path, text.format(s=" [b likely [5]] "), policy))
    for b in (1, 2, 5, 9):
        x, w = (uniform(b, 96), uniform(96, 40)) if text is ROWS else (uniform(40, 96), uniform(96, b))
        wanted = np.tanh(x.astype(np.float64) @ w.astype(np.float64))
        np.testing.assert_allclose(library(x, w), wanted, rtol=0, atol=TOLERANCES[policy])


def test_every_symbol_of_a_form_has_its_value(tmp_path):
    library = Library(compile_text(tmp_path, TOKENS.format(s="")))
    for b, t in ((1, 1), (1, 3), (3, 1), (2, 2), (0, 1)):
        x, w = uniform(b, t, 96), uniform(96, 40)
        np.testing.assert_allclose(library(x, w), x.astype(np.float64) @ w, rtol=0, atol=1e-5)


def test_the_manifest_lists_forms(tmp_path):
    assert values_of(compile_text(tmp_path, ROWS.format(s=" [b likely [5]] "))) == [{"b": 5}, {"b": 1}]
