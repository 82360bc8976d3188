"""All code that depends on the version of JAX: names of primitives and parameters, and private names of JAX."""
from __future__ import annotations

import contextlib
import functools
import inspect
import pathlib
import re
import sys
import warnings
from typing import Callable

import jax
import numpy as np
from jax._src import debugging  # jax.debug.print has no public names for its parts
from jax._src import source_info_util  # source locations have no public name
from jax._src.interpreters import mlir  # the table of lowerings has no public name

try:
    from jax.extend.core import ClosedJaxpr, Literal, Var
except ImportError:  # 0.4.33
    from jax.core import ClosedJaxpr, Literal, Var

#: The versions of JAX that the tests use, oldest first. pyproject.toml pins them.
TESTED = ("0.4.33", "0.10.2", "0.12.0.1")

source_info_util.register_exclusion(str(pathlib.Path(__file__).parent))  # a source line of the user is not in this package

#: The type of jitted functions. In JAX 0.4.33 its methods are attributes, so functools.wraps copies them to derived functions, such as gradients.
JITTED = type(jax.jit(lambda: None))

#: Primitives that call a jaxpr, and the parameter that holds it. If JAX did not differentiate a custom_jvp or custom_vjp, it is a call.
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

#: Primitives that only change the type that JAX gives to a value of several devices.
TYPES = frozenset(("pvary", "pcast"))

#: Primitives for loops and branches.
CONTROL = frozenset(("scan", "while", "cond"))

#: Parameters that do not affect values, of any version.
SILENT = frozenset("""accuracy precision sharding out_sharding weak_type indices_are_sorted unique_indices is_stable algorithm transpose_algorithm
    update_jaxpr update_consts recall_target reduction_input_size_override aggregate_to_topk prevent_cse impl""".split())


#: The beginnings of the TypeErrors of JAX about an argument that is no array.
NO_ARRAY = ("Error interpreting argument", "Cannot interpret value of type")


def warn_if_newer(version: str) -> None:
    """Warns if a version of JAX is newer than all tested ones. Release candidates and builds count as their release."""

    def numbers(text: str) -> tuple:
        return tuple(int(number) for number in re.match(r"\d+(?:\.\d+)*", text)[0].split("."))

    if numbers(version)[:2] > numbers(TESTED[-1])[:2]:
        warnings.warn(f"JAX {version} is newer than {TESTED[-1]}, the newest version that Scalide was tested with. "
                      f"If a function does not trace, run: pip install 'jax=={TESTED[-1]}'", stacklevel=3)  # fmt: skip


def open_jaxpr(jaxpr) -> tuple:
    """Returns (jaxpr, constants) of a closed or open jaxpr."""
    return (jaxpr.jaxpr, jaxpr.consts) if isinstance(jaxpr, ClosedJaxpr) or hasattr(jaxpr, "consts") else (jaxpr, ())


def primitives_of(jaxpr) -> set[str]:
    """Returns the names of all primitives in a jaxpr and in the jaxprs that it calls."""
    names = set()
    for eqn in open_jaxpr(jaxpr)[0].eqns:
        names.add(eqn.primitive.name)
        names.update(*map(primitives_of, bodies_of(eqn)))
    return names


def bodies_of(eqn) -> list:
    """Returns the jaxprs among the parameters of an equation."""
    values = [each for value in eqn.params.values() for each in (value if isinstance(value, (list, tuple)) else (value,))]
    return [value for value in values if hasattr(value, "eqns")]


@contextlib.contextmanager
def context_of(eqn, keeps_line: bool):
    """Enters the context in which an equation was traced: its named scopes, its settings and, unless `keeps_line`, its source line. Gives the
    names of the scopes and of the transformations around it, outermost first."""
    stack = source_info_util.current_name_stack() + eqn.source_info.name_stack
    place = source_info_util.current() if keeps_line else eqn.source_info
    with source_info_util.user_context(place.traceback, name_stack=stack), eqn.ctx.manager:
        yield [entry.name for entry in stack.stack]


def bind(primitive, operands: list, params: dict) -> list:
    """Applies a primitive to operands, with the parameters of an equation. Returns all results."""
    bound = primitive.get_bind_params(params)
    functions, params = bound if isinstance(bound, tuple) else ((), bound)  # 0.4.33
    results = primitive.bind(*functions, *operands, **params)
    return list(results) if primitive.multiple_results else [results]


