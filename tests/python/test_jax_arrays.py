"""Movement, reductions, scans and sorting, forward and gradient."""
import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from jax import lax
from oracle import check, few

extents = st.sampled_from([2, 3, 5, 8])
shapes = st.tuples(extents, extents, extents)
floats = st.sampled_from(["float32", "float16", "bfloat16"])


def normal(seed, shape, dtype="float32"):
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape), dtype)


@few
@given(shape=shapes, dtype=floats, seed=st.integers(0, 1000), axis=st.integers(0, 2), low=st.integers(-1, 2), high=st.integers(0, 2), interior=st.integers(0, 2))
def test_movement(shape, dtype, seed, axis, low, high, interior):
    x, row = normal(seed, shape, dtype), normal(seed + 1, shape[-1:], dtype)
    zero = jnp.zeros((), dtype)
    pads = [(0, 0, 0)] * 3
    pads[axis] = (low, high, interior)
    check({
        "transpose": (lambda x: lax.transpose(x, (2, 0, 1)), (x,)),
        "reshape": (lambda x: x.reshape(shape[0], -1), (x,)),
        "ravel": (lambda x: x.ravel(), (x,)),
        "rev": (lambda x: lax.rev(x, (axis,)), (x,)),
        "broadcast": (lambda r: jnp.broadcast_to(r, shape), (row,)),
        "add_row": (lambda x, r: x + r[None, None], (x, row)),
        "expand": (lambda x: jnp.expand_dims(x, axis), (x,)),
        "squeeze": (lambda x: jnp.squeeze(x[:1], 0), (x,)),
        "slice": (lambda x: x[1:, ::2, -1], (x,)),
        "slice_back": (lambda x: x[::-1, ::-2], (x,)),
        "concatenate": (lambda x: jnp.concatenate([x, x * 2, x], axis), (x,)),
        "stack": (lambda x: jnp.stack([x, -x], axis), (x,)),
        "split": (lambda x: jnp.split(x, [1], axis), (x,)),
        "pad": (lambda x: lax.pad(x, zero, pads), (x,)),
        "pad_edge": (lambda x: jnp.pad(x, 1, mode="edge"), (x,)),
        "tile": (lambda x: jnp.tile(x, (2, 1, 3)), (x,)),
        "repeat": (lambda x: jnp.repeat(x, 2, axis), (x,)),
        "roll": (lambda x: jnp.roll(x, 1, axis), (x,)),
        "moveaxis": (lambda x: jnp.moveaxis(x, 0, -1), (x,)),
        "tril": (lambda x: jnp.tril(x), (x,)),
        "diag": (lambda r: jnp.diag(r), (row,)),
        "outer": (lambda r: jnp.outer(r, r), (row,)),
        "arange": (lambda x: x + jnp.arange(shape[-1], dtype=dtype), (x,)),
        "linspace": (lambda x: x * jnp.linspace(0, 1, shape[-1], dtype=jnp.float32).astype(dtype), (x,)),
        "meshgrid": (lambda r: jnp.meshgrid(r, r), (row,)),
        "eye": (lambda x: x[0] @ jnp.eye(shape[-1], dtype=dtype), (x,)),
    })  # fmt: skip


@few
@given(shape=shapes, dtype=floats, seed=st.integers(0, 1000), axes=st.sampled_from([(0,), (1,), (2,), (0, 2), (0, 1, 2)]))
def test_reductions(shape, dtype, seed, axes):
    x = normal(seed, shape, dtype)
    axis = axes[0]
    check({
        "sum": (lambda x: x.sum(axes), (x,)), "max": (lambda x: x.max(axes), (x,)), "min": (lambda x: x.min(axes), (x,)),
        "mean": (lambda x: x.mean(axes), (x,)), "keep": (lambda x: x.sum(axes, keepdims=True), (x,)),
        "var": (lambda x: x.var(axes), (x,)), "std": (lambda x: x.std(axes), (x,)),
        "any": (lambda x: (x > 1).any(axes), (x,)), "all": (lambda x: (x > -1).all(axes), (x,)),
        "argmax": (lambda x: x.argmax(axis), (x,)), "argmin": (lambda x: x.argmin(axis), (x,)), "argmax_flat": (lambda x: x.argmax(), (x,)),
        "logsumexp": (lambda x: jax.nn.logsumexp(x, axes), (x,)), "softmax": (lambda x: jax.nn.softmax(x, axis), (x,)),
        "log_softmax": (lambda x: jax.nn.log_softmax(x, axis), (x,)), "norm": (lambda x: jnp.sqrt((x * x).sum(axes)), (x,)),
        "count": (lambda x: (x > 0).sum(axes), (x,)), "normalize": (lambda x: (x - x.mean(axes, keepdims=True)) / (x.std(axes, keepdims=True) + 1), (x,)),
    })  # fmt: skip


