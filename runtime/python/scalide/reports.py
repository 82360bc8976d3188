"""Reports about a library: decisions of its policy, effects of rounding, the source of an infinity. Each report has a readable repr."""
from __future__ import annotations

import json
import logging
import os
import re
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .run_tool import BuildError, run_tool
from .saving import save
from .words import glob_pattern


class Decision(NamedTuple):
    """How one tensor of a program is stored for one use."""
    tensor: str   # its name in the program: "params.w", "v19"
    use: str      # "argument", "inout argument", "constant argument", "result", or the operand of an operator: "dot_general.lhs"
    format: str   # "f16"
    scale: str    # "none", "current (from its data, dynamic_rescale)", "delayed (from earlier runs, state x.scale)", "static (from the calibration)" ...
    policy: str   # the rule that decided: "f16_scaled.yaml:7". "default": no rule did
    direction: str  # of the operator: "forward", "backward" (a gradient), "update" (an optimizer). "-": an argument
    scope: str    # the named scopes around the operator: "block1/attention". "-": none
    source: str   # the source line of the user: "model.py:12:4 (loss)"
    safe: bool    # False: converted to f16 or 8 bits without a scale
    note: str     # the line that follows the table: a warning about a conversion, or ""


class MatmulDecision(NamedTuple):
    """How a matmul or convolution of a program multiplies, and why. Texts of two operands that differ are joined."""
    tensor: str      # the name of its result
    operands: str    # "x @ params.w"; of a convolution "x * params.w"
    formats: str     # "f8_e4m3fn @ f8_e4m3fn"
    scale: str       # as in Decision
    policy: str      # the rule that decided; "default": no rule did
    because_of: str  # the conditions of the rule: "operand: any, layer: first"; "no rule matches"
    direction: str   # as in Decision
    scope: str       # the named scopes around the matmul. "-": none
    source: str      # the source line of the user


class Rounding(NamedTuple):
    """The effects of one conversion to 8 or 16 bits on the elements of a tensor."""
    tensor: str
    format: str
    elements: int
    zeros: int       # zeros that come from nonzero numbers
    saturated: int   # numbers that are too large for the format, even after rounding; infinities that become finite
    subnormals: int  # results below the smallest normal number
    direction: str   # of the conversion, as in Decision
    scope: str       # the named scopes around the conversion. "-": none
    source: str


class State(NamedTuple):
    """The elements of an argument that is updated in place."""
    tensor: str
    format: str
    elements: int
    unmoved: int  # keep the old value although the new value, computed in f64 from the same operands, differs
    zero_updates: int  # have an update of 0, because the gradient is 0 or was rounded to 0
    direction: str     # of the operator that computes the new value, as in Decision
    scope: str         # the named scopes around this operator. "-": none
    source: str


class Misfit(NamedTuple):
    """A scale that does not fit its tensor."""
    tensor: str
    scale: float | None
    amax: float | None  # the largest finite magnitude of the tensor
    problem: str        # "is 0, but the data is not", "is 149 times too large"


class Statistic(NamedTuple):
    """The statistics of a tensor in one call, from the kernels that compute it. Numbers that were not collected are None."""
    tensor: str
    use: str        # "argument", "result", "dot_general.lhs", or the operator that reads the rounded form
    format: str     # the dtype in which it is stored or rounded
    step: int       # the number of the call, from 0
    elements: int
    amax: float | None        # the largest finite magnitude
    scale: float | None       # of the stored data; None: there is none, or an array of scales
    rms: float | None         # the root of the mean square of the finite elements
    zeros: int | None         # numbers that are not 0 and are rounded to 0
    saturated: int | None     # numbers beyond the largest number of the format; infinities that become finite
    subnormal: int | None     # rounded numbers below the smallest normal number of the format
    non_finite: int | None    # infinities and NaNs
    first: int | None         # the row-major index of the first infinity or NaN
    histogram: tuple[tuple[int, int], ...] | None  # (exponent, count) of floor(log2(|x / scale|)), only counts above 0
    operator: str  # the operator that computes the tensor. "-": an argument
    scope: str     # the named scopes around the operator. "-": none
    direction: str  # "forward", "backward", "update"; "-": an argument
    source: str
    policy: str     # the row that asks for the statistics. "-": an option of the build


