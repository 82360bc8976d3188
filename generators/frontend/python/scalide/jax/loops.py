"""Loops and branches: nodes that own programs, the regions. Short loops are unrolled."""
from __future__ import annotations

import dataclasses
from typing import Any, Callable, Sequence

from . import compat
from .complex_values import avals_of_parts, joined, parts_of
from .primitives import add_rule, take_one
from .text import Number, Region, Value, Writer
from .walk import Equation, Walk, dtype_of, extent_of, shape_of

#: A loop of at most SHORT steps is unrolled. So is a loop of at most LONGEST_UNROLL steps if the user asks for it.
SHORT, LONGEST_UNROLL = 4, 64


def is_unrolled(length, unroll: int = 1) -> bool:
    """Returns True if a loop is unrolled, and False if it becomes a node. `unroll` is the parameter of JAX."""
    return isinstance(length, int) and length <= (LONGEST_UNROLL if unroll >= length else SHORT)


@add_rule("scan")
def scan(walk, equation, operands):
    params, length = equation.params, extent_of(equation.params["length"], equation.fail)
    shared, carried = compat.scan_counts(params)
    fixed, inits, sequences = operands[:shared], operands[shared : shared + carried], operands[shared + carried :]
    rule = _unrolled_scan if is_unrolled(length, params["unroll"]) else _scan
    return rule(walk, equation, length, fixed, inits, sequences)


def _unrolled_scan(walk, equation, length: int, fixed, carry, sequences) -> list:
    params, steps = equation.params, [[]] * length
    avals = [variable.aval for variable in compat.open_jaxpr(params["jaxpr"])[0].invars][len(fixed) + len(carry) :]
    rows = [walk.writer.value(part) for part in parts_of(sequences)]
    for step in reversed(range(length)) if params["reverse"] else range(length):
        elements = joined([take_one(walk, row, 0, step) for row in rows], avals)
        results = walk.run_closed(params["jaxpr"], [*fixed, *carry, *elements])
        carry, steps[step] = results[: len(carry)], parts_of(results[len(carry) :])
    stacked = []
    for index, (dtype, shape) in enumerate(_types(equation, equation.outputs[len(carry) :])):
        if not length:
            stacked += walk.emit("broadcast_in_dim", [Number(0, dtype)], {"shape": list(shape), "dims": []}, [(dtype, shape)])
            continue
        parts = [walk.reshape(walk.writer.value(step[index]), (1, *shape[1:])) for step in steps]
        stacked += walk.emit("concatenate", parts, {"dimension": 0}, [(dtype, shape)])
    return [*carry, *joined(stacked, equation.outputs[len(carry) :])]


def _types(equation: Equation, avals: Sequence) -> list[tuple]:
    """Returns (dtype, shape) for each part of some abstract values."""
    return [(dtype_of(aval, equation.fail), shape_of(aval, equation.fail)) for aval in avals_of_parts(avals)]