@few
@given(shape=shapes, seed=st.integers(0, 1000), axis=st.integers(0, 2), reverse=st.booleans())
def test_scans_and_sorting(shape, seed, axis, reverse):
    x = normal(seed, shape)
    i = jnp.asarray(np.random.default_rng(seed).integers(0, 5, shape), jnp.int32)
    check({
        "cumsum": (lambda x: lax.cumsum(x, axis, reverse), (x,)), "cumprod": (lambda x: lax.cumprod(x, axis, reverse), (x,)),
        "cummax": (lambda x: lax.cummax(x, axis, reverse), (x,)), "cummin": (lambda x: lax.cummin(x, axis, reverse), (x,)),
        "cumlogsumexp": (lambda x: lax.cumlogsumexp(x, axis, reverse), (x,)),
        "sort": (lambda x: lax.sort(x, axis), (x,)), "argsort": (lambda x: jnp.argsort(x, axis), (x,)),
        "sort_two": (lambda i, x: lax.sort([i, x], axis, num_keys=2), (i, x)), "sort_key_val": (lambda i, x: lax.sort([i, x], axis, num_keys=1), (i, x)),
        "top_k": (lambda x: lax.top_k(x, 2)[0], (x,)), "top_k_indices": (lambda x: lax.top_k(x, 2)[1], (x,)),
        "searchsorted": (lambda x: jnp.searchsorted(jnp.sort(x[0, 0]), x, side="right"), (x,)), "digitize": (lambda x: jnp.digitize(x, x[0, 0].sort()), (x,)),
        "median": (lambda x: jnp.median(x, axis), (x,)), "integers": (lambda i: (lax.cumsum(i, axis), lax.sort(i, axis)), (i,)),
    })  # fmt: skip


def test_reversed_short_lines():
    """Fewer elements than a vector has, in reverse order: masked loads begin at a known place below 0."""
    cases = {"argsort": lambda x: jnp.argsort(x, descending=True), "sort": lambda x: jnp.sort(x[..., ::-1]), "sum": lambda x: jnp.sum(x[..., ::-1]),
             "argmax": lambda x: jnp.argmax(x[..., ::-1], -1), "dot": lambda x: x[..., ::-1] @ x.T, "softmax": lambda x: jax.nn.softmax(x[..., ::-1])}  # fmt: skip
    draw = np.random.default_rng(0)
    check({f"{name}{shape}": (fn, (jnp.asarray(draw.normal(size=shape), jnp.float32),)) for name, fn in cases.items() for shape in ((9,), (40,), (3, 9))},
          gradient=False)  # fmt: skip


def test_integer_reductions():
    i = jnp.asarray(np.random.default_rng(0).integers(0, 255, (5, 6)), jnp.uint8)
    check({"sum": (lambda i: i.sum(0), (i,)), "max": (lambda i: i.max(1), (i,)), "and": (lambda i: jnp.bitwise_and.reduce(i, axis=0), (i,)),
           "xor": (lambda i: lax.reduce(i, jnp.uint8(0), lax.bitwise_xor, (1,)), (i,)), "prod": (lambda i: i.astype(jnp.int32).prod(0), (i,))})  # fmt: skip


def test_products():
    """JAX's gradient of a product is a tree of slices."""
    x = normal(0, (3, 8))
    long = np.random.default_rng(1).uniform(0.9, 1.1, 100).astype(np.float32)  # in one kernel it would not compile within minutes
    check({"prod": (lambda x: x.prod(1), (x,)), "all": (lambda x: x.prod(), (x,)), "long": (lambda x: x.prod(), (long,)),
           "long_f16": (lambda x: x.prod(), (long.astype(np.float16),))})  # fmt: skip


def test_reduction_by_a_function():
    x = normal(0, (4, 6))
    check({"smooth": (lambda x: lax.reduce(x, jnp.float32(0), lambda a, b: jnp.sqrt(a * a + b * b), (1,)), (x,)),
           "two": (lambda x: lax.reduce((x, x), (jnp.float32(0), jnp.float32(-9)), lambda a, b: (a[0] + b[0], jnp.maximum(a[1], b[1])), (0,)), (x,))},
          gradient=False)  # fmt: skip


def test_no_elements():
    x = jnp.zeros((0, 3), jnp.float32)
    check({"sum": (lambda x: x.sum(0), (x,)), "max": (lambda x: x.max(1), (x,)), "concatenate": (lambda x: jnp.concatenate([x, jnp.ones((2, 3))]), (x,)),
           "exp": (jnp.exp, (x,))}, gradient=False)  # fmt: skip
