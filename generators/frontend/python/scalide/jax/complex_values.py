"""Complex values inside of a traced function, such as those between rfft and irfft. Arguments and results of a program are real.

A complex value is a pair of real values. A primitive that treats both parts alike runs once for each part. The others have a formula on the
parts, which JAX traces. An FFT becomes the operator of rules/composite/fft.yaml, which takes the parts along a last axis."""
from __future__ import annotations

import dataclasses
from typing import Any, Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np


@dataclasses.dataclass(frozen=True)
class Pair:
    """A complex value: its real and its imaginary part, of one dtype and shape."""

    real: Any
    imag: Any

    @property
    def shape(self) -> tuple:
        return self.real.shape


def is_complex(aval) -> bool:
    return getattr(aval, "dtype", None) is not None and jax.dtypes.issubdtype(aval.dtype, np.complexfloating)


def pair_of(walk, array) -> Pair:
    """Returns a known complex array as a pair."""
    return Pair(walk.constant(np.array(array.real)), walk.constant(np.array(array.imag)))


def parts_of(values: Sequence) -> list:
    """Returns values with both parts of a pair, one after the other."""
    return [part for value in values for part in ((value.real, value.imag) if isinstance(value, Pair) else (value,))]


def avals_of_parts(avals: Sequence) -> list:
    """Returns the abstract values of the parts of values."""
    return [_real(aval) for aval in avals for _ in range(1 + is_complex(aval))]


def joined(parts: Sequence, avals: Sequence) -> list:
    """Returns the values that have these parts and abstract values."""
    rest = iter(parts)
    return [Pair(next(rest), next(rest)) if is_complex(aval) else next(rest) for aval in avals]


def rule_of(equation) -> Callable:
    """Returns the rule for a primitive with complex operands or results.

    Raises:
        TraceError: The primitive has none.
    """
    if equation.name in _PARTWISE:
        return _by_parts
    if equation.name in _FORMULAS:
        return _by_formula
    if equation.name == "fft":
        return _transform
    raise equation.fail("has no rule for complex values", "complex64", "Compute with real and imaginary parts")


_PARTWISE = frozenset("""add add_any broadcast_in_dim concatenate copy copy_p cumsum dynamic_slice dynamic_update_slice gather neg pad
    reduce_sum reshape rev scatter scatter-add select_n slice squeeze sub transpose""".split())


def _real(aval):
    """The abstract value of a part. Keeps real values."""
    return jax.ShapeDtypeStruct(aval.shape, _part_dtype(aval)) if is_complex(aval) else aval


def _part_dtype(aval):
    return np.zeros((), aval.dtype).real.dtype


def _by_parts(walk, equation, operands) -> list:
    real = dataclasses.replace(equation, inputs=[_real(aval) for aval in equation.inputs], outputs=[_real(aval) for aval in equation.outputs])

    def run(part):
        return walk.rules[equation.name](walk, real, [getattr(operand, part) if isinstance(operand, Pair) else operand for operand in operands])

    return [Pair(re, im) for re, im in zip(run("real"), run("imag"))]


def _divide(a, b):
    """(a * conj(b)) / |b|^2. b is divided by its larger part first, so its square neither overflows nor becomes 0. A number divided by 0 is
    infinite, and divided by an infinity it is 0, as in JAX."""
    largest = jnp.maximum(jnp.abs(b[0]), jnp.abs(b[1]))

    def direction(part, of_zero):
        of_infinity = jnp.where(jnp.isinf(part), jnp.sign(part), 0)
        return jnp.where(largest == 0, of_zero, jnp.where(jnp.isinf(largest), of_infinity, part / largest))

    unit = direction(b[0], 1), direction(b[1], 0)
    square = (unit[0] * unit[0] + unit[1] * unit[1]) * largest
    return (a[0] * unit[0] + a[1] * unit[1]) / square, (a[1] * unit[0] - a[0] * unit[1]) / square


def _multiply(a, b):
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def _sign(z):
    size = jnp.hypot(*z)
    is_zero = size == 0
    return tuple(jnp.where(is_zero, 0, part / jnp.where(is_zero, 1, size)) for part in z)


