"""Drawn compositions of JAX functions as users write them: an operator with loops of its own, then what reads its result. A composition is the
source text of a Python function, so that a failure can be read and shortened line by line.

`python compositions.py` is a process that judges compositions: one of JSON a line comes in, one verdict goes out, empty where the library of Scalide
agrees with JAX. A kernel that dies takes this process along, and the test that asked for the verdict goes on."""
from __future__ import annotations

import dataclasses
import json
import random
import re
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from oracle import differs, errors, is_float

import scalide
import scalide.jax

PANELS = [1, 3, 17, 63, 64, 65, 100, 127, 129, 200, 257]  #: below, at and above one panel of a matmul, and several
MOST_ELEMENTS = 70_000
OFFSETS = [1, 2, 16, 63, 64, 80, 100]
MASKED = ["0.0", "0.0", "2.5", "-1e9"]  #: what a select by coordinates puts in the place of an element

# Shapes of new arguments: a negative number is an axis of g, a positive one an extent, None a drawn extent, ALL the shape of g.
ALL = "all"
#: By name: the rank of the argument x, and ways to write it, each with the shapes of its new arguments.
KINDS = {
    "matmul": (2, [("g @ {0}", [(-1, None)]), ("jnp.dot(g, {0}) + {1}", [(-1, None), (1,)])]),
    "batched": (3, [("jax.vmap(jnp.matmul)(g, {0})", [(-3, -1, None)]), ("jnp.einsum('bik,bkj->bij', g, {0})", [(-3, -1, None)])]),
    "transposed": (2, [("jnp.swapaxes(g, -1, -2) @ {0}", [(-2, None)]), ("(g.mT @ {0}).mT", [(-2, None)])]),
    "scores": (2, [("g @ g.mT", []), ("jnp.einsum('...ik,...jk->...ij', g, g) / 8", [])]),
    "batched scores": (3, [("g @ g.mT", []), ("jax.vmap(lambda q: q @ q.T)(g)", [])]),
    "convolution": (3, [("lax.conv_general_dilated(g, {0}, (1,), 'SAME', dimension_numbers=('NWC', 'WIO', 'NWC'))", [(3, -1, None)])]),
    "image convolution": (4, [("lax.conv_general_dilated(g, {0}, (1, 1), 'SAME', dimension_numbers=('NHWC', 'HWIO', 'NHWC'))", [(3, 3, -1, None)])]),
    "softmax": (2, [("jax.nn.softmax(g, axis={axis})", []), ("jax.nn.log_softmax(g)", []), ("jnp.exp(g - jax.nn.logsumexp(g, -1, keepdims=True))", [])]),
    "norm": (2, [("(g - g.mean(-1, keepdims=True)) * lax.rsqrt(g.var(-1, keepdims=True) + 1e-5) * {0} + {1}", [(-1,), (-1,)]),
                 ("g * lax.rsqrt(jnp.mean(g * g, -1, keepdims=True) + 1e-6) * {0}", [(-1,)])]),
    "map": (2, [("jnp.tanh(g)", []), ("jax.nn.gelu(g)", []), ("jax.nn.silu(g) * g", [])]),
    "gather": (2, [("jnp.take(g, jnp.array([0, 2, 1, 0]), axis={axis}, mode='clip')", []), ("g[..., jnp.array([0, 0])]", [])]),
    "scan": (2, [("jnp.cumsum(g, {axis})", []), ("lax.cummax(g, g.ndim - 1)", [])]),
    "sort": (2, [("jnp.sort(g, {axis})", [])]),
    "pool": (2, [("lax.reduce_window(g, -jnp.inf, lax.max, (1,) * (g.ndim - 2) + (3, 3), (1,) * g.ndim, 'SAME')", []),
                 ("lax.reduce_window(g, 0.0, lax.add, (1,) * (g.ndim - 1) + (3,), (1,) * g.ndim, 'SAME')", [])]),
    "transposition": (2, [("jnp.swapaxes(g, -1, -2)", [])]),
    "attention": (4, [("jax.nn.dot_product_attention(g, {0}, {1})", [ALL, ALL]), ("jax.nn.dot_product_attention(g, g, {0}, is_causal=True)", [ALL])]),
    "causal attention": (2, [("jax.nn.softmax(jnp.where({i} >= {j}, {0} @ g.mT, -jnp.inf)) @ g", [ALL])]),
}  # fmt: skip
ROWS = ["lax.broadcasted_iota(jnp.int32, {of}.shape, {of}.ndim - 2)", "jnp.arange({of}.shape[-2])[:, None]"]
COLUMNS = ["lax.broadcasted_iota(jnp.int32, {of}.shape, {of}.ndim - 1)", "jnp.arange({of}.shape[-1])"]
EPILOGUES = {
    "tril": [("jnp.tril(g)", []), ("jnp.tril(g, {c})", [])],
    "triu": [("jnp.triu(g)", []), ("jnp.triu(g, -{c})", [])],
    "causal": [("jnp.where({i} >= {j}, g, {masked})", []), ("jnp.where({i} + {c} >= {j}, g, {masked})", [])],
    "rows": [("jnp.where({i} >= {c}, g, {masked})", []), ("jnp.where({i} < {c}, g, {0})", [ALL])],
    "columns": [("jnp.where({j} >= {c}, g, {masked})", []), ("g * ({j} < {c})", [])],
    "eye": [("jnp.where(jnp.eye(*g.shape[-2:], dtype=bool), g, {masked})", []), ("jnp.where({i} == {j}, jnp.tanh(g), g)", [])],
    "band": [("jnp.where(jnp.abs({i} - {j}) <= {c}, g, {masked})", [])],
    "checkerboard": [("jnp.where(({i} + {j}) % 2 == 0, g, {masked})", [])],
    "blocks": [("jnp.where({i} // {c} == {j} // {c}, g, {masked})", []), ("jnp.where({i} < {j} // {c}, {masked}, g)", [])],
    "steps": [("jnp.where(({j} >> 4) > ({i} >> 5), g, {masked})", [])],
    "finite": [("jnp.where(jnp.isfinite(g).all(), g, 0)", []), ("jnp.where(jnp.isfinite(g).all(), {0} - 0.1 * g, {0})", [ALL])],
    "predicate": [("jnp.where(g.sum() > 0, g * 2, g)", []), ("jnp.where((g > 1).any(), g, jnp.tanh(g))", []), ("jnp.where(jnp.abs(g).max() < 1e3, g, x.sum())", [])],
    "cond": [("lax.cond(g.sum() > 0, lambda g: g * 2, lambda g: g - 1, g)", []), ("lax.cond(jnp.max(g) > 1, jnp.tanh, jnp.zeros_like, g)", []),
             ("lax.cond(jnp.isfinite(g).all(), lambda g: g @ {0}, jnp.zeros_like, g)", [(-1, -1)])],
    "clip": [("jnp.clip(g, -0.75, 1.5)", []), ("jnp.minimum(jnp.maximum(g, -1), {0})", [ALL])],
    "clip by norm": [("g * jnp.minimum(1, 1 / jnp.sqrt(jnp.sum(g * g)))", []),
                     ("jnp.where(jnp.linalg.norm(g.reshape(-1)) < 1, g, g / jnp.linalg.norm(g.reshape(-1)))", [])],
    "standardise": [("(g - g.mean()) / g.std()", []), ("g / jnp.max(jnp.abs(g))", []), ("(g - g.mean(0)) / jnp.sqrt(g.var(0) + 1e-5)", [])],
    "skip": [("g + {0}", [ALL]), ("g + jnp.tanh(g)", [])],
    "cast": [("g.astype(jnp.bfloat16).astype(jnp.float32)", []), ("g.astype(jnp.float16).astype(jnp.float32)", []),
             ("g.astype(jnp.float8_e4m3fn).astype(jnp.float32)", [])],
    "concatenation": [("jnp.concatenate([g, -g], {axis})", []), ("jnp.concatenate([{0}, g, g], {axis})", [ALL]), ("jnp.stack([g, {0}]).sum(0)", [ALL])],
}  # fmt: skip
REDUCTIONS = ["g.sum()", "g.max()", "g.min()", "jnp.abs(g).sum()", "jnp.sqrt(jnp.sum(g * g))", "g.mean()", "jnp.argmax(g)", "(g > 1).any()",
              "(g < 3).all()", "jnp.isfinite(g).all()", "g.sum(-1)", "g.max(-1)", "g.sum(0)", "(g * g).mean(0)", "g"]  # fmt: skip
