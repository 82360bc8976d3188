"""JAX as the oracle: functions as one program, forward and gradient, beside jax.jit on the CPU. Operators are put together so that a build
compiles many at once.

Each element is judged by what roundings make of it: how far that of JAX moves when the float arguments do, by a rounding or two each (Monte
Carlo arithmetic: Parker, Pierce, Eggert, "Monte Carlo arithmetic: how to gamble with floating point and win", 2000). That has what cancels,
and JAX's own roundings on the way, as those change too."""
import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import Phase, settings

import scalide
import scalide.jax

RUNS = 8  #: with moved arguments: the largest of 8 numbers of a normal distribution is hardly ever below an eighth of its deviation
STEP = 2  #: how far those move, in units in the last place of 1
SPREADS = 8  #: for that, and for roundings on the way: JAX rounds after each operation, we where values are stored
ULPS = 4  #: of the result itself: a function is within 2 ulp here, and within 2 in JAX

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


def moved(leaf, run: int):
    """Floats by STEP units to either side, equal magnitudes to the same side, so that what is equal stays so. Those of 8 bits are codes."""
    dtype = jnp.asarray(leaf).dtype
    if not is_float(leaf) or dtype.itemsize == 1:
        return leaf
    exact = np.asarray(leaf, np.float64)
    mantissa, _ = np.frexp(np.abs(exact))
    side = np.where(np.modf(mantissa * 7919.0 * (2 * run + 1))[0] < 0.5, 1, -1)
    with np.errstate(invalid="ignore"):
        return (exact * (1 + side * STEP * float(jnp.finfo(dtype).eps))).astype(dtype)


def errors(fn, args, want) -> list:
    """How far each element of the leaves of `want`, which is fn(*args), may be off: SPREADS times as far as it moves with the arguments."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(want)]
    furthest = [np.zeros(leaf.shape) for leaf in leaves]
    for run in range(RUNS):
        args_moved = jax.tree.map(lambda leaf: moved(leaf, run), args)
        for i, leaf in enumerate(jax.tree.leaves(fn(*args_moved))):
            if is_float(leaves[i]):
                with np.errstate(invalid="ignore"):
                    off = np.abs(np.asarray(leaf, np.float64) - leaves[i].astype(np.float64))
                furthest[i] = np.fmax(furthest[i], np.where(np.isfinite(off), off, 0))
    return [SPREADS * each for each in furthest]


def differs(got, want, error=0.0, ulps=ULPS) -> str:
    """How two arrays differ, where an element may be off by `error` and by `ulps` of its own; nothing when they do not."""
    got, want = np.asarray(got), np.asarray(want)
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"{got.dtype}{got.shape} for {want.dtype}{want.shape}"
    if not is_float(want):
        return "" if (got == want).all() else f"{np.count_nonzero(got != want)} of {got.size} elements"
    a, b = got.astype(np.float64), want.astype(np.float64)
    known = np.isfinite(b)
    if not (np.isnan(a) == np.isnan(b)).all() or not (a[~known & ~np.isnan(b)] == b[~known & ~np.isnan(b)]).all():
        return f"NaN or infinity: {a[~known][:3]} for {b[~known][:3]}, {a[known & ~np.isfinite(a)][:3]} for finite ones"
    format = jnp.finfo(want.dtype)
    allowed = ulps * float(format.eps) * np.maximum(np.abs(b), float(format.smallest_normal)) + error
    wrong = np.abs(np.subtract(a, b, where=known, out=np.zeros(b.shape))) > allowed
    if not wrong.any():
        return ""
    place = np.unravel_index(np.argmax(wrong), wrong.shape)
    return f"{np.count_nonzero(wrong)} of {want.size} elements, {place}: {a[place]:.9g} for {b[place]:.9g} +- {allowed[place]:.1e}"


def check(cases: dict, gradient: bool = True, ulps: float = ULPS, seed: int = 0) -> None:
    """`cases` maps a name to (fn, args). All as one program; an AssertionError names each that differs."""
    generator = np.random.default_rng(seed)
    cases = {name: with_gradient(fn, args, generator) if gradient else (fn, args) for name, (fn, args) in cases.items()}

    def program(arguments):
        return {name: fn(*arguments[name]) for name, (fn, _) in cases.items()}

    arguments = {name: tuple(args) for name, (_, args) in cases.items()}
    got = scalide.build(scalide.jax.trace(program, arguments))(arguments)
    jitted = jax.jit(program)
    want = jitted(arguments)
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(want)]
    found = map(differs, jax.tree.leaves(got), jax.tree.leaves(want), errors(jitted, (arguments,), want), [ulps] * len(paths))
    problems = [f"{path}: {difference}" for path, difference in zip(paths, found, strict=True) if difference]
    assert not problems, "\n".join(problems)
