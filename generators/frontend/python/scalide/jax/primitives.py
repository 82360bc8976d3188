"""The table that maps LAX primitives to operators: elementwise operators, movement, reductions and calls. A primitive that needs more than
other parameter names has a function."""
from __future__ import annotations

from typing import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np

from . import compat
from .text import Number, Value, is_float
from .walk import Equation, Walk, dtype_of, extent_of, shape_of, warn_dropped

#: The rules by the name of the primitive. A rule is a function (walk, equation, operands) that returns the values of the results.
RULES: dict[str, Callable[[Walk, Equation, Sequence], list]] = {}


def add_rule(*names: str):
    """Decorates a function that tells `trace` what JAX primitives become.

    The function is called as `rule(walk, equation, operands)`. It returns a list with one value for each result of the primitive.

    - `equation.name` and `equation.params` are the name and the parameters of the primitive.
    - `equation.inputs` and `equation.outputs` are abstract values (shape and dtype).
    - `operands` are values of the program, or numbers.
    - `walk.emit(op, operands, attributes, types)` appends an operator and returns its results. `scalide rules` lists the operators.
    - `walk.types(equation)` returns (dtype, shape) for each result of the primitive.

    Args:
        names: The names of the primitives.

        @scalide.jax.add_rule("my_softsign")
        def softsign(walk, equation, operands):
            return walk.emit("soft_sign", operands, {}, walk.types(equation))
    """

    def add(rule):
        RULES.update(dict.fromkeys(names, rule))
        return rule

    return add


def add_operator(primitive: str, op: str | None = None, attributes: dict[str, str] | None = None) -> None:
    """Maps a JAX primitive to one operator of Scalide.

    A parameter that is None is left out. Another parameter that `attributes` does not map raises TraceError when the primitive is traced.

    Args:
        primitive: The name of the primitive.
        op: The name of the operator. Default: the name of the primitive.
        attributes: Maps parameters of the primitive to attributes of the operator. Default: the same names.
    """

    def rule(walk, equation, operands):
        params = {name: value for name, value in equation.params.items() if value is not None}
        renamed = {name: name for name in params if name not in compat.SILENT} if attributes is None else attributes
        refuse_others(equation, set(renamed))
        given = {renamed[name]: plain(params[name], equation) for name in renamed if name in params}
        return walk.emit(op or primitive, [walk.writer.value(operand) for operand in operands], given, walk.types(equation))

    RULES[primitive] = rule


def plain(param, equation: Equation):
    """Converts a parameter to an attribute: a dtype, an extent, a number or a list."""
    if isinstance(param, (list, tuple)):
        return [plain(element, equation) for element in param]
    if isinstance(param, (np.dtype, type)):
        return dtype_of(np.zeros((), param), equation.fail)
    if isinstance(param, (bool, str, float, np.floating)):
        return param
    return extent_of(param, equation.fail)


def refuse_others(equation: Equation, known: set[str]) -> None:
    """Raises TraceError for a parameter that has no meaning in Scalide, unless it is None or does not affect values."""
    for name, value in equation.params.items():
        if value is not None and name not in known and name not in compat.SILENT:
            raise equation.fail(f"parameter {name} is not supported", f"{name}={value}", "Use its default")


# Elementwise.

ELEMENTWISE = """abs acos acosh add and asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt ceil clamp clz cos cosh digamma div
    eq erf erf_inv erfc exp exp2 expm1 floor ge gt igamma igammac is_finite le lgamma log log1p log2 logistic lt max min mul ne neg
    not one_minus_square or polygamma population_count rem regularized_incomplete_beta rsqrt select_n shift_left shift_right_arithmetic
    shift_right_logical sign sin sinh sqrt square sub tan tanh xor zeta""".split()


