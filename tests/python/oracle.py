"""JAX as the oracle: functions as one program, forward and gradient, beside jax.jit on the CPU. Operators are put together so that a build
compiles many at once.

Each element is judged by what roundings make of it: how far that of JAX moves when the float arguments do, by a rounding each (Monte Carlo
arithmetic: Parker, Pierce, Eggert, "Monte Carlo arithmetic: how to gamble with floating point and win", 2000). That has what cancels, and JAX's own
roundings on the way, as those change too."""
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import Phase, settings

import scalide
import scalide.jax
from scalide.arrays import numpy_dtype, read_safetensors, write_safetensors
from scalide.run_tool import run_tool

RUNS = 8  #: with arguments that are off by a unit in the last place of 1 to either side
#: How many ranges of the results of these runs a result may be off. The range of 9 normal numbers is 3 deviations, and hardly ever below 0.7.
#: Sums in f32 have more roundings than their arguments, and in another order; what is narrower is summed in f32.
RANGES, RANGES_OF_NARROW = 6, 2
ULPS = {4: 4, 2: 1}  #: By size, and how many ulp: a function is within 2 of f32 here and in JAX; what is narrower is rounded once.

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
    """Floats by a unit to either side, equal magnitudes to the same side, so that what is equal stays so. Those of 8 bits are codes."""
    dtype = jnp.asarray(leaf).dtype
    if not is_float(leaf) or dtype.itemsize == 1:
        return leaf
    exact = np.asarray(leaf, np.float64)
    mantissa = (np.frexp(np.nan_to_num(np.abs(exact), posinf=0.0))[0] * 2.0**24).astype(np.uint64)
    factor = np.random.default_rng(run).integers(2**63, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    with np.errstate(invalid="ignore", over="ignore"):
        side = np.where(mantissa * factor >> np.uint64(63), 1, -1)  # multiplicative hashing: Knuth, The Art of Computer Programming, 6.4
        return (exact * (1 + side * float(jnp.finfo(dtype).eps))).astype(dtype)


def errors(fn, args, want) -> list:
    """How far each element of the leaves of `want`, which is fn(*args), may be off: RANGES of its values at moved arguments."""
    results = [want, *(fn(*jax.tree.map(lambda leaf: moved(leaf, run), args)) for run in range(RUNS))]
    return [range_of(leaves) for leaves in zip(*map(jax.tree.leaves, results), strict=True)]


def range_of(leaves):
    """RANGES of each element that is finite in the first of some arrays."""
    if not is_float(leaves[0]):
        return 0.0
    ranges = RANGES if np.asarray(leaves[0]).dtype.itemsize > 2 else RANGES_OF_NARROW
    values = np.stack([np.asarray(leaf, np.float64) for leaf in leaves])
    values = np.where(np.isfinite(values), values, np.where(np.isfinite(values[0]), values[0], 0))
    return ranges * np.ptp(values, axis=0)


def differs(got, want, error=0.0, ulps=None) -> str:
    """How two arrays differ, where an element may be off by `error` and by `ulps` of its own (absent: ULPS); nothing when they do not."""
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
    ulps = ULPS.get(want.dtype.itemsize, 0) if ulps is None else ulps
    allowed = ulps * float(format.eps) * np.maximum(np.abs(np.where(known, b, 0)), float(format.smallest_normal)) + error
    wrong = np.abs(np.subtract(a, b, where=known, out=np.zeros(b.shape))) > allowed
    if not wrong.any():
        return ""
    place = np.unravel_index(np.argmax(wrong), wrong.shape)
    return f"{np.count_nonzero(wrong)} of {want.size} elements, {place}: {a[place]:.9g} for {b[place]:.9g} +- {allowed[place]:.1e}"


def interpreted(program, *args, mode="real"):
    """What the interpreter makes of a program: it runs loops step by step, and only the branch that is taken. Mode 'stored' rounds as the policy says."""
    with tempfile.TemporaryDirectory() as folder:
        leaves = program.flatten(args, {})
        arrays = {spec.name: np.asarray(leaf, numpy_dtype(spec.dtype)) for spec, leaf in zip(program.inputs, leaves, strict=True)}
        write_safetensors(f"{folder}/in", arrays)
        run_tool(program, "run", "-i", f"{folder}/in", "-o", f"{folder}/out", "--interpret", mode, "-n", program.policy)
        results = read_safetensors(f"{folder}/out")
    return program.unflatten([results[name] for name in program.results])


def check(cases: dict, gradient: bool = True, ulps=None, seed: int = 0) -> None:
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
