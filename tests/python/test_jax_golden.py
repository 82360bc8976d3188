"""The neutral graphs of golden/graphs and golden/graphs_random through the table of primitives, scaled and compiled, against their true values.
Each element may be off by roundings: as far as our results move when the arguments do."""
import json
import os
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from oracle import errors

import scalide
from scalide.arrays import numpy_dtype
from scalide.jax.primitives import RULES
from scalide.jax.text import Value, Writer, type_text
from scalide.jax.walk import Walk

SHARED = os.environ.get("SCALIDE_SHARED_DIR")
GOLDEN = Path(SHARED) / "golden" if SHARED and Path(SHARED, "golden/graphs.json").exists() else Path(__file__).parents[1] / "golden/data"
NAMES = {"set_scaling_p": "set_scaling", "get_data_scale_p": "get_data_scale", "stop_scaling_p": "stop_scaling"}
CANCELLING = {"prog26.f32.NONE": 2**10}  #: ulp: of x - x / (1 + x^2) no more is left where x is small, however it moves
AT_ONCE = 12


def param(name, value):
    """A parameter as JAX would have it."""
    if name in ("new_dtype", "preferred_element_type", "index_dtype") and value is not None:
        return numpy_dtype(value)
    if name == "dimension_numbers" and isinstance(value, dict) and "lhs_spec" in value:
        return lax.ConvDimensionNumbers(**value)
    if name == "select_prim":
        return SimpleNamespace(name=value)
    return value


def aval(entry):
    """The type of a result. The golden data does not describe an unused result."""
    return jax.ShapeDtypeStruct(tuple(entry.get("shape", ())), numpy_dtype(entry.get("dtype", "f32")))


def run_graph(walk, flat, arguments):
    """The values of the results."""
    values = {variable["id"]: value for variable, value in zip(flat["invars"], arguments)}

    def read(operand):
        return walk.constant(np.float64(operand["literal"]), aval(operand).dtype) if "literal" in operand else values[operand["id"]]

    for eqn in flat["eqns"]:
        name = NAMES.get(eqn["prim"], eqn["prim"])
        params = {key: param(key, value) for key, value in eqn["params"].items()}
        operands = [read(operand) for operand in eqn["in"]]
        equation = Equation(name, params, [aval({"dtype": v.dtype, "shape": v.shape}) for v in operands], [aval(v) for v in eqn["out"]])
        for variable, value in zip(eqn["out"], RULES[name](walk, equation, operands)):
            values[variable["id"]] = value
    return [walk.writer.value(read(operand)) for operand in flat["outvars"]]


class Equation(SimpleNamespace):
    def __init__(self, name, params, inputs, outputs):
        super().__init__(name=name, params=params, inputs=inputs, outputs=outputs)

    def fail(self, requirement, got, way_out):
        return AssertionError(f"{self.name}: {requirement}, got {got}. {way_out}")


def cases(suite):
    """One case of each graph and set of inputs, without those that only tell how JAX Scalify fails."""
    known = set()
    for case in json.loads((GOLDEN / f"{suite}.json").read_text())["cases"]:
        graph = json.dumps(case["flat"], sort_keys=True)
        if case["op"] == "graph" and "true" in case and graph not in known and all(NAMES.get(e["prim"], e["prim"]) in RULES for e in case["flat"]["eqns"]):
            known.add(graph)
            yield case


def data_of(arrays, entry):
    return arrays[entry["key"] + ".data" if entry["scaled"] else entry["key"]]


def argument(arrays, entry, data):
    return scalide.ScaledArray(np.asarray(data), np.float32(arrays[entry["key"] + ".scale"])) if entry["scaled"] else np.asarray(data)


def library_of(some):
    """Cases side by side in one program; arguments and results are named by the number of the case."""
    arguments = [[Value(f"x{i}.{j}", e["dtype"], tuple(e["shape"]), e["scaled"]) for j, e in enumerate(case["inputs"])] for i, case in enumerate(some)]
    walk = Walk(Writer(value.name for values in arguments for value in values), RULES)
    results = [run_graph(walk, case["flat"], values) for case, values in zip(some, arguments)]
    assert not walk.constants

    def declared(name, value):
        return f"{name}: {type_text(value.dtype, value.shape)}" + " scaled" * value.scaled

    heads = (", ".join(declared(v.name, v) for values in arguments for v in values),
             ", ".join(f"{declared(f'out{i}.{j}', v)} = {v.name}" for i, values in enumerate(results) for j, v in enumerate(values)))  # fmt: skip
    body, _ = walk.writer.body()
    return scalide.build(scalide.Program("\n".join([f"program graphs({heads[0]}) -> ({heads[1]}) {{", *body, "}"]) + "\n"))


def value_of(result):
    return np.asarray(result.data, np.float64) * np.float64(result.scale) if isinstance(result, scalide.ScaledArray) else np.asarray(result, np.float64)


def difference(got, true, error, case) -> str:
    """Of an element from the true one. Scaled data are rounded at each scale that they go through."""
    data, scale = (got.data, abs(np.float64(got.scale))) if isinstance(got, scalide.ScaledArray) else (got, 1.0)
    values, known, dtype = value_of(got), np.isfinite(true), np.asarray(data).dtype
    if not (np.isfinite(values) == known).all():
        return f"{case['name']}: {np.count_nonzero(np.isfinite(values) != known)} elements are finite, or are not, where those of JAX"
    if jnp.issubdtype(dtype, jnp.floating):
        format = jnp.finfo(dtype)
        ulps = CANCELLING.get(case["name"], 8)
        error = error + ulps * float(format.eps) * np.maximum(np.abs(true), scale * float(format.smallest_normal))
    wrong = known & ~(np.abs(np.where(known, values, 0) - np.where(known, true, 0)) <= error)
    place = np.unravel_index(np.argmax(wrong), wrong.shape)
    return f"{case['name']}: {values[place]:.9g} for {true[place]:.9g} +- {error[place]:.1e}" if wrong.any() else ""


@pytest.mark.parametrize("suite", ["graphs", "graphs_random"])
def test_graphs(suite):
    all_cases, problems, compared = list(cases(suite)), [], 0
    arrays = np.load(GOLDEN / f"{suite}.npz")
    for start in range(0, len(all_cases), AT_ONCE):
        some = all_cases[start : start + AT_ONCE]
        library, inputs = library_of(some), [entry for case in some for entry in case["inputs"]]

        def run(*data):
            return library(*(argument(arrays, entry, each) for entry, each in zip(inputs, data)))

        data = tuple(data_of(arrays, entry) for entry in inputs)
        results = run(*data)
        allowed = errors(lambda *data: [value_of(result) for result in run(*data)], data, [value_of(result) for result in results])
        expected = [(case, np.asarray(arrays[entry["key"]], np.float64)) for case in some for entry in case["true"]]
        problems += [difference(got, true, error, case) for got, error, (case, true) in zip(results, allowed, expected, strict=True)]
        compared += len(expected)
    problems = [words for words in problems if words]
    print(f"{suite}: {len(all_cases)} graphs, {compared} results")
    assert compared > 30 and not problems, "\n".join(problems)