@add_rule("add_any")
def add_gradients(walk, equation, operands):
    """Adds two gradients of one value. An extended dtype has an addition of its own."""
    aval = equation.inputs[0]
    if compat.stored_dtype(aval) != aval.dtype:
        return walk.run_closed(compat.sum_of(aval), operands)
    return elementwise(walk, equation, operands)


@add_rule(*ELEMENTWISE)
def elementwise(walk, equation, operands):
    ((dtype, shape),) = walk.types(equation)
    made = operands[-1].dtype if equation.params.get("out_dtype") is not None else dtype
    refuse_others(equation, {"out_dtype"})
    operands = [walk.broadcast(operand, shape) for operand in operands]
    if not any(isinstance(o, Value) and tuple(o.shape) == tuple(shape) for o in operands):  # only numbers and scalars
        operands = [walk.writer.value(operand) for operand in operands]
    (out,) = walk.emit(equation.name, operands, {}, [(made, shape)])
    return [walk.convert(out, dtype)]


_TOTAL_ORDER = {"eq_to": "eq", "le_to": "le", "lt_to": "lt"}


@add_rule(*_TOTAL_ORDER)
def total_order(walk, equation, operands):
    """Compares floats by their bits as i32: -0 is less than 0, and NaN is largest. The bits of a negative float are inverted, except the sign."""
    ((_, shape),) = walk.types(equation)
    words = []
    for operand in map(walk.writer.value, operands):
        if is_float(operand.dtype):
            bits = [("i32", operand.shape)]
            (word,) = walk.emit("bitcast_convert_type", [walk.convert(operand, "f32")], {"dtype": "i32"}, bits)
            (sign,) = walk.emit("shift_right_arithmetic", [word, Number(31, "i32")], {}, bits)
            (turned,) = walk.emit("and", [sign, Number(2**31 - 1, "i32")], {}, bits)
            (operand,) = walk.emit("xor", [word, turned], {}, bits)
        words.append(walk.broadcast(operand, shape))
    return walk.emit(_TOTAL_ORDER[equation.name], words, {}, walk.types(equation))


@add_rule("nextafter")
def next_after(walk, equation, operands):
    ((dtype, _),) = walk.types(equation)
    if dtype == "f32":
        return elementwise(walk, equation, operands)
    avals = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in equation.inputs]
    return walk.run_closed(jax.make_jaxpr(_narrow_next_after)(*avals), operands)


def _narrow_next_after(x, y):
    """Computes nextafter with bit patterns: without the sign bit, a larger magnitude has a larger bit pattern."""
    unsigned = np.dtype(f"uint{8 * x.dtype.itemsize}")
    sign, one = (np.array(value, unsigned) for value in (1 << (8 * x.dtype.itemsize - 1), 1))
    a, b = (jax.lax.bitcast_convert_type(value, unsigned) for value in (x, y))
    step = jnp.where((x < y) == (x > 0), a + one, a - one)
    moved = jnp.where(x == y, b, jnp.where(x == 0, (b & sign) | one, step))
    return jnp.where(jnp.isnan(x) | jnp.isnan(y), x + y, jax.lax.bitcast_convert_type(moved, x.dtype))


@add_rule("polynomial")
def polynomial(walk, equation, operands):
    """Evaluates a_0 + x (a_1 + x (a_2 + ...)) from the operands x, a_0, a_1, ...: Horner's rule, as JAX does."""
    type_ = walk.types(equation)
    x, *coefficients = [walk.broadcast(operand, type_[0][1]) for operand in operands]
    total = coefficients.pop()
    for coefficient in reversed(coefficients):
        for op, operand in (("mul", x), ("add", coefficient)):
            (total,) = walk.emit(op, [walk.writer.value(total), operand], {}, type_)
    return [total]


@add_rule("pow")
def power(walk, equation, operands):
    base, exponent = operands
    return elementwise(walk, equation, [base, walk.convert(exponent, base.dtype)])


@add_rule("round")
def rounded(walk, equation, operands):
    to_even = int(equation.params["rounding_method"]) == 1
    return walk.emit("round" if to_even else "round_away", operands, {}, walk.types(equation))