class NonFinite(NamedTuple):
    """A result of a step that contains an infinity or a NaN."""
    tensor: str   # the name of the result in the plan: "loss", "h.data", "h.scale", "norm_max"
    step: int     # number of the step in the run, from 0
    kernel: str   # name of the kernel of the step
    of: str = ""  # the tensor of which the result is a copy or the largest magnitude; otherwise the operator with its scopes
    source: str = ""                # the source line of the user, or the line of the program
    arguments: tuple[str, ...] = ()  # the arrays of the caller that the step reads and that are not finite
    loops: str = ""  # the steps of the loops around it, which count from 0: "step 17 of scan h"
    operator: str = ""   # the operator that computes the tensor. "": an argument
    scope: str = ""      # the named scopes around the operator. "": none
    direction: str = ""  # "forward", "backward" (a gradient) or "update" (an optimizer). "": an argument

    def __str__(self):
        of = f" of {self.of}" if self.of not in ("", self.tensor) else ""
        if self.scope and self.of != f"{self.scope}/{self.operator}":  # otherwise `of` names the scope
            of += f" in {self.scope}"
        of += ", backward" * (self.direction == "backward")
        reads = f"; it reads {', '.join(self.arguments)}, which {'is' if len(self.arguments) == 1 else 'are'} not finite" if self.arguments else ""
        source = f" ({self.source})" if self.source not in ("", "-") else ""
        loops = f", in {self.loops}" if self.loops else ""
        return f"first non-finite: {self.tensor}{of}{source}, step {self.step} ({self.kernel}){loops}{reads}"


class NonFiniteElement(NamedTuple):
    """The first element that an operator makes infinite from finite operands, or NaN from operands without a NaN."""
    tensor: str     # the tensor of the program; an operator with its scopes if it has no name
    relation: str   # "": the tensor itself is not finite. "derived from": a copy of it, its amax or a scale. "inside of": a value inside of its operator
    operator: str   # the operator of the program that makes the element
    inner: str      # "inside of": the operator inside of it. Otherwise ""
    direction: str  # "forward", "backward" (a gradient) or "update" (an optimizer). "-": an operator of a sub-program
    scope: str      # the named scopes around the operator. "-": none
    source: str     # the source line of the user, or the line of the program
    index: tuple[int, ...]
    axes: tuple[str, ...]  # by axis: the symbol of its extent, or its letter in an einsum of JAX. "": unknown
    value: float
    step: int       # of the innermost loop, from 0. -1: in no loop

    def __str__(self):
        words = ", ".join(f"{axis} {number}" if axis else str(number) for axis, number in zip(self.axes, self.index))
        operator = self.operator + f" (its {self.inner})" * bool(self.inner) + f" in {self.scope}" * (self.scope != "-")
        source = f" ({self.source})" if self.source != "-" else ""
        return (f"first non-finite: {self.relation}{' ' * bool(self.relation)}{self.tensor}, operator {operator}{f', {self.direction}' * (self.direction == 'backward')}"
                f"{source}, element [{words}] is {self.value}" + f", in step {self.step} of its loop" * (self.step >= 0))  # fmt: skip


class NonFiniteError(ArithmeticError):
    """A result of a step of a call with `check_finite=True` has an infinity or a NaN.

    Attributes:
        found: The NonFinite that names the result, its operator and its source line.
        results: What the call returns without `check_finite`. None for `Library.out`, which has written its arrays.
    """

    def __init__(self, found: NonFinite, results: Any):
        super().__init__(found, results)
        self.found, self.results = found, results

    def __str__(self):
        return str(self.found)


