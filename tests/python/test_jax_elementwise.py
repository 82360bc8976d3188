"""Elementwise primitives, forward and gradient."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax
from jax.scipy import special
from oracle import check, few

import scalide
import scalide.jax

ANY, POSITIVE, UNIT, ABOVE_ONE = (-2.0, 2.0), (0.1, 4.0), (-0.9, 0.9), (1.1, 4.0)

UNARY = {
    **{name: (getattr(lax, name), ANY) for name in """abs neg sign exp exp2 expm1 tanh logistic erf erfc sin cos tan sinh cosh asinh atan cbrt
        floor ceil round square bessel_i0e bessel_i1e is_finite""".split()},
    **{name: (getattr(lax, name), POSITIVE) for name in "log log1p sqrt rsqrt lgamma digamma".split()},
    **{name: (getattr(lax, name), UNIT) for name in "asin acos atanh erf_inv".split()},
    "acosh": (lax.acosh, ABOVE_ONE),
    "integer_pow_3": (lambda x: lax.integer_pow(x, 3), ANY),
    "integer_pow_-2": (lambda x: lax.integer_pow(x, -2), POSITIVE),
    "round_even": (lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), ANY),
    "reduce_precision": (lambda x: lax.reduce_precision(x, 5, 4), ANY),
    "stop_gradient": (lambda x: lax.stop_gradient(x) * x, ANY),
    "relu": (jax.nn.relu, ANY), "silu": (jax.nn.silu, ANY), "gelu": (jax.nn.gelu, ANY), "gelu_erf": (lambda x: jax.nn.gelu(x, approximate=False), ANY),
    "softplus": (jax.nn.softplus, ANY), "elu": (jax.nn.elu, ANY), "selu": (jax.nn.selu, ANY), "hard_tanh": (jax.nn.hard_tanh, ANY),
    # At its extremum, 1.55, the gradient is a difference of numbers that are 30 times larger: JAX's f16 gives -0.01559 for -0.01550 at -1.85.
    "bessel_i1e": (lax.bessel_i1e, UNIT),
    "copysign_number": (lambda x: jnp.copysign(x, -1.0), ANY),
    "nan_to_num": (jnp.nan_to_num, ANY),
}  # fmt: skip

BINARY = {
    **{name: (getattr(lax, name), ANY, POSITIVE) for name in "add sub mul div max min rem atan2 eq ne lt le gt ge nextafter".split()},
    "pow": (lax.pow, POSITIVE, ANY),
    "igamma": (special.gammainc, POSITIVE, POSITIVE),
    "igammac": (special.gammaincc, POSITIVE, POSITIVE),
    "logaddexp": (jnp.logaddexp, ANY, ANY),
    "hypot": (jnp.hypot, POSITIVE, POSITIVE),
    "where": (lambda x, y: jnp.where(x > 0, x, y), ANY, ANY),
    "clamp": (lambda x, y: lax.clamp(jnp.asarray(-0.5, x.dtype), x * y, jnp.asarray(0.5, x.dtype)), ANY, ANY),
}

INTEGER = {
    **{name: getattr(lax, name) for name in "add sub mul div max min rem eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor shift_left "
                                            "shift_right_logical shift_right_arithmetic".split()},
    "not": lambda x, y: lax.bitwise_not(x), "population_count": lambda x, y: lax.population_count(x), "clz": lambda x, y: lax.clz(x),
    "sign": lambda x, y: lax.sign(x), "abs": lambda x, y: jnp.abs(x), "integer_pow": lambda x, y: lax.integer_pow(x, 3),
    "select_n": lambda x, y: lax.select_n(jnp.clip(x, 0, 2).astype(jnp.int32), x, y, x + y),
    "floor_divide": lambda x, y: x // y, "mod": lambda x, y: x % y,
}  # fmt: skip

# JAX differentiates these along lines that XLA computes by series of its own, or has no gradient at all.
NO_GRADIENT = {"nextafter", "igamma", "igammac"}

shapes = st.lists(st.sampled_from([1, 3, 8, 17]), min_size=1, max_size=3)
floats = st.sampled_from(["float32", "float16", "bfloat16"])


def uniform(generator, shape, dtype, limits):
    return jnp.asarray(generator.uniform(*limits, size=shape), dtype)


@few
@given(shape=shapes, dtype=floats, seed=st.integers(0, 1000))
def test_unary(shape, dtype, seed):
    generator = np.random.default_rng(seed)
    cases = {name: (fn, (uniform(generator, shape, dtype, limits),)) for name, (fn, limits) in UNARY.items()}
    check(cases)


@few
@given(shape=shapes, dtype=floats, seed=st.integers(0, 1000))
def test_binary(shape, dtype, seed):
    generator = np.random.default_rng(seed)
    cases = {name: (fn, tuple(uniform(generator, shape, dtype, limits) for limits in both)) for name, (fn, *both) in BINARY.items()}
    if dtype != "float32":
        cases = {name: case for name, case in cases.items() if name not in NO_GRADIENT}
    check({name: case for name, case in cases.items() if name not in NO_GRADIENT})
    check({name: case for name, case in cases.items() if name in NO_GRADIENT} or {"neg": (lax.neg, cases["add"][1][:1])}, gradient=False)


@few
@given(shape=shapes, dtype=st.sampled_from(["int32", "uint32", "int8", "uint8", "int16", "uint16"]), seed=st.integers(0, 1000))
def test_integers(shape, dtype, seed):
    generator = np.random.default_rng(seed)
    limits = np.iinfo(dtype)
    x = jnp.asarray(generator.integers(limits.min, limits.max, shape, endpoint=True, dtype=dtype))
    y = jnp.asarray(generator.integers(1, 9, shape, dtype=dtype))
    check({name: (fn, (x, y)) for name, fn in INTEGER.items()})


def test_special_functions():
    """Those that JAX has in f32 alone."""
    generator = np.random.default_rng(1)
    a, b, x = (uniform(generator, (5, 7), "float32", limits) for limits in (POSITIVE, POSITIVE, (0.1, 0.9)))
    check({"betainc": (lambda x: special.betainc(jnp.float32(1.5), jnp.float32(2.5), x), (x,)), "zeta": (lambda q: special.zeta(jnp.float32(2.5), q), (a,)),
           "polygamma": (lambda x: special.polygamma(1, x), (b,))})  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "uint8", "bool"])
def test_conversions(dtype):
    generator = np.random.default_rng(2)
    x = jnp.asarray(generator.uniform(0, 100, (4, 9)), dtype)
    targets = ["float32", "float16", "bfloat16", "int32", "int16", "uint8", "bool"]
    check({target: (lambda x, target=target: lax.convert_element_type(x, target), (x,)) for target in targets}, gradient=False)


def test_narrow_floats_convert():
    x = jnp.asarray(np.random.default_rng(3).normal(size=(64,)) * 10, jnp.float32)
    formats = [jnp.float8_e4m3fn, jnp.float8_e5m2]
    check({str(i): (lambda x, f=f: x.astype(f).astype(jnp.float32), (x,)) for i, f in enumerate(formats)}, gradient=False, ulps=0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_overflow(dtype):
    """What no narrow float holds becomes infinity, or NaN where the format has none, as in JAX; both stay what they are when moved."""
    x = jnp.asarray([1.0, 448, 460, 470, 5e4, 65519, 65520, 1e5, 3.39e38, 3.4e38, jnp.inf, jnp.nan, -1e5, -jnp.inf] + [0.5] * 18, jnp.float32)
    narrow = x.astype(dtype)
    cases = {
        "convert": (lambda x: x.astype(dtype), (x,)),
        "there_and_back": (lambda x: x.astype(dtype).astype(jnp.float32), (x,)),
        "of_integers": (lambda n: n.astype(dtype), (jnp.asarray([1, 300, 500, 70000, -(10**6), 2**31 - 1]),)),
        "moved": (lambda y: (y[::-1], y.reshape(4, 8).T, jnp.roll(y, 3), y[jnp.asarray([10, 11, 0])]), (narrow,)),
        "chosen": (lambda y: jnp.where(y.astype(jnp.float32) > 2, y, jnp.zeros_like(y)), (narrow,)),
        "finite": (lambda y: jnp.isfinite(y.astype(jnp.float32)), (narrow,)),
    }
    if not dtype.startswith("float8"):
        cases |= {
            "product": (lambda y: y * y, (narrow,)),
            "sum": (lambda y: jnp.sum(y[:10]), (narrow,)),
            "dot": (lambda y: y[:8].reshape(2, 4) @ y[:8].reshape(4, 2), (narrow,)),
            "constant": (lambda y: y[-4:] * jnp.asarray(6e4, dtype) * 4, (narrow,)),
            "filled": (lambda y: jnp.pad(y[-4:], 1, constant_values=jnp.inf), (narrow,)),
        }
    check(cases, gradient=False)


def test_bit_casts():
    x = jnp.asarray(np.random.default_rng(4).normal(size=(33,)), jnp.float32)
    check({"u32": (lambda x: lax.bitcast_convert_type(x, jnp.uint32), (x,)),
           "f32": (lambda x: lax.bitcast_convert_type(lax.bitcast_convert_type(x, jnp.int32) ^ 1, jnp.float32), (x,))})  # fmt: skip


@pytest.mark.parametrize("dtype, bits", [("float16", "uint16"), ("bfloat16", "int16"), ("float8_e4m3fn", "uint8"), ("float8_e5m2", "int8")])
def test_bits_of_narrow_floats(dtype, bits, partitionable):
    x = jnp.asarray(np.random.default_rng(5).normal(size=(33,)), dtype)
    codes = jnp.asarray(np.arange(-20, 60), bits)
    cases = {"of": (lambda x: lax.bitcast_convert_type(x, bits), (x,)), "made": (lambda n: lax.bitcast_convert_type(n, dtype), (codes,)),
             "negated": (lambda x: lax.bitcast_convert_type(lax.bitcast_convert_type(x, bits) ^ jnp.asarray(1, bits), dtype), (x,))}  # fmt: skip
    if not dtype.startswith("float8"):
        cases |= {"sign": (jnp.signbit, (x,)), "exponent": (jnp.frexp, (x,)), "sum": (lambda x: lax.bitcast_convert_type(x + x, bits), (x,)),
                  "normal": (lambda: jax.random.normal(jax.random.key(1), (9, 5), dtype), ()), "uniform": (lambda: jax.random.uniform(jax.random.key(1), (7,), dtype), ())}  # fmt: skip
        ends = jnp.asarray([0.0, -0.0, 1.0, 2.0, -2.0, 6e4, jnp.inf, jnp.nan, 1e-7], dtype)
        pairs = tuple(grid.ravel() for grid in jnp.meshgrid(ends, ends))
        cases["next"] = (lambda x, y: lax.bitcast_convert_type(jnp.where(x != x, 0, lax.nextafter(x, y)), bits), pairs)
    check(cases, gradient=False)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_edges(dtype):
    x = jnp.asarray([jnp.nan, jnp.inf, -jnp.inf, 0.0, -0.0, 1.0], dtype)
    y = jnp.roll(x, 1)
    cases = {name: (fn, (x,)) for name, (fn, _) in UNARY.items() if name in "abs neg exp tanh floor is_finite sign relu nan_to_num sqrt log".split()}
    cases |= {name: (fn, (x, x[::-1])) for name, (fn, *_) in BINARY.items() if name in "add mul div max min eq lt where".split()}
    predicates = {"isnan": jnp.isnan, "isinf": jnp.isinf, "signbit": jnp.signbit, "argmax": jnp.argmax, "argmin": jnp.argmin, "max": jnp.max, "sort": jnp.sort}
    cases |= {name: (fn, (x,)) for name, fn in predicates.items()}
    cases |= {op: (lambda x, y, op=op: getattr(lax, op)(x, y), (x, y)) for op in "eq ne lt le gt ge max min".split()}
    check(cases, gradient=False)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float8_e5m2", "float8_e4m3fn"])
def test_reduce_precision_gives_the_bits_of_xla(dtype):
    """Also of subnormal numbers, which JAX keeps in float16 where it rematerializes (it rounds residuals to their own format)."""
    random = np.random.default_rng(0)
    x = (np.exp2(random.uniform(-27, 17, 4000)) * random.choice([-1, 1], 4000)).astype(np.float32)
    with np.errstate(over="ignore"):
        x = np.concatenate([x, np.float32([0, -0.0, np.inf, -np.inf, np.nan])]).astype(jnp.dtype(dtype))
    formats = [(5, 10), (8, 7), (4, 3), (5, 2), (7, 1), (2, 1), (8, 23), (11, 52), (5, 23), (6, 9), (5, 1), (8, 1)]

    def program(x):
        return [lax.reduce_precision(x, *bits) for bits in formats]

    for bits, got, want in zip(formats, scalide.build(scalide.jax.trace(program, x))(x), jax.jit(program)(x), strict=True):
        got, want = np.asarray(got, np.float32), np.asarray(want, np.float32)
        wrong = ~((got == want) & (np.signbit(got) == np.signbit(want)) | np.isnan(got) & np.isnan(want))
        assert not wrong.any(), f"{bits}: {got[wrong][:3]} for {want[wrong][:3]}, of {x[wrong][:3]}"