@add_rule("convert_element_type")
def convert(walk, equation, operands):
    ((dtype, _),) = walk.types(equation)
    return [walk.convert(operands[0], dtype)]


@add_rule("bitcast_convert_type")
def bitcast(walk, equation, operands):
    ((dtype, shape),) = walk.types(equation)
    if tuple(operands[0].shape) != shape:
        raise equation.fail("both dtypes must have the same number of bits", f"{operands[0].dtype} and {dtype}", "Convert to a dtype of the same width")
    return walk.emit("bitcast_convert_type", operands, {"dtype": dtype}, [(dtype, shape)])


IDENTITIES = """copy copy_p device_put stop_gradient optimization_barrier pbroadcast pvary random_clone tie sharding_constraint to_edtype
    from_edtype layout_constraint relayout reshard reduced_vary_cast vary_unreduced_cast with_memory_space_constraint""".split()


@add_rule(*IDENTITIES)
def identity(walk, equation, operands):
    return operands[: len(equation.outputs)]


add_operator("integer_pow")


@add_rule("reduce_precision")
def reduce_precision(walk, equation, operands):
    """Rounds as XLA does: bfloat16 and f32 in f32, other floats in f16. A format with the exponents of f16 keeps the subnormal numbers of f16."""
    ((dtype, shape),) = walk.types(equation)
    bits = equation.params["exponent_bits"], equation.params["mantissa_bits"]
    if dtype in ("f32", "bf16", "f8_e8m0fnu") or bits[0] < 5:
        attributes = {"exponent_bits": min(bits[0], 8), "mantissa_bits": min(bits[1], 23)}
        return walk.emit("reduce_precision", [walk.writer.value(operands[0])], attributes, [(dtype, shape)])
    if bits[1] >= 10:
        return operands
    rounded = jax.make_jaxpr(lambda x: _rounded_half(x, bits[1]))(jax.ShapeDtypeStruct(equation.inputs[0].shape, np.float32))
    return [walk.convert(walk.run_closed(rounded, [walk.convert(operands[0], "f32")])[0], dtype)]


def _rounded_half(x, mantissa_bits: int):
    """Rounds the mantissa bits of f16 numbers, which x has in f32. All subnormal numbers have one exponent."""
    unit = np.float32(2.0 ** (-14 - mantissa_bits))
    subnormal = jax.lax.round(x / unit, jax.lax.RoundingMethod.TO_NEAREST_EVEN) * unit
    return jnp.where(jnp.abs(x) < 2.0**-14, subnormal, jax.lax.reduce_precision(x, 8, mantissa_bits))

# Movement.

add_operator("transpose")
add_operator("rev")
add_operator("concatenate")
add_operator("squeeze")


@add_rule("slice")
def slice_(walk, equation, operands):
    names = {"start_indices": ("start", 0), "limit_indices": ("limit", 2), "strides": ("strides", 1)}
    attributes = {ours: plain(equation.params[theirs], equation) for theirs, (ours, _) in names.items() if equation.params[theirs] is not None}
    if compat.is_key(equation.inputs[0]):  # a key keeps all its words
        attributes = {ours: [*attributes[ours], whole] for ours, whole in names.values() if ours in attributes}
    return walk.emit("slice", operands, attributes, walk.types(equation))


@add_rule("reshape")
def reshape(walk, equation, operands):
    ((dtype, shape),) = walk.types(equation)
    operand, order = walk.writer.value(operands[0]), equation.params.get("dimensions")
    if order is not None:
        permuted = tuple(operand.shape[axis] for axis in order)
        (operand,) = walk.emit("transpose", [operand], {"permutation": plain(order, equation)}, [(dtype, permuted)])
    return [walk.reshape(operand, shape)]