class Traced(NamedTuple):
    """An array that a step of a run computes."""
    tensor: str     # the tensor of the program of which it is a form, or the operator with its scopes
    name: str       # its name in the plan: "h.data", "v12.bf16"
    format: str     # "f8_e4m3fn"
    part: str       # "data" or "scale" of a scaled array (value = data * scale); otherwise "whole"
    loops: str      # the steps of the loops around it, which count from 0: "step 17 of scan h". "": in no loop
    operator: str   # the operator that computes the tensor. "": an argument
    direction: str  # "forward", "backward" (a gradient) or "update" (an optimizer). "": an argument
    scope: str      # the named scopes around the operator. "": none
    source: str     # the source line of the user, or the line of the program
    array: np.ndarray


#: Fields that a table does not print as a column.
_HIDDEN = ("safe", "note", "histogram")

#: Fields that a table prints only if this holds for one of its rows. A program without a gradient has one direction.
_OPTIONAL = {"scope": lambda scope: scope != "-", "direction": lambda direction: direction == "backward"}


class Table(tuple):
    """A tuple of rows that prints as a table. It has a column `scope` if a row has a scope, and `direction` if a row is backward."""

    def __repr__(self):
        if not self:
            return "nothing"
        columns = [place for place, name in enumerate(self[0]._fields)
                   if name not in _HIDDEN and (name not in _OPTIONAL or any(_OPTIONAL[name](row[place]) for row in self))]  # fmt: skip
        texts = [[self[0]._fields[place].replace("_", " ") for place in columns], *([_text(row[place]) for place in columns] for row in self)]
        widths = [max(map(len, column)) for column in zip(*texts)]
        lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip() for row in texts]
        return "\n".join(lines + [row.note for row in self if getattr(row, "note", "")])


def _text(value) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(_text, value))
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


class Check(NamedTuple):
    """The result of `Library.check`."""
    roundings: Table  # of Rounding
    states: Table     # of State
    misfits: Table    # of Misfit

    def __repr__(self):
        return "\n\n".join(repr(table) for table in self if table) or "nothing is rounded to 8 or 16 bits"


def explain(library, tensor: str | None = None, scope: str | None = None) -> Table:
    """Returns the decisions of the policy for a library's program, for tensors and scopes that match globs."""
    return Table(Decision(row["tensor"], _use_of(row), row["format"], row["scale_text"], file_place(row["policy"]) or "default",
                          row["direction"] or "-", row["scope"] or "-", source_of(library, row["source"]), row["safe"], row["note"] or "")
                 for row in _explained(library, tensor, scope))  # fmt: skip


def _explained(library, tensor, scope, *options):
    """Returns the rows of `scalide explain`. Raises ValueError if the globs match no row."""
    filters = [word for option, glob in (("--tensor", tensor), ("--scope", scope)) if glob is not None for word in (option, glob)]
    try:
        return json.loads(_tool(library, "explain", "--json", *options, *filters))
    except BuildError as error:
        if filters and (found := re.match(r"error: (no row of the table .*)", str(error), re.DOTALL)):
            raise ValueError(f"{library.name}: {found[1]}") from None
        raise


def explain_matmuls(library, tensor: str | None = None, scope: str | None = None) -> Table:
    """Returns the decisions of the policy for the matmuls and convolutions of a library's program."""
    def texts(row, text, separator="; "):
        each = [text(operand) for operand in row["operands"]]
        return separator.join(dict.fromkeys(each) if separator == "; " else each)

    def between(row):
        return " * " if row["operator"].startswith("conv_") else " @ "

    return Table(MatmulDecision(row["tensor"], texts(row, lambda o: o["tensor"], between(row)), texts(row, lambda o: o["format"], between(row)),
                                texts(row, lambda o: o["scale_text"]), texts(row, lambda o: file_place(o["policy"]) or "default"),
                                texts(row, lambda o: o["because_of"]), row["direction"] or "-", row["scope"] or "-", source_of(library, row["source"]))
                 for row in _explained(library, tensor, scope, "--matmuls"))  # fmt: skip


def _use_of(row: dict) -> str:
    role = row["role"]
    return row["use"] or (row["place"] if role in (None, "input") else f"{role} {row['place']}")


