"""Program.compare: the error of each tensor of a program between two precision policies."""
from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import NamedTuple

from .program import register_comparer
from .reports import Table, file_place, place_in
from .run_tool import run_tool, with_places
from .saving import save


class TensorError(NamedTuple):
    """A tensor of a program, or a rounded copy of it, under two policies."""
    tensor: str             # its name in the program; of a result or a new parameter: its name for the caller
    copy: bool              # a rounded copy, which an operator reads
    formats: tuple          # under the two policies: ("f32", "f8_e4m3fn")
    error: float            # norm of the difference / norm under the first policy; inf: they differ in an infinity or a NaN
    inputs: float           # the largest error of the tensors and copies from which it is computed
    limit: float
    sqnr: float | None      # -20 log10(error), in dB; None: equal
    largest: float          # the largest difference of two elements
    index: tuple            # of this element
    amax: tuple             # the largest magnitudes under the two policies
    zeros: int              # elements that became 0
    saturated: int          # elements beyond the largest number of the format
    policy: str             # the rule that decides the format: "f8_master.yaml:6"; "intermediates"; "-": none
    scope: str              # the named scopes around the operator. "-": none
    source: str             # the source line of the user


class Kept(NamedTuple):
    """One run of a bisection, in which all is as in the policy under test, except for one part that stays wide."""
    kind: str             # "scope", "rule" or "tensor"
    name: str             # of a rule: its line and its conditions
    result: float | None  # the result of this run; of an array, its norm. None: the program cannot run so
    error: float | None   # its difference from the result under the first policy
    share: float | None   # the share of the error that this part explains; 1: all
    failure: str          # why the program cannot run so


class Comparison(NamedTuple):
    """The result of `Program.compare`."""
    numerics: tuple       # the two policies
    tensors: Table        # of TensorError, in the order of the run
    first_beyond: int | None  # the place in `tensors` of the first row beyond its limit
    verdict: str          # sentences: the first tensor beyond its limit, and why
    bisection: Table | None  # of Kept: the best first, by kind
    uncompared: tuple     # tensors that the kernels do not have, because an operator was merged

    def __repr__(self):
        rows = Table(row for row in self.tensors if row.error != 0)
        parts = [repr(rows)] if rows else []
        return "\n\n".join([*parts, self.verdict, *([repr(self.bisection)] if self.bisection else [])])


def compare(program, leaves, numerics, limit, tensor, scope, bisect, state, rules) -> Comparison:
    """Runs the tool on a program and its arguments in the order of the text."""
    if isinstance(numerics, (str, os.PathLike)) or len(numerics) != 2:
        raise ValueError(f"{program.name}: numerics must be two policies, the reference and the policy under test, got {numerics!r}. "
                         f"Example: numerics=('f32', 'f8_master')")  # fmt: skip
    options = [word for policy in numerics for word in ("--numerics", policy)]
    options += [word for path in ([rules] if isinstance(rules, (str, os.PathLike)) else rules) for word in ("--rules", path)]
    options += ["--limit", limit] if limit is not None else []
    options += ["--tensor", tensor] if tensor else []
    options += ["--scope", scope] if scope else []
    options += ["--bisect", *([bisect] if isinstance(bisect, str) else [])] if bisect else []
    with tempfile.TemporaryDirectory(prefix="scalide-") as folder:
        inputs = Path(folder, "inputs.safetensors")
        save(inputs, {**dict(zip(program.arguments, leaves)), **state})
        found = json.loads(run_tool(program, "compare", "--inputs", inputs, "--json", *options))
    bisection = found["bisection"] and Table(_kept(row) for row in found["bisection"]["candidates"])
    return Comparison(tuple(found["numerics"]), Table(_tensor_error(row, program) for row in found["tensors"]), found["first_beyond"],
                      with_places(found["verdict"], program).strip(), bisection, tuple(found["uncompared"]))  # fmt: skip


def _number(value):
    """JSON has no infinity, so the tool writes it as text."""
    return None if value is None else float(value)


def _tensor_error(row: dict, program) -> TensorError:
    return TensorError(row["tensor"], row["copy"], tuple(row["formats"]), _number(row["error"]), _number(row["error_of_inputs"]), row["limit"],
                       _number(row["sqnr"]), _number(row["largest_difference"]), tuple(row["index"]), tuple(map(_number, row["amax"])), row["zeros"],
                       row["saturated"], file_place(row["policy"]) or row["because_of"] or "-", row["scope"] or "-",
                       place_in(program, row["source"]))  # fmt: skip


def _kept(row: dict) -> Kept:
    name = " ".join(filter(None, [file_place(row["rule"]), row["name"]]))
    return Kept(row["kind"], name, _number(row["result"]), _number(row["error"]), row["share"], row["failure"] or "")


register_comparer(compare)