NUMERICS = ["f32", "f32", "bf16", "f8_master"]


@dataclasses.dataclass
class Composition:
    seed: int
    symbols: dict = dataclasses.field(default_factory=dict)  #: by name: an extent
    arguments: dict = dataclasses.field(default_factory=dict)  #: by name: the shape as JAX writes it, such as "2*m, 17"
    lines: list = dataclasses.field(default_factory=list)
    results: list = dataclasses.field(default_factory=lambda: ["g"])
    gradient: bool = False
    numerics: str = "f32"
    symbolic: bool = False

    def used(self) -> list:
        """The names of arguments that the text has; a shorter composition may need fewer."""
        text = " ".join(["x", *self.lines, *self.results])
        return [name for name in self.arguments if re.search(rf"\b{name}\b", text)]

    def source(self) -> str:
        names = ", ".join(self.used())
        body = "".join(f"    g = {line}\n" for line in ["x", *self.lines])
        if not self.gradient:
            return f"def program({names}):\n{body}    return {', '.join(self.results)}\n"
        results = self.results if self.numerics == "f32" else self.magnitudes()
        terms = [f"jnp.square({result}).mean()" for result in results if not re.search("argmax|any|all", result)]
        terms += [f"jnp.square({name}).mean()" for name in self.used()]  # what cancels leaves gradients of this size, which errors are judged by
        loss = f"def loss({names}):\n{body}    return {' + '.join(terms)}\n"
        return f"{loss}\nprogram = jax.value_and_grad(loss, argnums={tuple(range(len(self.used())))})\n"

    def magnitudes(self) -> list:
        """The results with sums of magnitudes in the place of sums, in which terms of both signs may cancel."""
        return [re.sub(r"^g\.(sum|mean)", r"jnp.abs(g).\1", result) for result in self.results]

    def shape(self, name) -> tuple:
        return tuple(eval(extent, {}, self.symbols) for extent in self.arguments[name].split(","))

    def function(self):
        names = {"jax": jax, "jnp": jnp, "lax": lax}
        exec(self.source(), names)
        return names["program"]

    def arrays(self) -> list:
        """Weights are small, so that sums of products stay near 1."""
        draw = np.random.default_rng(self.seed)
        shapes = [self.shape(name) for name in self.used()]
        return [(draw.normal(size=shape) / np.sqrt(shape[-2] if len(shape) > 1 and i > 0 else 1)).astype(np.float32) for i, shape in enumerate(shapes)]

    def trace(self):
        symbolic = tuple(self.arguments[name] for name in self.used()) if self.symbolic else None
        return scalide.jax.trace(self.function(), *self.arrays(), symbolic=symbolic, name="composition")

    def exact(self) -> list:
        """The numbers that masks alone leave. What saturates or underflows makes zeros of its own, a narrow format any number."""
        text = " ".join(self.lines)
        if "astype" in text:
            return []
        saturates = self.gradient or re.search("tanh|gelu|silu|softmax|exp", text)
        return [number for number in map(float, MASKED) if number != 0 or not saturates]

    def bindings(self) -> list:
        """The composition, and a copy with other extents if it has symbols and its arrays stay small."""
        draw = random.Random(self.seed)
        other = dataclasses.replace(self, symbols={name: draw.choice(PANELS) for name in self.symbols})
        is_small = all(np.prod(other.shape(name)) <= MOST_ELEMENTS for name in other.arguments)
        return [self, other] if self.symbolic and self.symbols and is_small else [self]


