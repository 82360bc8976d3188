"""The one place that knows in what versions of JAX differ: names of primitives and of their parameters, and what is private to JAX."""
from __future__ import annotations

import functools
import pathlib
import re
from typing import Callable

import jax
import numpy as np
from jax._src import debugging  # what a print of jax.debug is made of has no public name
from jax._src import source_info_util  # the line of the user's file has no public name

try:
    from jax.extend.core import ClosedJaxpr, Literal
except ImportError:  # 0.4.33
    from jax.core import ClosedJaxpr, Literal

source_info_util.register_exclusion(str(pathlib.Path(__file__).parent))  # a user's line is none of ours

#: What jax.jit makes. In 0.4.33 its methods are attributes, which functools.wraps copies to what is made of it, to gradients say.
JITTED = type(jax.jit(lambda: None))

#: Primitives that stand for a jaxpr, and the parameter that holds it. custom_jvp and custom_vjp: what JAX has not differentiated is called.
CALLS = {
    "jit": "jaxpr",
    "pjit": "jaxpr",
    "closed_call": "call_jaxpr",
    "core_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vjp_call_jaxpr": "fun_jaxpr",
    "checkpoint": "jaxpr",
    "remat2": "jaxpr",
    "remat": "jaxpr",
    "composite": "jaxpr",
}

#: Parameters that say nothing about values, in any version.
SILENT = frozenset("""accuracy precision sharding out_sharding weak_type indices_are_sorted unique_indices is_stable algorithm transpose_algorithm
    update_jaxpr update_consts recall_target reduction_input_size_override aggregate_to_topk prevent_cse impl""".split())


def open_jaxpr(jaxpr) -> tuple:
    """(jaxpr, constants) of a closed or an open one."""
    return (jaxpr.jaxpr, jaxpr.consts) if isinstance(jaxpr, ClosedJaxpr) or hasattr(jaxpr, "consts") else (jaxpr, ())


def primitives_of(jaxpr) -> set[str]:
    """The names of all primitives in a jaxpr and in those that it calls."""
    names = set()
    for eqn in open_jaxpr(jaxpr)[0].eqns:
        names.add(eqn.primitive.name)
        for value in eqn.params.values():
            inner = [each for each in (value if isinstance(value, (list, tuple)) else (value,)) if hasattr(each, "eqns")]
            names.update(*map(primitives_of, inner))
    return names


def place_of(place: tuple) -> str:
    """`model.py:12:4 (loss)`: the user's line that made an equation, or the innermost call around it that the user wrote."""
    return next(filter(None, map(source_info_util.summarize, place)), "a line of JAX")


def is_of_user(jaxpr) -> bool:
    """False for the jaxpr of a function of JAX itself. JAX keeps such jaxprs, and with them the lines of whoever called the function first."""
    file = re.search(r" at (.*):\d+$", getattr(getattr(jaxpr, "debug_info", None), "func_src_info", None) or "")
    return file is None or source_info_util.is_user_filename(file[1])


def scopes_of(eqn) -> tuple[list[str], bool]:
    """The scopes of the user that an equation stands in, and whether it is of what JAX transposed."""
    stack = eqn.source_info.name_stack.stack
    transformations = {entry.name for entry in stack if isinstance(entry, source_info_util.Transform)}
    scopes = [entry.name for entry in stack if isinstance(entry, source_info_util.Scope)]
    return [name for name in scopes if name not in ("", "checkpoint", "rematted_computation")], "transpose" in transformations


def top_k_axis(params: dict, rank: int) -> int:
    return params.get("axis", rank - 1) % rank  # before 0.5 always the last


def is_key(aval) -> bool:
    """True for arrays of random keys, jax.random.key()."""
    return jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key)


def key_scheme(aval) -> str:
    return aval.dtype._impl.name


def check_random_bits() -> str | None:
    """Why random bits would differ from JAX's; None where they are equal."""
    if jax.config.jax_threefry_partitionable:
        return None
    return "jax_threefry_partitionable must be set, as it is by default since JAX 0.5: jax.config.update('jax_threefry_partitionable', True)"


def symbols_of(dimension) -> set[str]:
    """Names in a symbolic dimension."""
    return set() if isinstance(dimension, (int, np.integer)) else set(re.findall(r"[A-Za-z_]\w*", str(dimension)))


def extent_text(dimension) -> str | None:
    """A symbolic dimension as a polynomial in our syntax; None when it is none (floordiv, mod, max, min). b^2 is b*b."""
    text = str(dimension)
    if re.search(r"(floordiv|mod|max|min)\(", text):
        return None
    return re.sub(r"(\w+)\^(\d+)", lambda found: "*".join([found[1]] * int(found[2])), text)


def constraints_of(dimension) -> list[str]:
    """What the user said of the symbols of a dimension, 'b >= 8', 'mod(b, 16) == 0'."""
    scope = getattr(dimension, "scope", None)
    return [constraint.debug_str for constraint in getattr(scope, "_explicit_constraints", ())]


def debug_callback_of(equation) -> Callable:
    """What an equation of jax.debug calls on the host, with its operands. jax.debug.print has a primitive of its own in later versions."""
    params = equation.params
    if "callback" in params:
        return params["callback"]
    shown = functools.partial(debugging._format_print_callback, params["fmt"], dict(params["np_printoptions"]), params["has_placeholders"],
                              params["logging_record"])  # fmt: skip
    return debugging._make_flat_callback(params["in_tree"], shown, params["static_args"])


def static_arguments(jitted) -> tuple:
    """(static_argnums, static_argnames) of a function that the user jitted; nothing public tells."""
    if hasattr(jitted, "_jit_info"):
        return jitted._jit_info.static_argnums, ()
    cells = [cell.cell_contents for cell in jitted._cache_miss.__wrapped__.__closure__]  # 0.4.33
    return next(info for info in cells if hasattr(info, "static_argnums")).static_argnums, ()
