"""Functions that exchange data between devices: the parts between collectives are libraries, and JAX runs the collectives."""
from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import tree_util

from ..build import build
from . import compat
from .call import call
from .trace import argument_names, trace
from .walk import TraceError

#: Primitives that exchange data between devices, of any version of JAX, and the number of a device.
COLLECTIVES = frozenset("""psum psum2 psum_invariant pmax pmin ppermute pbroadcast all_gather all_gather_invariant all_gather_reduced reduce_scatter
    unreduced_reduce_scatter all_to_all ragged_all_to_all pgather axis_index""".split())


def parallel(fn: Callable, *, numerics: Any = "f32", axes: str | Sequence[str] | None = None, **options) -> Parallel:
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
        axes: For a policy that keeps state between runs, such as f8_delayed: the axes of the mesh over which all devices use the same state, the
            maximum. The function then takes one more pytree after its arguments, at first the result of `init`, and returns a pair: its result, and
            the pytree for the next call.
        options: Further arguments of `scalide.build`.

    Raises, while JAX traces the function:
        TraceError: A collective is in a loop or a branch, or a part cannot become a program.
        ValueError: The policy keeps state between runs, and there are no axes.
    """
    return Parallel(fn, numerics, axes, options)


class Parallel:
    """A function that `parallel` returns."""

    def __init__(self, fn: Callable, numerics: Any, axes: str | Sequence[str] | None, options: dict):
        functools.update_wrapper(self, fn)
        if axes is not None:
            del self.__wrapped__  # the state is one more parameter
        self._fn, self._numerics, self._options = fn, numerics, options
        self._axes = (axes,) if isinstance(axes, str) else axes
        self._libraries: dict[str, Any] = {}

    def __call__(self, *args, **kwargs):
        if self._axes is None:
            return self._run(args, kwargs, None)[0]
        if not args or not isinstance(args[-1], dict):
            raise TypeError(f"{_name_of(self._fn)}: the last argument must be the state of policy {self._numerics}, a dict, got "
                            f"{type(args[-1]).__name__ if args else 'no argument'}. Start with init, and pass the returned state to the next call")  # fmt: skip
        result, _, state = self._run(args[:-1], kwargs, args[-1])
        return result, _largest(state, tuple(self._axes))

    def init(self, *args, **kwargs) -> dict:
        """Returns the state that the policy needs for the first call. It takes the arguments of the function, also in `jax.shard_map`."""
        return self._run(args, kwargs, None)[1]

    def _run(self, args, kwargs, state):
        """Returns the result, the state before the run and the state after it. No state: the first one."""
        leaves, structure = tree_util.tree_flatten((args, kwargs))
        results = []

        def of_leaves(*leaves):
            args, kwargs = tree_util.tree_unflatten(structure, leaves)
            flat, tree = tree_util.tree_flatten(self._fn(*args, **kwargs))
            results.append(tree)
            return flat

        traced = jax.make_jaxpr(of_leaves)(*leaves)
        flat = jax.make_jaxpr(functools.partial(_without_calls, traced.jaxpr, traced.consts))(*leaves)
        names = dict(zip(flat.jaxpr.invars, argument_names(self._fn, args, kwargs)))
        phases, values = _Phases(flat.jaxpr), _Values(flat.jaxpr, [*flat.consts, *leaves])
        before, after = {}, {}
        for number, equations in sorted(phases.equations.items()):
            if number % 2 == 0 or all(eqn.primitive.name in compat.TYPES for eqn in equations):
                values.run(equations)
                continue
            inputs, outputs = phases.borders(number)
            own = _distinct([names.get(each, "value") for each in inputs])
            library = self._library(compat.part_of(flat.jaxpr, inputs, outputs, equations), own, f"{_name_of(self._fn)}_{number // 2}")
            made, operands = call(library), dict(zip(own, values.read(inputs)))
            first = library.init()
            if first and self._axes is None:
                raise ValueError("scalide.jax.parallel: axes must name the axes of the mesh over which devices share the state of policy "
                                 f"{self._numerics}, such as {', '.join(list(first)[:2])}, got None. Pass axes=\"data\", or choose a policy without state")  # fmt: skip
            if first:
                before[library.name] = {name: jnp.asarray(array) for name, array in first.items()} if state is None else state[library.name]
                made, after[library.name] = made(before[library.name], **operands)
            else:
                made = made(**operands)
            values.write(outputs, map(compat.varying_like, made, outputs))
        return tree_util.tree_unflatten(results[0], values.read(flat.jaxpr.outvars)), before, after

    def _library(self, part, names: list[str], name: str):
        """Returns the library of a part, which takes arrays with these names."""
        key = f"{part} {names}"
        if key in self._libraries:
            return self._libraries[key]

        def of_part(**operands):
            values = _Values(part, [operands[each] for each in names])
            values.run(part.eqns)
            return values.read(part.outvars)

        shapes = {each: jax.ShapeDtypeStruct(variable.aval.shape, variable.aval.dtype) for each, variable in zip(names, part.invars)}
        library = build(trace(of_part, **shapes, name=name), numerics=self._numerics, **self._options)
        self._libraries[key] = library
        return library


def _largest(state: dict, axes: tuple) -> dict:
    """Returns the maximum of each float array over the devices, by one collective. Other state, such as a number of steps, is the same on all."""
    leaves, structure = tree_util.tree_flatten(state)
    floats = [leaf for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating)]
    if not floats:
        return state
    joined = jax.lax.pmax(compat.varying_over(jnp.concatenate([leaf.astype(jnp.float32).ravel() for leaf in floats]), axes), axes)
    parts = iter(jnp.split(joined, np.cumsum([leaf.size for leaf in floats])[:-1]))
    return tree_util.tree_unflatten(structure, [next(parts).reshape(leaf.shape).astype(leaf.dtype) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf
                                                for leaf in leaves])  # fmt: skip


def _distinct(names: list[str]) -> list[str]:
    """Gives a number to each name that another array or a keyword of `trace` has, too."""
    taken = [*names, *inspect.signature(trace).parameters]
    return [name if taken.count(name) == 1 else f"{name}.{place}" for place, name in enumerate(names)]


def _name_of(fn) -> str:
    return getattr(fn, "__name__", type(fn).__name__).strip("<>")


def _has_collectives(jaxpr) -> bool:
    return not COLLECTIVES.isdisjoint(compat.primitives_of(jaxpr))


def _without_calls(jaxpr, consts, *operands):
    """Evaluates a jaxpr. Calls that contain collectives disappear, so that their equations are equations of the caller."""
    values = _Values(jaxpr, [*consts, *operands])
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if name in COLLECTIVES or not any(map(_has_collectives, compat.bodies_of(eqn))):
            values.run([eqn])
        elif name in compat.CALLS:
            called, constants = compat.open_jaxpr(eqn.params[compat.CALLS[name]])
            values.write(eqn.outvars, _without_calls(called, constants, *values.read(eqn.invars)))
        else:
            raise TraceError(f"{compat.place_of((eqn.source_info,))}: {name}: must not contain collectives in scalide.jax.parallel. Move them out of the loop or "
                             "branch, or unroll the loop")  # fmt: skip
    return values.read(jaxpr.outvars)


class _Values:
    """The values of the variables of a jaxpr."""

    def __init__(self, jaxpr, given):
        self.known = dict(zip([*jaxpr.constvars, *jaxpr.invars], given))

    def read(self, variables) -> list:
        return [each.val if isinstance(each, compat.Literal) else self.known[each] for each in variables]

    def write(self, variables, results) -> None:
        self.known.update(zip(variables, results))

    def run(self, equations) -> None:
        """Computes equations, each with its scopes and its source line."""
        for eqn in equations:
            with compat.context_of(eqn, keeps_line=False):
                self.write(eqn.outvars, compat.bind(eqn.primitive, self.read(eqn.invars), eqn.params))


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
