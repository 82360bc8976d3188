"""Debug callbacks in scalified functions. Their operands become results of the library, and the host calls them after the run."""
import jax

from . import compat

_DEBUG = ("debug_callback", "debug_print")


def expose_callbacks(fn, jaxpr, shapes):
    """Returns a function that returns the results of `fn` and the operands of its callbacks, and the list of callbacks. Tracing fills the list.

    Args:
        fn: The function.
        jaxpr: The closed jaxpr of fn.
        shapes: The shapes of the results of fn.
    """
    callbacks = []
    if not _mentions(jaxpr.jaxpr):
        return (lambda *args, **kwargs: (fn(*args, **kwargs), [])), callbacks

    def exposed(*args, **kwargs):
        callbacks.clear()
        values = []

        def meet(callback, operands):
            callbacks.append(callback)
            values.append(operands)

        results = _evaluate(jaxpr.jaxpr, jaxpr.consts, jax.tree_util.tree_leaves((args, kwargs)), meet)
        return jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(shapes), results), values

    return exposed, callbacks


def _inner(equation):
    """Returns the jaxpr that an equation calls, or None."""
    for name in ("jaxpr", "call_jaxpr", "fun_jaxpr"):
        if name in equation.params:
            return equation.params[name]
    return None


def _open(jaxpr):
    return (jaxpr.jaxpr, jaxpr.consts) if hasattr(jaxpr, "consts") else (jaxpr, [])


def _mentions(jaxpr):
    return any(e.primitive.name in _DEBUG or (_inner(e) is not None and _mentions(_open(_inner(e))[0])) for e in jaxpr.eqns)


def _evaluate(jaxpr, constants, arguments, meet):
    values = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*constants, *arguments)))

    def read(atom):
        return atom.val if hasattr(atom, "val") else values[atom]

    for equation in jaxpr.eqns:
        operands, inner = [read(atom) for atom in equation.invars], _inner(equation)
        if equation.primitive.name in _DEBUG:
            meet(compat.debug_callback_of(equation), operands)
            continue
        if inner is not None and _mentions(_open(inner)[0]):
            results = _evaluate(*_open(inner), operands, meet)
        else:
            bound = equation.primitive.get_bind_params(equation.params)
            functions, parameters = bound if isinstance(bound, tuple) else ((), bound)  # a pair before JAX 0.7
            results = equation.primitive.bind(*functions, *operands, **parameters)
            results = results if equation.primitive.multiple_results else [results]
        values.update(zip(equation.outvars, results))
    return [read(atom) for atom in jaxpr.outvars]