def check(library, leaves) -> Check:
    """Interprets one run on the inputs of a library and counts the effects of rounding."""
    logging.getLogger("scalide").info("%s: check interprets the program element by element, which is slow for large arrays", library.name)
    found = _run_tool_on(library, leaves, "--check")
    if found["uncompared"]:
        logging.getLogger("scalide").warning("%s: check does not compare the new values of %s, which come from a loop or a branch", library.name,
                                             ", ".join(found["uncompared"]))  # fmt: skip
    tables = []
    for kind, rows in ((Rounding, found["roundings"]), (State, found["states"]), (Misfit, found["misfits"])):
        tables.append(Table(_row_of(kind, library, row) for row in rows))
    return Check(*tables)


def statistics(library, native) -> Table:
    """Returns the newest statistics of the tensors of a library."""
    rows = []
    for (tensor, use, op, scope, location, policy, direction, dtype, _, first, octaves), numbers in zip(native.described_statistics, native.statistics):
        step, elements, amax, scale, rms, *counts, histogram = numbers
        if step < 0:
            continue
        floats = [None if number != number else number for number in (amax, scale, rms)]
        bins = None if histogram[0] < 0 else tuple((first + (i - 1) * octaves, count) for i, count in enumerate(histogram) if count)
        rows.append(Statistic(tensor, use, dtype, step, elements, *floats, *(None if count < 0 else count for count in counts), bins, op or "-", scope or "-",
                              direction, _line_of(library, location), policy or "-"))  # fmt: skip
    return Table(rows)


def _line_of(library, location: str) -> str:
    """Returns the Python source line of "net.scl:4"."""
    line = location.rpartition(":")[2]
    return source_of(library, {"file": location.rpartition(":")[0], "line": int(line)}) if line.isdigit() else "-"


def non_finite_element(library, leaves, mode: str) -> NonFiniteElement | None:
    """Interprets one run on the inputs of a library and returns the first element that an operator makes infinite or NaN."""
    row = _run_tool_on(library, leaves, "--check-finite", "--interpret", mode)
    if row is None:
        return None
    return _row_of(NonFiniteElement, library, {**row, "index": tuple(row["index"]), "axes": tuple(row["axes"]), "value": float(row["value"])})


def _row_of(kind, library, row: dict):
    """Returns a row of a table from the JSON of the tool."""
    words = {"source": lambda place: source_of(library, place), "direction": lambda word: word or "-", "scope": lambda scope: scope or "-"}
    return kind(*[words.get(field, lambda value: value)(row[field]) for field in kind._fields])


def _run_tool_on(library, leaves, *options):
    """Returns what `scalide run` prints as JSON for the inputs of a library."""
    with tempfile.TemporaryDirectory(prefix="scalide-") as folder:
        inputs, outputs = Path(folder, "inputs.safetensors"), Path(folder, "outputs.safetensors")
        save(inputs, {argument.name: leaf for argument, leaf in zip(library._inputs, leaves)})
        return json.loads(_tool(library, "run", *options, "--json", "--target", library._options.get("target", "host"), "-i", inputs, "-o", outputs))


class Tracing:
    """Chooses the arrays of a traced run by globs for the tensor and the scope, and describes them with the manifest next to the library."""

    def __init__(self, library, tensor: str | None, scope: str | None):
        self._library, self._rows = library, {row["name"]: row for row in _manifest(library).get("buffers", [])}
        self._tensor, self._scope = (re.compile(".*" if glob is None else glob_pattern(glob), re.DOTALL) for glob in (tensor, scope))
        self._needs_scope = scope is not None

    def _tensor_of(self, name: str, tensor: str) -> str:
        return self._rows.get(name, {}).get("of", tensor)

    def wants(self, name: str, tensor: str) -> bool:
        """Returns True for an array that the globs choose."""
        scope = self._rows.get(name, {}).get("scope", "")
        return bool(self._tensor.fullmatch(self._tensor_of(name, tensor)) and (not self._needs_scope or (scope and self._scope.fullmatch(scope))))

    def traced(self, rows) -> tuple[Traced, ...]:
        """Returns the arrays of the native module with what is known about them."""
        made = []
        for name, tensor, part, loops, dtype, array in rows:
            row = self._rows.get(name, {})
            made.append(Traced(self._tensor_of(name, tensor), name, dtype, part, loops, row.get("operator", ""), row.get("direction", ""),
                               row.get("scope", ""), _source_in(self._library, row), array))  # fmt: skip
        return tuple(made)