def static(made: Composition) -> Composition:
    """The same with numbers in the place of symbols."""
    arguments = {name: ", ".join(map(str, made.shape(name))) for name in made.arguments}
    return dataclasses.replace(made, symbolic=False, symbols={}, arguments=arguments)


class Drawing:
    """A composition under construction. Stages that JAX refuses, or that make too large arrays, are drawn again."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.made = Composition(seed, numerics=self.random.choice(NUMERICS), symbolic=self.random.random() < 0.5)

    def extent(self) -> str:
        name, extent = self.random.choice("mnkt"), self.random.choice(PANELS)
        if not self.made.symbolic or self.random.random() < 0.3:
            return str(extent)
        self.made.symbols.setdefault(name, extent)
        return name

    def shape(self, made: Composition):
        """The shape of g, each extent as JAX writes it; None where JAX refuses the program, or where an array is too large."""
        whole = dataclasses.replace(made, results=["g"], gradient=False)
        given = [jax.ShapeDtypeStruct(made.shape(name), np.float32) for name in whole.used()]
        try:
            sizes = jax.eval_shape(whole.function(), *given).shape
            is_small = all(np.prod(shape) <= MOST_ELEMENTS for shape in [sizes, *map(made.shape, made.arguments)])
            if made.symbolic:
                from jax import export  # which needs absl in JAX 0.4.33

                given = export.symbolic_args_specs(given, [made.arguments[name] for name in whole.used()])
                sizes = jax.eval_shape(whole.function(), *given).shape
        except (TypeError, ValueError, IndexError):
            return None
        return tuple(map(str, sizes)) if is_small else None

    def begin(self, rank: int) -> None:
        front = [self.random.choice(extents) for extents in ("123", ["1", "7", "33", "65"], "124")]
        axes = front if rank == 4 else front[: rank - 2]
        axes += [self.extent() for _ in range(rank - len(axes))]
        self.made.arguments["x"] = ", ".join(axes)
        if np.prod(self.made.shape("x")) > MOST_ELEMENTS:
            self.made.symbols.clear()
            self.begin(rank)

    def argument(self, made: Composition, wanted, g) -> str:
        def extent(entry):
            return self.extent() if entry is None else str(entry) if entry > 0 else g[entry]

        name = "abcdefhijklmn"[len(made.arguments) - 1]
        made.arguments[name] = ", ".join(g if wanted == ALL else map(extent, wanted))
        return name

    def add(self, ways) -> bool:
        """Appends one of the ways to write a stage; False where none of a few fits."""
        g = self.shape(self.made)
        for _ in range(8):
            template, wanted = self.random.choice(ways)
            made = dataclasses.replace(self.made, arguments=dict(self.made.arguments), lines=list(self.made.lines))
            try:
                new = [self.argument(made, shape, g) for shape in wanted]
            except IndexError:  # g has fewer axes
                continue
            numbers = {"i": self.random.choice(ROWS).format(of="g"), "j": self.random.choice(COLUMNS).format(of="g"), "c": self.random.choice(OFFSETS),
                       "axis": self.random.randrange(-len(g), 0), "masked": self.random.choice(MASKED)}  # fmt: skip
            made.lines.append(template.format(*new, **numbers))
            if self.shape(made):
                self.made = made
                return True
        return False

    def add_epilogue(self) -> None:
        self.add(EPILOGUES[self.random.choice(list(EPILOGUES))])

    def take(self) -> Composition:
        """The seed chooses the pair of stages, so that consecutive seeds reach all of them."""
        seed, draw = self.made.seed, self.random
        rank, ways = list(KINDS.values())[seed % len(KINDS)]
        self.begin(rank)
        if draw.random() < 0.15:
            self.add_epilogue()
        if not self.add(ways):  # JAX takes some functions with static extents alone
            self.made = static(self.made)
            self.add(ways)
        epilogue = seed % (len(EPILOGUES) + 3)  # the others are two or three reductions, and a gradient
        if epilogue < len(EPILOGUES):
            self.add(list(EPILOGUES.values())[epilogue])
        if draw.random() < 0.25:
            self.add(draw.choice(list(KINDS.values()))[1])
        if draw.random() < 0.3:
            self.add_epilogue()
        if epilogue in (len(EPILOGUES), len(EPILOGUES) + 1) or draw.random() < 0.2:
            self.made.results = draw.sample(REDUCTIONS, draw.choice([2, 3]))
        self.made.gradient = epilogue == len(EPILOGUES) + 2 or draw.random() < 0.25
        return self.made


def draw(seed: int) -> Composition:
    return Drawing(seed).take()


#: In f32 what cancels inside (1 - tanh(x)^2, say) leaves errors of the size of other elements, which moved arguments alone do not show.
EPS_OF_LARGEST = 8


def is_masked(want, unmoved, exact):
    """Elements that have one of the numbers `exact`, whatever the arguments: no rounding may change them."""
    return unmoved & np.isin(want, np.float32(exact))


def errors_of_moved(want, ranges, exact):
    """The errors that an array may have which moves by `ranges` (oracle.errors): EPS_OF_LARGEST eps of the largest element more, but none where
    it is masked."""
    if not is_float(want) or not np.size(want):
        return ranges
    masked = is_masked(want, ranges == 0, exact)
    magnitudes = np.where(np.isfinite(want) & ~masked, np.abs(np.asarray(want, np.float64)), 0)
    return np.where(masked, 0, ranges + EPS_OF_LARGEST * float(jnp.finfo(want.dtype).eps) * magnitudes.max())


#: The largest relative error of rounding to the format of a matmul's operands, twice: bf16 keeps 8 bits of a number, e5m2, which f8_master has
#: for gradients, 3.
ROUNDING = {"bf16": 2.0**-8, "f8_master": 2.0**-2}
STORED = 2.0**-8  #: f8_master stores values between kernels in bf16
RUNS = 6
ALLOWANCE = 4  #: times how far JAX moves: every operand of every matmul rounds, and the arguments of RUNS runs alone do


def off(leaf, run: int, size: float):
    """Elements off by `size` of their own to a random side."""
    side = np.random.default_rng(run).choice([-1, 1], np.shape(leaf))
    return (np.asarray(leaf, np.float64) * (1 + size * side)).astype(np.asarray(leaf).dtype)


def differs_in_policy(got, want, runs, magnitude, exact) -> str:
    """A policy rounds operands, so an array is judged by its norm: the error may be ALLOWANCE times what the same rounding of the arguments does
    to JAX, and STORED of the magnitudes of which it is a sum. What no rounding moves is exact: the number that a mask leaves, a truth."""
    got, want, runs = np.asarray(got), np.asarray(want), [np.asarray(run) for run in runs]
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return f"{got.dtype}{got.shape} for {want.dtype}{want.shape}"
    same = np.all([(run == want) | ((run != run) & (want != want)) for run in runs], axis=0) if want.size else np.ones(want.shape, bool)
    if not is_float(want):
        wrong = same & (got != want) if want.dtype == bool else (got < 0)
        return f"{np.count_nonzero(wrong)} of {want.size} elements" if wrong.any() else ""
    masked = is_masked(want, same, exact)
    if (got != want)[masked].any():
        return f"{np.count_nonzero((got != want) & masked)} of {np.count_nonzero(masked)} masked elements, such as {got[(got != want) & masked][0]}"
    finite = np.all([np.isfinite(run) for run in runs], axis=0) & np.isfinite(want) if want.size else np.ones(want.shape, bool)
    if not np.isfinite(got[finite]).all():
        return f"{np.count_nonzero(~np.isfinite(got) & finite)} elements are not finite"
    a, b, others = (np.where(finite, leaf.astype(np.float64), 0) for leaf in (got, want, np.stack([*runs]) if runs else want))
    allowed = ALLOWANCE * max((np.linalg.norm(other - b) for other in others), default=0.0)
    allowed += STORED * np.linalg.norm(np.where(finite, np.asarray(magnitude, np.float64), 0))
    error = np.linalg.norm(a - b)
    return f"the norm of the error is {error:.3g} beside {np.linalg.norm(b):.3g} +- {allowed:.1g}" if error > allowed else ""


def judge(made: Composition) -> str:
    """How the library differs from JAX; empty where it does not."""
    library = scalide.build(made.trace(), numerics=made.numerics, jobs=1)
    return "".join(map(lambda bound: compare(library, bound), made.bindings()))


def compare(library, made: Composition) -> str:
    arrays, jitted = made.arrays(), jax.jit(made.function())
    got, want = jax.tree.leaves(library(*arrays)), jitted(*arrays)
    leaves, exact = jax.tree.leaves(want), made.exact()
    if made.numerics == "f32":
        ranges = errors(jitted, arrays, want)
        found = [differs(a, b, errors_of_moved(b, error, exact)) for a, b, error in zip(got, leaves, ranges, strict=True)]
    else:
        runs = zip(*(jax.tree.leaves(jitted(*(off(array, run, ROUNDING[made.numerics]) for array in arrays))) for run in range(RUNS)), strict=True)
        summed = jax.tree.leaves(jax.jit(dataclasses.replace(made, results=made.magnitudes()).function())(*arrays))
        found = [differs_in_policy(*four, exact) for four in zip(got, leaves, runs, summed, strict=True)]
    return "".join(f"differs at {made.symbols}, result {i}: {difference}\n" for i, difference in enumerate(found) if difference)


def is_valid(made: Composition) -> bool:
    """JAX takes the function."""
    try:
        jax.eval_shape(made.function(), *made.arrays())
    except (TypeError, ValueError, IndexError):
        return False
    return True


def shorter(made: Composition) -> list:
    """Compositions with a line, a result or the gradient less, with static extents, in f32."""
    found = [dataclasses.replace(made, lines=made.lines[:i] + made.lines[i + 1 :]) for i in reversed(range(len(made.lines)))]
    if len(made.results) > 1:
        found += [dataclasses.replace(made, results=made.results[:i] + made.results[i + 1 :]) for i in range(len(made.results))]
    if made.gradient:
        found.append(dataclasses.replace(made, gradient=False))
    if made.symbolic:
        found.append(static(made))
    if made.numerics != "f32":
        found.append(dataclasses.replace(made, numerics="f32"))
    return list(filter(is_valid, found))


def main() -> None:
    for line in sys.stdin:
        try:
            verdict = judge(Composition(**json.loads(line)))
        except Exception as error:  # all that a build says is a verdict
            verdict = f"{type(error).__name__}: {error}"
        print(json.dumps(verdict), flush=True)


if __name__ == "__main__":
    main()