def decomposition_of(eqn):
    """Returns a jaxpr of other primitives that computes an equation, or None if JAX has none.

    JAX has one for a primitive that calls a jaxpr, for a primitive that it expands before it compiles (to_lojax, since JAX 0.9), and for a
    primitive that it lowers by a function of other primitives."""
    jaxprs = [value for value in eqn.params.values() if hasattr(value, "eqns")]
    if len(jaxprs) == 1 and _types(jaxprs[0].in_avals, jaxprs[0].out_avals) == _types((v.aval for v in eqn.invars), (v.aval for v in eqn.outvars)):
        return jaxprs[0]
    lowerings = [mlir._platform_specific_lowerings["cpu"].get(eqn.primitive), mlir._lowerings.get(eqn.primitive)]
    for function in (getattr(eqn.primitive, "to_lojax", None), *map(_lowered_function, lowerings)):
        jaxpr = None if function is None else _traced(function, eqn)
        if jaxpr is not None and [inner.primitive for inner in jaxpr.eqns] != [eqn.primitive]:
            return jaxpr
    return None


def _types(*avals) -> list:
    """Returns the shapes and dtypes in sequences of abstract values."""
    return [[(aval.shape, aval.dtype) for aval in each] for each in avals]


def _traced(function: Callable, eqn):
    """Returns the jaxpr of a function for the operands and parameters of an equation. Returns None if JAX cannot trace it here."""
    try:
        return jax.make_jaxpr(functools.partial(function, **eqn.params))(*(jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in eqn.invars))
    except Exception:  # such a function may ask for a context that only a lowering has
        return None


def _lowered_function(rule) -> Callable | None:
    """Returns the function that a lowering made by mlir.lower_fun traces. Returns None for another lowering."""
    rule = inspect.unwrap(getattr(rule, "rule", rule)) if rule is not None else None
    if getattr(rule, "__qualname__", "") != "lower_fun.<locals>.f_lowered":
        return None
    return inspect.getclosurevars(rule).nonlocals["fun"]


def trees_of(traced) -> tuple:
    """Returns (structure of the arguments, whether each of their arrays is donated, structure of the results) of a traced function.

    `args_info` of JAX would put objects that are no arrays into the containers of the user. Some classes compute with what they contain."""
    if hasattr(traced, "_in_tree"):
        return traced._in_tree, list(traced._params["donated_invars"])[: traced._in_tree.num_leaves], traced.out_tree
    infos, structure = jax.tree_util.tree_flatten(traced.args_info)  # 0.4.33
    return structure, [info.donated for info in infos], traced._out_tree


def argument_number(variable, jaxpr) -> int | None:
    """Returns the number of the argument of a jaxpr that a variable is, also if a call returns the argument. Returns None for another variable."""
    while not isinstance(variable, Literal) and variable not in jaxpr.invars:
        eqn = next((eqn for eqn in jaxpr.eqns if variable in eqn.outvars), None)
        if eqn is None or eqn.primitive.name not in CALLS:
            return None
        inner, _ = open_jaxpr(eqn.params[CALLS[eqn.primitive.name]])
        number = argument_number(inner.outvars[eqn.outvars.index(variable)], inner)
        if number is None:
            return None
        variable = eqn.invars[number]
    return None if isinstance(variable, Literal) else jaxpr.invars.index(variable)


def scan_counts(params: dict) -> tuple[int, int]:
    """Returns the numbers of constants and of carried values of a scan, which are its first operands."""
    if "num_carry" in params:
        return params["num_consts"], params["num_carry"]
    consts, carry, _ = params["ft_in"].unpack()  # since JAX 0.11
    return len(consts), len(carry)


def place_of(place: tuple) -> str:
    """Returns the source location of an equation, `model.py:12:4 (loss)`: the innermost line that the user wrote.

    A line of an installed package, such as Flax, counts only if the user has no line. Text in `place` is the line that called trace. It counts
    if no other line is known."""
    lines, others, callers = [], [], []
    for each in place:
        if isinstance(each, str):
            callers.append(each)
            continue
        for frame in _frames(each):
            (others if _INSTALLED.search(frame.file_name) else lines).append(frame)
    frame = next(iter(lines), None)
    if frame is None and callers:
        return callers[0]
    return "a line of JAX" if frame is None and not others else source_info_util._summarize_frame(frame or others[0])