@add_rule("broadcast_in_dim")
def broadcast_in_dim(walk, equation, operands):
    ((dtype, shape),) = walk.types(equation)
    dims = [int(d) for d in equation.params["broadcast_dimensions"]]
    if compat.is_key(equation.inputs[0]):
        dims.append(len(shape) - 1)
    if not shape:
        return [operands[0]]
    return walk.emit("broadcast_in_dim", operands[:1], {"shape": list(shape), "dims": dims}, [(dtype, shape)])


@add_rule("pad")
def pad(walk, equation, operands):
    low, high, interior = ([plain(row[i], equation) for row in equation.params["padding_config"]] for i in range(3))
    return walk.emit("pad", operands, {"low": low, "high": high, "interior": interior}, walk.types(equation))


@add_rule("split")
def split(walk, equation, operands):
    """Splits an array along an axis. The offsets are sums of extents, which may be symbolic."""
    (operand,), axis, start, parts = operands, int(equation.params["axis"]), 0, []
    for size, type_ in zip(equation.params["sizes"], walk.types(equation)):
        low, high = [0] * len(operand.shape), list(operand.shape)
        low[axis], high[axis] = plain([start, start + size], equation)
        parts += walk.emit("slice", operands, {"start": low, "limit": high}, [type_])
        start += size
    return parts


@add_rule("stack")
def stack(walk, equation, operands):
    ((dtype, shape),) = walk.types(equation)
    axis = int(equation.params["axis"]) % len(shape)
    parts = [walk.reshape(walk.writer.value(operand), (*shape[:axis], 1, *shape[axis + 1 :])) for operand in operands]
    return walk.emit("concatenate", parts, {"dimension": axis}, [(dtype, shape)])


@add_rule("unstack")
def unstack(walk, equation, operands):
    axis = int(equation.params["axis"]) % len(operands[0].shape)
    return [take_one(walk, operands[0], axis, place) for place in range(len(equation.outputs))]


def take_one(walk, operand, axis: int, place: int):
    """Returns the elements at one index of a static axis, without the axis. The part of `a` at index 2 has the name `a.2`."""
    low, high = [0] * len(operand.shape), list(operand.shape)
    low[axis], high[axis] = place, place + 1
    types = [(operand.dtype, (*operand.shape[:axis], 1, *operand.shape[axis + 1 :]))]
    (part,) = walk.writer.emit("slice", [operand], {"start": low, "limit": high}, types, name=f"{operand.name}.{place}")
    return walk.reshape(part, (*operand.shape[:axis], *operand.shape[axis + 1 :]))


@add_rule("tile")
def tile(walk, equation, operands):
    """Tiles an array: broadcasts along a new axis before each axis, then reshapes."""
    ((dtype, shape),) = walk.types(equation)
    repeats, extents = [int(n) for n in equation.params["reps"]], operands[0].shape
    extents = (1,) * (len(repeats) - len(extents)) + tuple(extents)
    repeats = [1] * (len(extents) - len(repeats)) + repeats
    both = [extent for pair in zip(repeats, extents) for extent in pair]
    source = walk.reshape(walk.writer.value(operands[0]), extents)
    (repeated,) = walk.emit("broadcast_in_dim", [source], {"shape": both, "dims": list(range(1, len(both), 2))}, [(dtype, both)])
    return [walk.reshape(repeated, shape)]


@add_rule("iota")
def iota(walk, equation, operands):
    ((dtype, shape),) = walk.types(equation)
    return walk.emit("iota", [], {"dtype": dtype, "shape": list(shape), "dimension": int(equation.params["dimension"])}, [(dtype, shape)])


@add_rule("empty", "empty2")
def empty(walk, equation, operands):
    ((dtype, shape),) = walk.types(equation)
    return walk.emit("broadcast_in_dim", [Number(0, dtype)], {"shape": list(shape), "dims": []}, [(dtype, shape)])


