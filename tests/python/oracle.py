"""JAX as the oracle: functions as one program, forward and gradient, beside jax.jit on the CPU. Operators are put together so that a build
compiles many at once."""
import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import Phase, settings

import scalide
import scalide.jax

#: Relative to the largest element: JAX rounds after each operation, we where values are stored.
TOLERANCES = {"float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}

#: Few examples of many operators each; the same ones in every run.
few = settings(derandomize=True, max_examples=2, deadline=None, database=None, phases=[Phase.generate])


def is_float(tree) -> bool:
    """True for arrays, or nests of arrays, of floats."""
    return all(jnp.issubdtype(jnp.asarray(leaf).dtype, jnp.floating) for leaf in jax.tree.leaves(tree))


def with_gradient(fn, args, generator):
    """A function and arguments that give what `fn` gives, and its gradient with respect to every float argument."""
    floats = [i for i, arg in enumerate(args) if is_float(arg)]
    out = jax.eval_shape(fn, *args)
    is_smooth = floats and all(jnp.issubdtype(leaf.dtype, jnp.floating) for leaf in jax.tree.leaves(out))
    if not is_smooth:
        return fn, args
    cotangent = jax.tree.map(lambda leaf: jnp.asarray(generator.normal(size=leaf.shape), leaf.dtype), out)

    def both(cotangent, *args):
        def of_floats(*given):
            full = list(args)
            for i, value in zip(floats, given):
                full[i] = value
            return fn(*full)

        value, pull = jax.vjp(of_floats, *[args[i] for i in floats])
        return value, pull(cotangent)

    return both, (cotangent, *args)


def largest(array) -> float:
    """The largest magnitude of the finite elements."""
    array = np.asarray(array)
    array = np.abs(array.astype(np.float64)[np.isfinite(array.astype(np.float64))])
    return array.max() if array.size else 0.0


def differs(got, want, tolerance=None, beside=0.0) -> str:
    """How two arrays differ, relative to the largest element or to `beside`; nothing when they do not."""
    got, want = np.asarray(got), np.asarray(want)
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"{got.dtype}{got.shape} for {want.dtype}{want.shape}"
    if not is_float(want):
        return "" if (got == want).all() else f"{np.count_nonzero(got != want)} of {got.size} elements"
    a, b = got.astype(np.float64), want.astype(np.float64)
    known = np.isfinite(b)
    if not (np.isnan(a) == np.isnan(b)).all() or not (a[~known & ~np.isnan(b)] == b[~known & ~np.isnan(b)]).all():
        return f"NaN or infinity: {a[~known][:3]} for {b[~known][:3]}, {a[known & ~np.isfinite(a)][:3]} for finite ones"
    if not known.any():
        return ""
    error = np.max(np.abs(a[known] - b[known])) / max(largest(b), beside, 1e-30)
    return "" if error <= (tolerance or TOLERANCES[str(want.dtype)]) else f"by {error:.1e} of the largest element"


def check(cases: dict, gradient: bool = True, tolerance=None, seed: int = 0) -> None:
    """`cases` maps a name to (fn, args). All as one program; an AssertionError names each that differs."""
    generator = np.random.default_rng(seed)
    cases = {name: with_gradient(fn, args, generator) if gradient else (fn, args) for name, (fn, args) in cases.items()}

    def program(arguments):
        return {name: fn(*arguments[name]) for name, (fn, _) in cases.items()}

    arguments = {name: tuple(args) for name, (_, args) in cases.items()}
    got = scalide.build(scalide.jax.trace(program, arguments))(arguments)
    want = jax.jit(program)(arguments)
    problems = []
    for name in cases:
        leaves = jax.tree.leaves(want[name])
        beside = 1e-3 * max((largest(leaf) for leaf in leaves if is_float(leaf)), default=0.0)  # some gradients are 0 but for rounding
        for (path, a), b in zip(jax.tree_util.tree_leaves_with_path(got[name]), leaves):
            difference = differs(a, b, tolerance, beside)
            if difference:
                problems.append(f"{name}{jax.tree_util.keystr(path)}: {difference}")
    assert not problems, "\n".join(problems)