class _State:
    """The values that a loop carries. A carry that never changes is no carry of the node. Neither is a counter, which the number of the step gives."""

    def __init__(self, walk: Walk, equation: Equation, jaxpr, first: int, inits: Sequence):
        """`jaxpr`: the body of the loop, whose argument number `first` is the first carry."""
        self.walk, self.inits = walk, inits
        variables = jaxpr.invars[first : first + len(inits)]
        self.unchanged = {i for i, result in enumerate(jaxpr.outvars[: len(inits)]) if compat.argument_number(result, jaxpr) == first + i}
        self.steps = {i: step for i, variable in enumerate(variables) if (step := _step_of(jaxpr, variable, jaxpr.outvars[i], inits[i])) is not None}
        self._set_avals(equation, [variable.aval for variable in variables])

    def _set_avals(self, equation: Equation, avals: Sequence) -> None:
        self.kept = [i for i in range(len(self.inits)) if i not in self.unchanged and i not in self.steps]
        self.avals = [avals[i] for i in self.kept]
        self.operands = [self.walk.writer.value(part) for part in parts_of(self.chosen(self.inits))]
        names = self.walk.writer
        self.carries = [Value(names.fresh_name(), *type_, init.scaled) for type_, init in zip(_types(equation, self.avals), self.operands)]

    def without_counters(self, equation: Equation, avals: Sequence) -> None:
        """Makes each counter a carry: the loop does not number its steps."""
        self.steps = {}
        self._set_avals(equation, avals)

    def chosen(self, values: Sequence) -> list:
        """Returns the values of the carries of the node."""
        return [values[i] for i in self.kept]

    def values(self, carries: Sequence, count: Callable | None = None) -> list:
        """Returns all values that the loop carries. `count` returns how many steps came before, for counters."""
        kept = dict(zip(self.kept, joined(carries, self.avals)))
        return [kept[i] if i in kept else self._counter(i, count()) if i in self.steps else init for i, init in enumerate(self.inits)]

    def _counter(self, i: int, count):
        init, step = self.inits[i].value, self.steps[i]
        if isinstance(count, Number):
            return Number((init + step * count.value + 2**31) % 2**32 - 2**31, "i32")
        for op, number, neutral in (("mul", step, 1), ("add", init, 0)):
            if number != neutral:
                (count,) = self.walk.emit(op, [count, Number(number, "i32")], {}, [("i32", ())])
        return count

    def body(self, before: Sequence[tuple[Value, str]], after: Sequence[tuple[Value, str]], results: Callable[[Sequence], Sequence]) -> Region:
        """Writes the body of the loop. `results` gets the carries. The body is written again while a plain carry gets a scaled value."""
        while True:
            carries = self.carries
            region = self.walk.region("body", [*before, *((carry, "inout") for carry in carries), *after], lambda: results(carries))
            self.carries = [dataclasses.replace(carry, scaled=carry.scaled or value.scaled) for carry, value in zip(carries, region.results)]
            if self.carries == carries:
                return region


def _step_of(jaxpr, variable, result, init) -> int | None:
    """Returns how much a carry grows in each step if it is a counter: an i32 that starts at a number and to which each step adds a number."""
    if not isinstance(init, Number) or init.dtype != "i32" or variable.aval.shape:
        return None
    made_by = next((eqn for eqn in jaxpr.eqns if result in eqn.outvars), None) if not isinstance(result, compat.Literal) else None
    if made_by is None or made_by.primitive.name != "add" or variable not in made_by.invars:
        return None
    literals = [atom for atom in made_by.invars if isinstance(atom, compat.Literal)]
    return int(literals[0].val) if literals else None


def _scan(walk, equation, length, fixed, inits, sequences) -> list:
    jaxpr, _ = compat.open_jaxpr(equation.params["jaxpr"])
    avals, reverse = [variable.aval for variable in jaxpr.invars], equation.params["reverse"]
    state = _State(walk, equation, jaxpr, len(fixed), inits)
    if not isinstance(length, int):
        state.without_counters(equation, avals[len(fixed) : len(fixed) + len(inits)])
    rows = [walk.writer.value(part) for part in parts_of(sequences)]
    avals_of_rows, outputs = avals[len(fixed) + len(inits) :], equation.outputs[len(inits) :]
    elements = [Value(walk.writer.fresh_name(), *type_, row.scaled) for type_, row in zip(_types(equation, avals_of_rows), rows)]
    number = Value(walk.writer.fresh_name(), "i32", ())

    def before():
        return walk.emit("sub", [Number(length - 1, "i32"), number], {}, [("i32", ())])[0] if reverse else number

    def results(carries):
        made = walk.run_closed(equation.params["jaxpr"], [*fixed, *state.values(carries, before), *joined(elements, avals_of_rows)])
        return parts_of([*state.chosen(made), *made[len(inits) :]])

    body = state.body([(number, "step")] * bool(state.steps), [(element, "each") for element in elements], results)
    types = [(carry.dtype, carry.shape, carry.scaled) for carry in state.carries]
    types += [(*type_, value.scaled) for type_, value in zip(_types(equation, outputs), body.results[len(types) :])]
    attributes = {"length": length, **({"reverse": True} if reverse else {})}
    made = walk.writer.emit_regions("scan", [*state.operands, *rows], attributes, types, [body]) if types else []
    carries, stacks = made[: len(state.carries)], made[len(state.carries) :]
    return [*state.values(carries, lambda: Number(length, "i32")), *joined(stacks, outputs)]