@add_rule("dim_as_value")
def dim_as_value(walk, equation, operands):
    ((dtype, _),) = walk.types(equation)
    return walk.emit("size", [], {"extent": extent_of(equation.params["dim"], equation.fail), "dtype": dtype}, [(dtype, ())])


# Reductions and scans.

for _op in "reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or reduce_xor".split():
    add_operator(_op)
for _op in "cumsum cumprod cummax cummin cumlogsumexp".split():
    add_operator(_op)


@add_rule("psum", "pmax", "pmin")
def collective(walk, equation, operands):
    """Reduces each operand over an axis of jax.vmap, which is an axis number here. An axis of devices has a name, and is an error."""
    axes = equation.params["axes"]
    if not all(isinstance(axis, (int, np.integer)) for axis in axes) or equation.params.get("axis_index_groups") is not None:
        raise equation.fail("axes must be named by jax.vmap(axis_name=)", f"axes {axes}",
                            "Use scalide.jax.parallel(fn) in jax.shard_map, which runs collectives in JAX")  # fmt: skip
    op = f"reduce_{equation.name[1:]}"
    axes = [int(axis) for axis in axes]
    return [walk.emit(op, [walk.writer.value(operand)], {"axes": axes}, [type_])[0] for operand, type_ in zip(operands, walk.types(equation))]


@add_rule("argmax", "argmin")
def arg_reduction(walk, equation, operands):
    ((dtype, shape),) = walk.types(equation)
    (axis,) = equation.params["axes"]
    return walk.emit(equation.name, operands, {"axis": int(axis), "index_dtype": dtype}, [(dtype, shape)])


@add_rule("reduce")
def reduce(walk, equation, operands):
    """Reduces by a sub-program. The operands are the arrays, then the initial values."""
    operands = [walk.writer.value(operand) for operand in operands]
    name = walk.subprogram("reduce", equation.params["jaxpr"], [v.dtype for v in operands])
    attributes = {"program": name, "axes": plain(equation.params["dimensions"], equation)}
    return walk.emit("reduce", operands, attributes, walk.types(equation))


# Calls and control.


@add_rule(*compat.CALLS)
def call(walk, equation, operands):
    """Inlines a call. jax.nn.relu becomes the operator relu, which rules of policies match; it has the gradient of JAX at 0."""
    inner = equation.params[compat.CALLS[equation.name]]
    if equation.name == "custom_jvp_call" and _is_relu(inner):
        return walk.emit("relu", operands, {}, walk.types(equation))
    return walk.run_closed(inner, operands)


def _is_relu(closed) -> bool:
    """Returns True for a jitted function that computes max(x, 0)."""
    jaxpr, _ = compat.open_jaxpr(closed)
    if len(jaxpr.eqns) != 1 or "jaxpr" not in jaxpr.eqns[0].params:
        return False
    body, _ = compat.open_jaxpr(jaxpr.eqns[0].params["jaxpr"])
    if [eqn.primitive.name for eqn in body.eqns] != ["max"] or len(body.invars) != 1:
        return False
    x, zero = body.eqns[0].invars
    return x is body.invars[0] and isinstance(zero, compat.Literal) and zero.val == 0


@add_rule("platform_index")
def platform_index(walk, equation, operands):
    for place, platforms in enumerate(equation.params["platforms"]):
        if platforms is None or "cpu" in platforms:
            return [Number(place, "i32")]
    raise equation.fail("one of the platforms must be 'cpu'", str(equation.params["platforms"]), "Add a default")


@add_rule("debug_callback", "debug_print", "dce_sink")
def dropped(walk, equation, operands):
    if equation.name != "dce_sink":
        warn_dropped(walk, equation)
    return []


@add_rule("ffi_call")
def foreign_call(walk, equation, operands):
    raise equation.fail("native code, such as a library of Scalide, cannot be part of a program", f"a call of {equation.params['target_name']}",
                        "Trace the function from which the library was built, or call the library outside of the traced function")  # fmt: skip
