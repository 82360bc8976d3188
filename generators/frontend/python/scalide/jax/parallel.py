"""Functions that exchange data between devices: the parts between collectives are libraries, and JAX runs the collectives."""
from __future__ import annotations

import functools
import inspect
import itertools
from typing import Any, Callable

import jax
from jax import tree_util

from ..build import build
from ..saving import key_name
from . import compat
from .call import call
from .trace import trace
from .walk import TraceError

#: Primitives that exchange data between devices, of any version of JAX, and the number of a device.
COLLECTIVES = frozenset("""psum psum2 psum_invariant pmax pmin ppermute pbroadcast all_gather all_gather_invariant all_gather_reduced reduce_scatter
    unreduced_reduce_scatter all_to_all ragged_all_to_all pgather axis_index""".split())


def parallel(fn: Callable, *, numerics: Any = "f32", **options) -> Callable:
    """Turns a function of one device's arrays, which may contain collectives, into a function for `jax.shard_map` and `jax.pmap`.

    While JAX traces the function, it is cut at its collectives (psum, pmean, pmax, pmin, all_gather, psum_scatter, all_to_all, ppermute). Each part
    between them becomes a library, and JAX runs the collectives. The function computes gradients itself, by jax.grad:

        def step(w, x, y):
            gradient = jax.grad(lambda w: jax.lax.pmean(loss(w, x, y), "data"))(w)
            return w - 0.1 * gradient

        step = jax.jit(jax.shard_map(parallel(step, numerics="bf16"), mesh=mesh, in_specs=(P(), P("data"), P("data")), out_specs=P()))

    Args:
        fn: A function that JAX can trace. It takes and returns pytrees of arrays.
        numerics: The policy of all parts, as for `scalide.build`. A scale that comes from an array comes from the array of one device.
        options: Further arguments of `scalide.build`.

    Raises, while JAX traces the function:
        TraceError: A collective is in a loop or a branch, or a part cannot become a program.
        ValueError: The policy keeps state between runs.
    """
    libraries: dict[str, Callable] = {}

    @functools.wraps(fn)
    def run(*args, **kwargs):
        leaves, structure = tree_util.tree_flatten((args, kwargs))
        results = []

        def of_leaves(*leaves):
            args, kwargs = tree_util.tree_unflatten(structure, leaves)
            flat, tree = tree_util.tree_flatten(fn(*args, **kwargs))
            results.append(tree)
            return flat

        traced = jax.make_jaxpr(of_leaves)(*leaves)
        flat = jax.make_jaxpr(functools.partial(_without_calls, traced.jaxpr, traced.consts))(*leaves)
        names = dict(zip(flat.jaxpr.invars, _names_of(fn, args, kwargs)))
        phases, values = _Phases(flat.jaxpr), _Values(flat.jaxpr, [*flat.consts, *leaves])
        for number, equations in sorted(phases.equations.items()):
            if number % 2 == 0 or all(eqn.primitive.name in compat.TYPES for eqn in equations):
                for eqn in equations:
                    values.write(eqn.outvars, _applied(eqn, values))
                continue
            inputs, outputs = phases.borders(number)
            part, own = compat.part_of(flat.jaxpr, inputs, outputs, equations), _distinct([names.get(each, "value") for each in inputs])
            key = f"{part} {own}"
            if key not in libraries:
                libraries[key] = _library(part, own, f"{_name_of(fn)}_{number // 2}", numerics, options)
            made = libraries[key](**dict(zip(own, values.read(inputs))))
            values.write(outputs, map(compat.varying_like, made, outputs))
        return tree_util.tree_unflatten(results[0], values.read(flat.jaxpr.outvars))

    return run


def _names_of(fn, args, kwargs) -> list[str]:
    """Returns the names of all arrays in the arguments, as in `trace`: `params.dense.kernel`. Policies may match them."""
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):  # a function of C
        parameters = []
    plain = [each.name for each in itertools.takewhile(lambda each: each.kind is not each.VAR_POSITIONAL, parameters)]
    places = [plain[i] if i < len(plain) else f"operands.{i - len(plain)}" for i in range(len(args))]
    given = [*zip(places, args), *kwargs.items()]
    return [".".join([name, *map(key_name, path)]) for name, argument in given for path, _ in tree_util.tree_flatten_with_path(argument)[0]]


def _distinct(names: list[str]) -> list[str]:
    """Gives a number to each name that another array or a keyword of `trace` has, too."""
    taken = [*names, *inspect.signature(trace).parameters]
    return [name if taken.count(name) == 1 else f"{name}.{place}" for place, name in enumerate(names)]