class Place(tuple):
    """The source location of an equation as JAX knows it. Only a message or a saved program needs the text, which takes longer to make."""

    def __str__(self):
        return place_of(self)


#: Folders of installed packages.
_INSTALLED = re.compile(r"[/\\\\](site|dist)-packages[/\\\\]")


def _frames(source_info):
    """Returns the frames outside of JAX at which an equation was traced, innermost first."""
    old = "source_info" in inspect.signature(source_info_util.user_frames).parameters  # 0.4.33
    return source_info_util.user_frames(source_info if old else source_info.traceback)


def caller_place() -> str | None:
    """Returns the innermost line on the stack outside of JAX and of installed packages, `train.py:30 (main)`, or None."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if source_info_util.is_user_filename(name) and not _INSTALLED.search(name):
            return f"{name}:{frame.f_lineno} ({frame.f_code.co_name})"
        frame = frame.f_back
    return None


def is_of_user(jaxpr) -> bool:
    """Returns False for a jaxpr of a function of JAX. JAX caches such a jaxpr with the source lines of the first caller."""
    file = re.search(r" at (.*):\d+$", getattr(getattr(jaxpr, "debug_info", None), "func_src_info", None) or "")
    return file is None or source_info_util.is_user_filename(file[1])


_RECOMPUTED = "rematted_computation"  # the scope in which jax.checkpoint computes values of the forward pass again


def scopes_of(eqn, outer_is_gradient: bool) -> tuple[list[str], bool]:
    """Returns the named scopes around an equation, and whether it belongs to a gradient: JAX made it, or the call around it, by transposition.

    The body of a transposed `jax.checkpoint` first computes the forward pass again. These equations do not belong to the gradient.
    """
    stack = eqn.source_info.name_stack.stack
    transformations = {entry.name for entry in stack if isinstance(entry, source_info_util.Transform)}
    scopes = [entry.name for entry in stack if isinstance(entry, source_info_util.Scope)]
    is_gradient = (outer_is_gradient or "transpose" in transformations) and _RECOMPUTED not in scopes
    return [name for name in scopes if name not in ("", "checkpoint", _RECOMPUTED)], is_gradient


def _axes_of(aval) -> frozenset:
    """Returns the axes of a mesh over which a value differs between devices, in `jax.shard_map`."""
    return frozenset(aval.mat.varying) if hasattr(aval, "mat") else frozenset(getattr(aval, "vma", None) or ())


def _plain(value):
    """Returns a jaxpr, or the jaxprs in a sequence, without the axes of a mesh in types, and without the equations that change them alone."""
    if isinstance(value, (list, tuple)):
        return type(value)(map(_plain, value)) if any(hasattr(each, "eqns") for each in value) else value
    if not hasattr(value, "eqns"):
        return value
    if isinstance(value, ClosedJaxpr):
        return ClosedJaxpr(_plain(value.jaxpr), value.consts)
    known = {}

    def replaced(variable):
        if isinstance(variable, Literal):
            return variable
        aval = variable.aval
        return known.setdefault(variable, Var(jax.core.ShapedArray(aval.shape, aval.dtype, aval.weak_type)) if _axes_of(aval) else variable)

    equations = []
    for eqn in value.eqns:
        if eqn.primitive.name in TYPES:
            known.update(zip(eqn.outvars, map(replaced, eqn.invars)))
            continue
        params = {name: _plain(param) for name, param in eqn.params.items()}
        equations.append(eqn.replace(invars=[*map(replaced, eqn.invars)], outvars=[*map(replaced, eqn.outvars)], params=params))
    sides = {"constvars": value.constvars, "invars": value.invars, "outvars": value.outvars}
    return value.replace(eqns=equations, **{name: [*map(replaced, side)] for name, side in sides.items()})


def part_of(jaxpr, inputs: list, outputs: list, equations: list):
    """Returns equations of a jaxpr as a jaxpr of their own, without the axes of a mesh in types."""
    known = getattr(jaxpr, "debug_info", None)  # JAX wants as many names in it as there are variables
    named = known._replace(arg_names=("",) * len(inputs), result_paths=("",) * len(outputs)) if hasattr(known, "result_paths") else None
    return _plain(jaxpr.replace(constvars=[], invars=inputs, outvars=outputs, eqns=equations, effects=set(), debug_info=named))


def varying_over(value, axes):
    """Tells JAX that a value may differ between the devices along these axes of a mesh."""
    missing = tuple(sorted(set(axes) - (_axes_of(jax.typeof(value)) if hasattr(jax, "typeof") else set(axes))))
    if not missing:
        return value
    return jax.lax.pcast(value, missing, to="varying") if hasattr(jax.lax, "pcast") else jax.lax.pvary(value, missing)


def varying_like(value, variable):
    """Gives a value the axes of a mesh along which JAX expects a variable to differ."""
    return varying_over(value, _axes_of(variable.aval))


def top_k_axis(params: dict, rank: int) -> int:
    """Returns the axis of a top_k."""
    return params.get("axis", rank - 1) % rank  # before JAX 0.5 it is always the last axis


def is_key(aval) -> bool:
    """Returns True for an array of random keys (jax.random.key())."""
    return jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key)


def stored_dtype(aval):
    """Returns the dtype in which arrays are stored. Only extended dtypes, such as keys and fp32_max_grad of Flax, have another one."""
    if not jax.dtypes.issubdtype(aval.dtype, jax.dtypes.extended):
        return aval.dtype
    return aval.dtype._rules.physical_element_aval(aval.dtype).dtype


def sum_of(aval):
    """Returns the jaxpr that adds two arrays of an extended dtype. JAX adds gradients by it; fp32_max_grad of Flax takes the maximum."""
    return jax.make_jaxpr(lambda x, y: aval.dtype._rules.add(aval.dtype, x, y))(aval, aval)


def key_scheme(aval) -> str:
    """Returns the name of the random generator of a key."""
    return aval.dtype._impl.name


def check_random_bits() -> str | None:
    """Returns why random bits would differ from JAX, or None if they are equal."""
    if jax.config.jax_threefry_partitionable:
        return None
    return "jax_threefry_partitionable must be set, as it is by default since JAX 0.5: jax.config.update('jax_threefry_partitionable', True)"


def symbols_of(dimension) -> set[str]:
    """Returns the symbols in a symbolic dimension."""
    return set() if isinstance(dimension, (int, np.integer)) else set(re.findall(r"[A-Za-z_]\w*", str(dimension)))


def extent_text(dimension) -> str | None:
    """Returns a symbolic dimension as a polynomial (b^2 becomes b*b). Returns None if it is no polynomial (floordiv, mod, max, min)."""
    text = str(dimension)
    if re.search(r"(floordiv|mod|max|min)\(", text):
        return None
    return re.sub(r"(\w+)\^(\d+)", lambda found: "*".join([found[1]] * int(found[2])), text)


def constraints_of(dimension) -> list[str]:
    """Returns the constraints of the user for the symbols of a dimension: 'b >= 8', 'mod(b, 16) == 0'."""
    scope = getattr(dimension, "scope", None)
    return [constraint.debug_str for constraint in getattr(scope, "_explicit_constraints", ())]


def debug_callback_of(equation) -> Callable:
    """Returns the host function of a jax.debug equation. It takes the operands. Later versions of JAX have a primitive for jax.debug.print."""
    params = equation.params
    if "callback" in params:
        return params["callback"]
    shown = functools.partial(debugging._format_print_callback, params["fmt"], dict(params["np_printoptions"]), params["has_placeholders"],
                              params["logging_record"])  # fmt: skip
    return debugging._make_flat_callback(params["in_tree"], shown, params["static_args"])


def static_arguments(jitted) -> tuple:
    """Returns (static_argnums, static_argnames) of a function that the user jitted. JAX has no public function for this."""
    if hasattr(jitted, "_jit_info"):
        return jitted._jit_info.static_argnums, ()
    cells = [cell.cell_contents for cell in jitted._cache_miss.__wrapped__.__closure__]  # 0.4.33
    return next(info for info in cells if hasattr(info, "static_argnums")).static_argnums, ()