def _source_in(library, row: dict) -> str:
    """Returns the source line of a row of the manifest."""
    is_traced = getattr(library.program, "places", ())
    return source_of(library, {"file": "", "line": row["line"]}) if is_traced and "line" in row else row.get("source", "")


def non_finite(library, found, leaves, in_place: bool = False) -> NonFinite:
    """Returns the result that the native module found, with details from the manifest next to the library.

    With `in_place`, the run has overwritten the inouts, so that it is not known whether they were finite.
    """
    tensor, step, kernel, loops = found
    program = _manifest(library)
    row = next((row for row in program.get("buffers", []) if row["name"] == tensor), {})
    steps = program.get("steps", [])
    reads = set(steps[step]["buffers"]) if step < len(steps) and steps[step]["kernel"] == kernel else set()
    bad = [argument.name for argument, leaf in zip(library._inputs, leaves)
           if not (in_place and argument.role in ("inout", "state")) and {argument.name, f"{argument.name}.data", f"{argument.name}.scale"} & reads and not _is_finite(leaf)]  # fmt: skip
    return NonFinite(tensor, step, kernel, row.get("of", tensor), _source_in(library, row), tuple(bad), loops, row.get("operator", ""), row.get("scope", ""),
                     row.get("direction", ""))  # fmt: skip


def source_of(library, place: dict | None) -> str:
    """Returns the Python source line that a line of the program came from. If the program was not traced: the line of the program. Otherwise "-"."""
    return place_in(library.program, place)


def place_in(program, place: dict | None) -> str:
    """Returns the Python source line that a line of a program came from, as `source_of`."""
    if place is None:
        return "-"
    places = getattr(program, "places", ())
    if not places:
        return file_place(place)
    known = places[place["line"] - 1] if place["line"] <= len(places) else None
    if known is None:  # an argument has no line of its own
        return "-"
    return re.sub(r"^.*[/\\]", "", str(known))


def report(library, runs, output, against) -> str:
    """Writes the page of a library's program and of a run. Returns what is unusual."""
    _need_program(library, "report")
    given = library._options
    return library.program.report(*runs, output=output, against=against, numerics=given.get("numerics"), rules=given.get("rules", ()))


def _need_program(library, command):
    if library.program is None:
        raise ValueError(f"{library.name}: {command} needs the program of the library. Load it with Library(path, program).")


def _tool(library, command, *options):
    _need_program(library, command)
    given = library._options
    rules = [word for path in given.get("rules", ()) for word in ("--rules", path)]
    return run_tool(library.program, command, "--numerics", given.get("numerics") or library.program.policy, *rules, *options)


def file_place(place):
    """Returns the name of a file without its folder, and the line. Returns None for None."""
    return place and f"{os.path.basename(place['file'])}:{place['line']}"


def _manifest(library) -> dict:
    """Returns the program's part of the manifest next to the library. Returns {} if the file does not exist."""
    path = Path(library.path)
    try:
        programs = json.loads(path.with_name(path.name.removeprefix("lib").split(".")[0] + ".json").read_text(encoding="utf-8"))["programs"]
        return next(program for program in programs if program["name"] == library.name and program["hash"] == library.hash)
    except (OSError, ValueError, KeyError, StopIteration):
        return {}


def _is_finite(leaf) -> bool:
    parts = (leaf.data, leaf.scale) if hasattr(leaf, "to_array") else (leaf,)
    arrays = [np.asarray(part) for part in parts]
    return all(array.dtype.kind in "biu" or np.isfinite(array.astype(np.float32)).all() for array in arrays)