def _name_of(fn) -> str:
    return getattr(fn, "__name__", type(fn).__name__).strip("<>")


def _library(part, names: list[str], name: str, numerics, options: dict) -> Callable:
    """Builds a part, and returns it as a function of JAX arrays with these names."""

    def of_part(**operands):
        values = _Values(part, [operands[each] for each in names])
        for eqn in part.eqns:
            values.write(eqn.outvars, _applied(eqn, values))
        return values.read(part.outvars)

    shapes = {each: jax.ShapeDtypeStruct(variable.aval.shape, variable.aval.dtype) for each, variable in zip(names, part.invars)}
    library = build(trace(of_part, **shapes, name=name), numerics=numerics, **options)
    states = [argument.name for argument in library.arguments if argument.role == "state"]
    if states:
        raise ValueError(f"scalide.jax.parallel: numerics must be a policy without state, got {numerics!r}, which keeps {', '.join(states[:3])} in {name}. "
                         "Build the part yourself, and use scalide.jax.call in the function of jax.shard_map")  # fmt: skip
    return call(library)


def _applied(eqn, values) -> list:
    """Applies the primitive of an equation, with the scopes and the source line of the equation."""
    with compat.context_of(eqn, keeps_line=False):
        return compat.bind(eqn.primitive, values.read(eqn.invars), eqn.params)


def _has_collectives(jaxpr) -> bool:
    return not COLLECTIVES.isdisjoint(compat.primitives_of(jaxpr))


def _without_calls(jaxpr, consts, *operands):
    """Evaluates a jaxpr. Calls that contain collectives disappear, so that their equations are equations of the caller."""
    values = _Values(jaxpr, [*consts, *operands])
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name in COLLECTIVES or not any(map(_has_collectives, _bodies(eqn))):
            results = _applied(eqn, values)
        elif name in compat.CALLS:
            called, constants = compat.open_jaxpr(eqn.params[compat.CALLS[name]])
            results = _without_calls(called, constants, *values.read(eqn.invars))
        else:
            raise TraceError(f"{compat.place_of((eqn.source_info,))}: {name}: must not contain collectives in scalide.jax.parallel. Move them out of the loop or "
                             "branch, or unroll the loop")  # fmt: skip
        values.write(eqn.outvars, results)
    return values.read(jaxpr.outvars)


def _bodies(eqn) -> list:
    """Returns all jaxprs in the parameters of an equation."""
    every = itertools.chain(*[value if isinstance(value, (list, tuple)) else (value,) for value in eqn.params.values()])
    return [value for value in every if hasattr(value, "eqns")]


class _Values:
    """The values of the variables of a jaxpr."""

    def __init__(self, jaxpr, given):
        self.known = dict(zip([*jaxpr.constvars, *jaxpr.invars], given))

    def read(self, variables) -> list:
        return [each.val if isinstance(each, compat.Literal) else self.known[each] for each in variables]

    def write(self, variables, results) -> None:
        self.known.update(zip(variables, results))


class _Phases:
    """The equations of a jaxpr by phase: 0, 2, 4 and so on are collectives, and 1, 3, 5 and so on the parts between them. Each equation is in the
    first phase of its kind in which its operands are there."""

    def __init__(self, jaxpr):
        self.jaxpr = jaxpr
        self.equations: dict[int, list] = {}
        phase_of: dict = {}
        for eqn in jaxpr.eqns:
            ready = max((phase_of.get(variable, 0) for variable in _variables(eqn.invars)), default=0)
            phase = ready + (ready % 2 == (eqn.primitive.name in COLLECTIVES))
            self.equations.setdefault(phase, []).append(eqn)
            phase_of.update(dict.fromkeys(eqn.outvars, phase))

    def borders(self, number: int) -> tuple[list, list]:
        """Returns the variables that a phase reads and does not compute, and those that it computes and others read."""
        own = self.equations[number]
        made = dict.fromkeys(variable for eqn in own for variable in eqn.outvars)
        read = dict.fromkeys(variable for eqn in own for variable in _variables(eqn.invars))
        others = {variable for phase, each in self.equations.items() if phase != number for eqn in each for variable in _variables(eqn.invars)}
        others.update(_variables(self.jaxpr.outvars))
        return [variable for variable in read if variable not in made], [variable for variable in made if variable in others]


def _variables(each) -> list:
    return [variable for variable in each if not isinstance(variable, compat.Literal)]
