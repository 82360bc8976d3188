"""Every rule of jax/primitives*.py once with symbolic extents: what it makes is a program that the tool reads, of the same shapes."""
import os
import subprocess

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax
from jax._src.lax import lax as lax_internal  # comparisons in a total order have no public name
from jax.extend.random import threefry2x32_p

import scalide
import scalide.jax
from scalide.jax import compat, trace
from scalide.jax.primitives import ELEMENTWISE, RULES

B, N = export.symbolic_shape("b, n")
X, Y = jax.ShapeDtypeStruct((N, 6), jnp.float32), jax.ShapeDtypeStruct((B, 6), jnp.float32)
I, U, P = (jax.ShapeDtypeStruct((N, 6), dtype) for dtype in (jnp.int32, jnp.uint32, jnp.bool_))
SOURCES = jax.ShapeDtypeStruct((B,), jnp.int32)
IMAGES = jax.ShapeDtypeStruct((N, 8, 8, 3), jnp.float32)

#: Elementwise operators of other operands than floats.
OF_INTEGERS = "and clz not or population_count shift_left shift_right_arithmetic shift_right_logical xor".split()
TERNARY = {"clamp": lambda x: lax.clamp(0.0, x, 1.0), "select_n": lambda x: lax.select_n(x > 0, x, x), 
           "regularized_incomplete_beta": lambda x: lax.betainc(x, x, x)}  # fmt: skip
LAX_NAMES = {"and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "not": "bitwise_not"}
BINARY = "add atan2 div eq ge gt igamma igammac le lt max min mul ne nextafter polygamma pow rem sub zeta and or shift_left shift_right_arithmetic " \
         "shift_right_logical xor".split()  # fmt: skip


def elementwise(name):
    if name in TERNARY:
        return TERNARY[name]
    of_lax = getattr(lax, LAX_NAMES.get(name, name))
    return (lambda x: of_lax(x, x)) if name in BINARY else of_lax


def windows(x):
    largest = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2), (1, 2), "VALID")
    smallest = lax.reduce_window(x, jnp.inf, lax.min, (2, 2), (1, 1), "SAME")
    return largest, smallest, lax.reduce_window(x, 0.0, lax.add, (1, 3), (1, 1), "SAME")


def by_program(a, b):
    return a * b + a


def checkpointed(x):
    return jax.grad(lambda x: jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)))(x).sum())(x)


@jax.custom_vjp
def halved(x):
    return x / 2


halved.defvjp(lambda x: (x / 2, None), lambda _, g: (g,))


def scatters(x, i):
    updates = jnp.ones((*i.shape, 6), x.dtype)
    return [getattr(x.at[i], name)(updates) for name in ("set", "add", "multiply", "min", "max")]


#: Primitives that earlier versions of JAX do not have.
NEW = {name for name in ("log2", "one_minus_square", "polynomial") if not hasattr(lax, name)}