@add_rule("while")
def while_loop(walk, equation, operands):
    params = equation.params
    conditions, bodies = params["cond_nconsts"], params["body_nconsts"]
    of_test, of_body, inits = operands[:conditions], operands[conditions : conditions + bodies], operands[conditions + bodies :]

    def goes_on(values):
        return walk.run_closed(params["cond_jaxpr"], [*of_test, *values])[0]

    def step(values):
        return walk.run_closed(params["body_jaxpr"], [*of_body, *values])

    unrolled = _unrolled_while(walk, goes_on, step, inits)
    return _while(walk, equation, goes_on, step, inits) if unrolled is None else unrolled


def _unrolled_while(walk, goes_on: Callable, step: Callable, values: Sequence) -> Sequence | None:
    """Returns the results if the test is a number before each step, and the steps are few. Otherwise None, and nothing is written."""
    outer, steps = walk.writer, 0
    walk.writer = Writer(around=outer)
    walk.writer.around, walk.writer.scope = outer.around, outer.scope
    try:
        while is_unrolled(steps, unroll=steps) and isinstance(flag := goes_on(values), Number):
            if not flag.value:
                outer.lines += walk.writer.lines
                return values
            values, steps = step(values), steps + 1
        return None
    finally:
        walk.writer = outer


def _while(walk, equation, goes_on: Callable, step: Callable, inits: Sequence) -> list:
    """Writes a `while`. Under jax.vmap the test has a flag for each row: the loop ends when all are false, and such a row stays as it is."""
    jaxpr, _ = compat.open_jaxpr(equation.params["body_jaxpr"])
    state = _State(walk, equation, jaxpr, equation.params["body_nconsts"], inits)
    state.without_counters(equation, [variable.aval for variable in jaxpr.invars[equation.params["body_nconsts"] :]])
    if not state.kept:
        return inits
    rank = len(compat.open_jaxpr(equation.params["cond_jaxpr"])[0].outvars[0].aval.shape)

    def results(carries):
        values = state.values(carries)
        new, flag = parts_of(state.chosen(step(values))), goes_on(values) if rank else None
        return new if flag is None else [_selected(walk, flag, old, each) for old, each in zip(carries, new)]

    def test():
        flag = goes_on(state.values(state.carries))
        return walk.emit("reduce_or", [flag], {"axes": list(range(rank))}, [("bool", ())]) if rank else [flag]

    body = state.body([], [], results)
    tested = walk.region("test", [(carry, "") for carry in state.carries], test)
    types = [(carry.dtype, carry.shape, carry.scaled) for carry in state.carries]
    return state.values(walk.writer.emit_regions("while", state.operands, {}, types, [tested, body]))


def _selected(walk, flag: Value, old: Value, new):
    """Returns the new rows where the flag is true, and the old rows elsewhere."""
    if tuple(flag.shape) != tuple(old.shape):
        attributes = {"shape": list(old.shape), "dims": list(range(len(flag.shape)))}
        (flag,) = walk.emit("broadcast_in_dim", [flag], attributes, [("bool", old.shape)])
    return walk.emit("select_n", [flag, old, walk.writer.value(new)], {}, [(old.dtype, old.shape)])[0]


@add_rule("cond")
def cond(walk, equation, operands):
    """If the index is a number, returns that branch."""
    which, *rest = operands
    branches = equation.params["branches"]
    if isinstance(which, Number):
        return walk.run_closed(branches[min(max(int(which.value), 0), len(branches) - 1)], rest)
    flag = _predicate(walk, which) if len(branches) == 2 else None
    names = [f"branch{number}" for number in range(len(branches))] if flag is None else ["no", "yes"]
    regions = [walk.region(name, [], lambda branch=branch: parts_of(walk.run_closed(branch, rest))) for name, branch in zip(names, branches)]
    types = [(*type_, any(region.results[i].scaled for region in regions)) for i, type_ in enumerate(_types(equation, equation.outputs))]
    if not types:
        return []
    op, selector, regions = ("switch", walk.convert(which, "i32"), regions) if flag is None else ("cond", flag, regions[::-1])
    return joined(walk.writer.emit_regions(op, [selector], {}, types, regions, leading=1), equation.outputs)


def _predicate(walk, which: Value) -> Any:
    """Returns the bool that JAX converted to the index of one of two branches, or None."""
    op, operands, _ = walk.writer.nodes.get(which.name, ("", (), {}))
    is_flag = op == "convert_element_type" and isinstance(operands[0], Value) and operands[0].dtype == "bool"
    return operands[0] if is_flag else None