def _power(z, y):
    made = (jnp.ones_like(z[0]), jnp.zeros_like(z[0]))
    for _ in range(abs(y)):
        made = _multiply(made, z)
    return made if y >= 0 else _divide((jnp.ones_like(z[0]), jnp.zeros_like(z[0])), made)


def _convert(z, dtype):
    return z if isinstance(z, tuple) else (z.astype(dtype), jnp.zeros(jnp.shape(z), dtype))


#: Formulas on parts: a complex operand is a tuple (real, imaginary). So is a complex result.
_FORMULAS: dict[str, Callable] = {
    "abs": lambda z: jnp.hypot(*z),
    "complex": lambda re, im: (re, im),
    "conj": lambda z: (z[0], -z[1]) if isinstance(z, tuple) else (z, jnp.zeros_like(z)),
    "convert_element_type": _convert,
    "div": _divide,
    "eq": lambda a, b: (a[0] == b[0]) & (a[1] == b[1]),
    "exp": lambda z: (jnp.exp(z[0]) * jnp.cos(z[1]), jnp.exp(z[0]) * jnp.sin(z[1])),
    "imag": lambda z: z[1],
    "integer_pow": _power,
    "is_finite": lambda z: jnp.isfinite(z[0]) & jnp.isfinite(z[1]),
    "mul": _multiply,
    "ne": lambda a, b: (a[0] != b[0]) | (a[1] != b[1]),
    "real": lambda z: z[0],
    "sign": _sign,
    "square": lambda z: _multiply(z, z),
}


def _by_formula(walk, equation, operands) -> list:
    formula, aval = _FORMULAS[equation.name], equation.outputs[0]
    attributes = {"integer_pow": {"y": equation.params.get("y")}, "convert_element_type": {"dtype": _part_dtype(aval)}}.get(equation.name, {})
    is_pair = [isinstance(operand, Pair) for operand in operands]
    flat = [part for operand in operands for part in ((operand.real, operand.imag) if isinstance(operand, Pair) else (operand,))]
    avals = [jax.ShapeDtypeStruct(aval.shape, _real(aval).dtype) for aval, pair in zip(equation.inputs, is_pair) for _ in range(1 + pair)]

    def on_parts(*parts):
        rest = iter(parts)
        return formula(*((next(rest), next(rest)) if pair else next(rest) for pair in is_pair), **attributes)

    results = [_filled(walk, result, aval.shape) for result in walk.run_closed(jax.make_jaxpr(on_parts)(*avals), flat)]
    return [Pair(*results)] if is_complex(aval) else results


def _filled(walk, part, shape):
    """A part that is a number, in the shape of the other part: JAX writes `complex(x, 0.0)`."""
    if tuple(part.shape) == tuple(shape):
        return part
    return walk.emit("broadcast_in_dim", [walk.writer.value(part)], {"shape": list(shape), "dims": []}, [(part.dtype, shape)])[0]


def _transform(walk, equation, operands) -> list:
    """The transform of the last axes. A real axis is the last one: it comes first in rfft, and last in irfft."""
    (operand,), kind = operands, str(getattr(equation.params["fft_type"], "name", equation.params["fft_type"])).lower()
    rank, lengths = len(equation.inputs[0].shape), equation.params["fft_lengths"]
    axes = list(range(rank - len(lengths), rank))
    dtype, shape = walk.types(dataclasses.replace(equation, outputs=[_real(equation.outputs[0])]))[0]
    if isinstance(operand, Pair):
        parts = [walk.writer.value(operand.real), walk.writer.value(operand.imag)]
        (z,) = walk.emit("complex", parts, {}, [(dtype, (*operand.shape, 2))])
    if kind == "rfft":
        (z,) = walk.emit("rfft", [walk.writer.value(operand)], {"axis": axes.pop()}, [(dtype, (*shape, 2))])
    elif kind == "irfft":
        last = axes.pop()
    for axis in axes:
        (z,) = walk.emit("ifft" if kind.startswith("i") else "fft", [z], {"axis": axis}, [(dtype, z.shape)])
    if kind == "irfft":
        return walk.emit("irfft", [z], {"length": int(lengths[-1]), "axis": last}, [(dtype, shape)])
    return [Pair(*(walk.emit(part, [z], {}, [(dtype, shape)])[0] for part in ("real", "imag")))]