CASES = {
    **{f"elementwise.{name}": (elementwise(name), U if name in OF_INTEGERS else X) for name in ELEMENTWISE if name not in {"square", "exp2"} | NEW},
    "polynomial": (lambda x: x if NEW else lax.polynomial(x, [1.0, x, 3.0]), X),
    "add_any": (jax.grad(lambda x: (jnp.sin(x) + jnp.cos(x) * x).sum()), X),
    "square": (lambda x: jnp.square(jnp.exp2(x)), X),
    "total_order": (lambda x: [of_lax.bind(x, x) for of_lax in (lax_internal.eq_to_p, lax_internal.le_to_p, lax_internal.lt_to_p)], X),
    "nextafter": (lambda x: lax.nextafter(x, x), X),
    "nextafter.bf16": (lambda x: lax.nextafter(x.astype(jnp.bfloat16), x.astype(jnp.bfloat16)), X),
    "pow": (lambda x: (lax.pow(x, x), x**3, jnp.round(x), lax.reduce_precision(x, 8, 7)), X),
    "convert": (lambda x: (x.astype(jnp.int32), x.view(jnp.int32), lax.stop_gradient(x), jnp.copy(x), jax.device_put(x)), X),
    "barrier": (lambda x: lax.optimization_barrier((x, x)), X),
    "movement": (lambda x: (x.T, x[::-1], jnp.squeeze(x[:, :1], 1), x[1:, ::2], x.reshape(-1), jnp.pad(x, ((1, 2), (0, 3)))), X),
    "reshape.order": (lambda x: lax.reshape(x, (6 * x.shape[0],), dimensions=(1, 0)), X),
    "concatenate": (lambda x, y: jnp.concatenate([x, y, x], 0), X, Y),
    "concatenate.gradient": (jax.grad(lambda x, y: jnp.sin(jnp.concatenate([x, y, x], 0)).sum(), (0, 1)), X, Y),
    "split": (lambda x, y: lax.split(jnp.concatenate([x, y]), (x.shape[0], y.shape[0])) if hasattr(lax, "split") else x, X, Y),
    "stack": (lambda x: (jnp.stack([x, x], 1), *jnp.unstack(x, axis=1)) if hasattr(jnp, "unstack") else jnp.stack([x, x]), X),
    "tile": (lambda x: jnp.tile(x, (2, 3)), X),
    "sources": (lambda x: (lax.iota(jnp.int32, x.shape[0]), jnp.empty(x.shape), jnp.zeros(x.shape), jnp.eye(x.shape[0], 6)), X),
    "size": (lambda x: x.mean(0) + jnp.float32(x.shape[0]), X),
    "reductions": (lambda x: (x.sum(0), x.max(1), x.min(0), x.prod(1), jnp.argmax(x, 0), jnp.argmin(x, 1)), X),
    "reductions.bool": (lambda p: (p.all(0), p.any(1)), P),
    "reductions.xor": (lambda u: lax.reduce_xor(u, (1,)) if hasattr(lax, "reduce_xor") else lax.reduce(u, np.uint32(0), lax.bitwise_xor, (1,)), U),
    "scans": (lambda x: [scan(x, axis=axis) for scan in (lax.cumsum, lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp) for axis in (0, 1)], X),
    "collectives": (jax.vmap(lambda row: (lax.psum(row, "i"), lax.pmax(row, "i"), lax.pmin(row, "i")), axis_name="i"), X),
    "reduce": (lambda x: lax.reduce(x, jnp.float32(1), by_program, (1,)), X),
    "calls": (lambda x: (jax.nn.relu(x), jax.jit(jnp.sin)(x), halved(x), checkpointed(x)), X),
    "loops": (lambda x: (lax.scan(lambda c, r: (c + r, c), x[:, 0], x.T), lax.fori_loop(0, 3, lambda i, c: c * i, x)), X),
    "while": (lambda x: lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0] * 2, c[1] + 1), (x, 0))[0], X),
    "cond": (lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), X),
    "platform": (lambda x: lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos), X),
    "dot": (lambda x, y: (x @ y.T, jnp.einsum("nk,bk->nb", x, y), jax.vmap(jnp.dot)(x, x)), X, Y),
    "convolution": (lambda x: lax.conv_general_dilated(x, jnp.ones((3, 3, 3, 5)), (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")), IMAGES),
    "convolution.gradient": (jax.grad(lambda x: lax.conv_general_dilated(x, jnp.ones((3, 3, 3, 5)), (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
                                      .sum()), IMAGES),  # fmt: skip
    "windows": (windows, X),
    "windows.gradient": (jax.grad(lambda x: windows(x)[0].sum()), X),
    "windows.second": (lambda x: jax.jvp(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2), (1, 2), "VALID"), (x,), (x,)), X),
    "windows.program": (lambda x: lax.reduce_window(x, jnp.float32(1), by_program, (1, 2), (1, 2), "VALID"), X),
    "indexing": (lambda x, i: (x[i], jnp.take(x, i, axis=0, mode="fill"), x[i, 2], *scatters(x, i)), X, SOURCES),
    "indexing.gradient": (jax.grad(lambda x, i: jnp.sin(x.at[i].max(2.0)).sum() + (x[i] ** 2).sum() + x.at[i].multiply(3.0).sum()), X, SOURCES),
    "scatter_sub": (lambda x, i: x.at[i].subtract(1.0) if hasattr(x.at[i], "subtract") else x.at[i].add(-1.0), X, SOURCES),
    "dynamic": (lambda x, i: (lax.dynamic_slice(x, (i[0, 0], i[0, 1]), (1, 2)), lax.dynamic_update_slice(x, x[:1], (i[0, 0], 0))), X, I),
    "sorting": (lambda x: (jnp.sort(x, 0), jnp.argsort(x, 1), lax.top_k(x, 2), lax.approx_max_k(x, 2)), X),
    "random": (lambda x: jax.random.normal(jax.random.key(0), x.shape), X),
    "random.keys": (lambda x: jax.random.uniform(jax.random.fold_in(jax.random.split(jax.random.key(0), 3)[1], 7), x.shape), X),
    "random.wrap": (lambda u: jax.random.bits(jax.random.wrap_key_data(u[0, :2]), (u.shape[0],)), U),
    "random.many": (lambda u: jax.vmap(lambda k: jax.random.bits(jax.random.fold_in(jax.random.wrap_key_data(k), 3), (4,)))(u[:, :2]), U),
    "random.clone": (lambda u: jax.random.key_data(jax.random.clone(jax.random.wrap_key_data(u[0, :2]))) + u[:, :2], U),
    "debug": (lambda x: (jax.debug.print("{}", x), x)[1], X),
    "random.words": (lambda u: lax.concatenate(threefry2x32_p.bind(u[0], u[1], u[2], u[3]), 0), U),
}  # fmt: skip


#: What no function above makes: primitives of other versions of JAX, identities of devices, and products that JAX has for GPUs alone.
#: Extended dtypes are in test_jax_fp8.py.
NOT_HERE = set("""checkpoint closed_call composite copy_p core_call custom_vjp_call_jaxpr dce_sink debug_callback empty empty2 ffi_call from_edtype
    pbroadcast pjit pvary remat scaled_matmul scaled_matmul_wrapper sharding_constraint tie to_edtype layout_constraint relayout reshard
    reduced_vary_cast vary_unreduced_cast with_memory_space_constraint iota_2x32_shape""".split()) | NEW


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:.*is ignored, because")
def test_rules_with_symbolic_extents(name, partitionable, tmp_path):
    fn, *shapes = CASES[name]
    program = trace(fn, *shapes)
    file = tmp_path / "program.scl"
    file.write_text(program.text)
    told = subprocess.run([os.environ["SCALIDE_TOOL"], "inspect", file], text=True, capture_output=True)
    assert told.returncode == 0, told.stderr


@pytest.mark.skipif(jax.__version_info__ < (0, 10), reason="earlier versions make other primitives of the same functions")
def test_each_rule_is_among_them(partitionable):
    reached = set()
    for fn, *shapes in CASES.values():
        reached |= compat.primitives_of(jax.make_jaxpr(fn)(*shapes))
    ours = {name for name, rule in RULES.items() if rule.__module__.startswith(("scalide.jax.primitives", "scalide.jax.loops"))}
    assert (ours - reached) ^ NOT_HERE <= {"empty"}  # JAX 0.12 makes it


def test_gradient_of_a_concatenation_along_symbols():
    """Of other extents in every call."""

    def gradient(x, y):
        return jax.grad(lambda x, y: jnp.sum(jnp.sin(jnp.concatenate([x, y, 2 * x], 0))), (0, 1))(x, y)

    library = scalide.build(trace(gradient, X, Y))
    for n, b in ((2, 4), (5, 1), (1, 3), (1, 1)):
        x, y = (np.random.default_rng(n).normal(size=(rows, 6)).astype(np.float32) for rows in (n, b))
        for got, want in zip(library(x, y), gradient(x, y), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
