"""Runs a cell: builds the library of its training step, trains, and says what is wrong."""
import functools
import json
import os
import time

import jax
import jax.numpy as jnp
import numpy as np

import scalide
import scalide.jax as jsa
import steps
from cells import REFUSED, Cell, floor, tolerance
from scalide.arrays import DTYPES

CACHE, RESULTS = os.environ["SCALIDE_TRAINING_CACHE"], os.environ.get("SCALIDE_TRAINING_RESULTS")

#: The numbers of a run without factors, for steps that have them.
ONES = (1.0, 1.0)

#: Steps of runs that have to give the losses of another run: what differs does so soon.
COMPARED = 40


@functools.cache
def wanted(model, depth, optimizer, bias, count, fixed=False):
    return steps.losses_in_jax(model, depth, optimizer, bias, count, batches=1 if fixed else None)


def stored(leaf, argument):
    """An array as an argument of a library has it: of its dtype; where it is scaled, at the power of two of its largest element."""
    if isinstance(leaf, scalide.ScaledArray):
        if argument.scaled and leaf.dtype == DTYPES[argument.dtype][0]:
            return leaf
        leaf = leaf.to_array(np.float32)
    leaf, dtype = np.asarray(leaf), DTYPES[argument.dtype][0]
    if not argument.scaled:
        return leaf.astype(dtype)
    largest = np.max(np.abs(leaf), initial=0)
    scale = np.float32(2.0 ** np.floor(np.log2(largest)) if largest > 0 else 1)
    return scalide.ScaledArray((leaf / scale).astype(dtype), scale)


def as_stored(library, *trees):
    """Arguments as the library's policy stores them."""
    leaves, tree = jax.tree.flatten(trees, is_leaf=lambda leaf: isinstance(leaf, scalide.ScaledArray))
    arguments = [argument for argument in library.arguments if argument.role in ("input", "inout")]
    return jax.tree.unflatten(tree, [stored(leaf, argument) for leaf, argument in zip(leaves, arguments, strict=True)])


def build(cell: Cell):
    """The library of a cell's step. Raises scalide.BuildError where the tool refuses it."""
    params, state, batches = steps.start(cell.model, cell.depth, cell.optimizer, cell.bias)
    factors = [named(ONES)] if cell.factors else []
    program = jsa.trace(steps.step_of(cell.model, cell.depth, cell.optimizer), params, state, *batches[0], *factors,
                        donate_argnums=(0, 1) if cell.form == "donated" else (), name="step")  # fmt: skip
    return scalide.build(program, numerics=cell.policy, cache=CACHE)


def named(factors):
    return {"weight": np.float32(factors[0]), "loss": np.float32(factors[1])}


def train(library, cell: Cell, count: int, factors=None, of_jax=False):
    """The losses of a run, divided by the factor of the loss."""
    weight, scale = factors or ONES
    params, state, batches = steps.start(cell.model, cell.depth, cell.optimizer, cell.bias, weight)
    batches = batches[:1] if cell.fixed else batches
    losses, policy = [], library.init()
    for i in range(count):
        given = as_stored(library, params, state, *batches[i % len(batches)], *([named(factors)] if factors else []))
        if of_jax:
            given = jax.tree.map(jnp.asarray, given)
        if policy:
            (params, state, loss), policy = library(*given, policy)
        else:
            params, state, loss = library(*given)
        losses.append(np.asarray(loss, np.float64) / scale)
    return np.asarray(losses)


def shown(losses, others, at):
    return f"step {at}: loss {losses[at]:.7g}, not {others[at]:.7g}"


def difference(losses, others) -> str:
    """Where a run differs from the start of another that it has to repeat."""
    known = np.flatnonzero(~(losses == others[:len(losses)]))
    return shown(losses, others, known[0]) if known.size else ""


def verdicts(library, cell: Cell, count: int) -> dict:
    """Returns the errors of a cell's runs, by run, and the largest deviation from f32."""
    losses, other = train(library, cell, count, ONES if cell.factors else None), wanted(cell.model, cell.depth, cell.optimizer, cell.bias, count, cell.fixed)
    off, allowed = steps.deviations(losses, other, floor(cell)), tolerance(cell.policy)
    found = {}
    if off.max() > allowed:
        at = int(np.argmax(off > allowed))
        found["f32"] = f"{shown(losses, other, at)} (off by {off[at]:.2g} of {allowed:g}; at worst {off.max():.2g})"
    for factors in cell.factors:
        found["weight * {:g}, loss * {:g}".format(*factors)] = difference(train(library, cell, min(count, COMPARED), factors), losses)
    if cell.arrays:
        found["arrays of JAX"] = difference(train(library, cell, min(count, COMPARED), of_jax=True), losses)
    return {"deviation": float(off.max()), "wrong": {run: words for run, words in found.items() if words}}


def run(cell: Cell, count: int) -> dict:
    """A row of the table; its `wrong` is empty where the cell is as it has to be."""
    start = time.monotonic()
    row = {**cell._asdict(), "name": cell.name, "steps": count, "factors": len(cell.factors), "refused": ""}
    try:
        library = build(cell)
        row["build_s"] = round(time.monotonic() - start, 1)
        row.update(verdicts(library, cell, count))
    except scalide.BuildError as error:
        row.update(refused=str(error), wrong={})
    if (row["refused"] != "") != (cell.name in REFUSED) or REFUSED.get(cell.name, "") not in row["refused"]:
        row["wrong"]["build"] = row["refused"] or "is no longer refused"
    row["run_s"] = round(time.monotonic() - start, 1)
    write(row)
    return row


def write(row: dict) -> None:
    """One more row for table.py."""
    if RESULTS:
        with open(RESULTS, "a") as file:
            file.write(json.dumps(row) + "\n")
