"""The rules for matmuls, convolutions, windows, indexing, sorting and random bits."""
from __future__ import annotations

import math

import numpy as np
from jax import lax

from .. import arrays
from . import compat
from .primitives import add_operator, add_rule, plain, take_one, refuse_others
from .text import Number, is_float
from .walk import dtype_of


def _as_factors(walk, equation, operands, dtype: str) -> list:
    """Returns the operands of a matmul with this dtype. As in JAX, integers and bools are cast if the other operand is a float, and bools if it is
    an integer."""

    def kind(dtype):
        return "float" if is_float(dtype) else "bool" if dtype == "bool" else "integer"

    if not is_float(dtype) and any(is_float(operand.dtype) for operand in operands):
        raise equation.fail("a matmul of floats must have a float result", dtype, "Leave out preferred_element_type, and convert the result")
    return [walk.convert(operand, dtype) if kind(operand.dtype) != kind(dtype) else operand for operand in operands]


@add_rule("dot_general")
def dot_general(walk, equation, operands):
    refuse_others(equation, {"dimension_numbers", "preferred_element_type"})
    contract, batch = equation.params["dimension_numbers"]
    ((dtype, shape),) = walk.types(equation)
    attributes = {"contract": plain(contract, equation)}
    if batch[0]:
        attributes["batch"] = plain(batch, equation)
    operands = _as_factors(walk, equation, operands, dtype)
    if dtype != operands[0].dtype or dtype != operands[1].dtype:
        attributes["preferred"] = dtype
    if dtype == "bool":  # true if any pair is true: counts the pairs, then casts
        counted = [walk.convert(operand, "i32") for operand in operands]
        (count,) = walk.emit("dot_general", counted, attributes, [("i32", shape)])
        return [walk.convert(count, "bool")]
    return walk.emit("dot_general", operands, attributes, [(dtype, shape)])


@add_rule("scaled_matmul_wrapper", "scaled_matmul")
def scaled_matmul(walk, equation, operands):
    """Maps jax.nn.scaled_matmul, and jax.nn.scaled_dot_general. JAX traces the quantization of the operands before it."""
    ((dtype, shape),) = walk.types(equation)
    return walk.emit("scaled_matmul", operands, {"preferred": dtype}, [(dtype, shape)])


def _padding(pairs, equation) -> dict:
    return {"low": [plain(low, equation) for low, _ in pairs], "high": [plain(high, equation) for _, high in pairs]}


@add_rule("conv_general_dilated")
def convolution(walk, equation, operands):
    params = equation.params
    numbers = params["dimension_numbers"]
    refuse_others(equation, set("window_strides padding lhs_dilation rhs_dilation dimension_numbers feature_group_count batch_group_count "
                                 "preferred_element_type".split()))  # fmt: skip
    ((dtype, shape),) = walk.types(equation)
    attributes = {"strides": plain(params["window_strides"], equation), **_padding(params["padding"], equation)}
    for name in ("lhs_dilation", "rhs_dilation"):
        attributes[name] = plain(params[name], equation)
    for name in ("lhs_spec", "rhs_spec", "out_spec"):
        attributes[name] = plain(getattr(numbers, name), equation)
    for name in ("feature_group_count", "batch_group_count"):
        attributes[name] = int(params[name])
    operands = _as_factors(walk, equation, operands, dtype)
    if dtype != operands[0].dtype or dtype != operands[1].dtype:
        attributes["preferred"] = dtype
    return walk.emit("conv_general_dilated", operands, attributes, [(dtype, shape)])


def _window(params, equation) -> dict:
    names = {"window_dimensions": "window", "window_strides": "strides", "base_dilation": "base_dilation", "window_dilation": "window_dilation"}
    return {ours: plain(params[theirs], equation) for theirs, ours in names.items() if theirs in params} | _padding(params["padding"], equation)


@add_rule("reduce_window_sum", "reduce_window_max", "reduce_window_min")
def reduce_window(walk, equation, operands):
    return walk.emit(equation.name, operands, _window(equation.params, equation), walk.types(equation))


@add_rule("reduce_window")
def reduce_window_by_program(walk, equation, operands):
    operands = [walk.writer.value(operand) for operand in operands]
    name = walk.subprogram("window", equation.params["jaxpr"], [v.dtype for v in operands])
    return walk.emit("reduce_window", operands, {"program": name, **_window(equation.params, equation)}, walk.types(equation))


@add_rule("select_and_scatter_add", "select_and_gather_add")
def select_and_move(walk, equation, operands):
    largest = equation.params["select_prim"].name == "ge"
    return walk.emit(equation.name, operands, {"largest": largest, **_window(equation.params, equation)}, walk.types(equation))


# Indexing. Dimension numbers have the same names.

MODES = {
    lax.GatherScatterMode.CLIP: "clip",
    lax.GatherScatterMode.FILL_OR_DROP: "fill_or_drop",
    lax.GatherScatterMode.PROMISE_IN_BOUNDS: "promise_in_bounds",
}


def _indexing(equation) -> dict:
    mode = lax.GatherScatterMode.from_any(equation.params["mode"])
    if mode not in MODES:
        raise equation.fail("mode must be clip, fill or promise_in_bounds", str(mode), "Use one of them")
    numbers = equation.params["dimension_numbers"]
    attributes = {name: plain(value, equation) for name, value in vars(numbers).items()} if hasattr(numbers, "__dict__") else numbers._asdict()
    return {name: value for name, value in attributes.items() if value or "batching" not in name} | {"mode": MODES[mode]}


def _fill_value(equation, dtype: str):
    """Returns the fill value of JAX: NaN, the smallest signed integer, the largest unsigned integer, or True."""
    if equation.params.get("fill_value") is not None:
        return plain(equation.params["fill_value"], equation)
    if dtype[0] in "ui" or dtype == "bool":
        limits = np.iinfo(arrays.numpy_dtype(dtype)) if dtype != "bool" else None
        return 1 if limits is None else int(limits.max if dtype[0] == "u" else limits.min)
    return float("nan")


@add_rule("gather")
def gather(walk, equation, operands):
    ((dtype, shape),) = walk.types(equation)
    array, indices = operands[0], walk.convert(walk.writer.value(operands[1]), "i32")
    attributes = _indexing(equation)
    sizes = plain(equation.params["slice_sizes"], equation)
    if compat.is_key(equation.inputs[0]):  # a slice has all words of a key
        sizes, attributes["offset_dims"] = [*sizes, 2], [*attributes["offset_dims"], len(shape) - 1]
    attributes["slice_sizes"] = sizes
    if attributes["mode"] == "fill_or_drop":
        attributes["fill_value"] = _fill_value(equation, dtype)
    return walk.emit("gather", [array, indices], attributes, [(dtype, shape)])


SCATTERS = {"scatter": "scatter", "scatter-add": "scatter_add", "scatter-mul": "scatter_mul", "scatter-min": "scatter_min",
            "scatter-max": "scatter_max", "scatter-sub": "scatter_add"}  # fmt: skip


@add_rule(*SCATTERS)
def scatter(walk, equation, operands):
    array, indices, updates = (walk.writer.value(operand) for operand in operands)
    if equation.name == "scatter-sub":
        (updates,) = walk.emit("neg", [updates], {}, [(updates.dtype, updates.shape)])
    attributes = _indexing(equation)
    index = _known_number(walk, indices)
    if equation.name == "scatter" and index is not None and len(array.shape) == 1 and not updates.shape and attributes["mode"] != "clip":
        return _with_element(walk, array, index, updates)
    if attributes["mode"] == "promise_in_bounds":  # XLA drops indices out of range, and gradients of x.at[i].max in JAX rely on it
        attributes["mode"] = "fill_or_drop"
    return walk.emit(SCATTERS[equation.name], [array, walk.convert(indices, "i32"), updates], attributes, walk.types(equation))


def _known_number(walk, value):
    """Returns the number of which this array consists, or None."""
    for op in ("broadcast_in_dim", "constant"):
        made_by, operands, attributes = walk.writer.nodes.get(value.name, ("", (), {}))
        if made_by == "constant":
            return attributes["value"]
        if made_by != op:
            return None
        value = operands[0]
    return None


def _with_element(walk, array, index: int, element) -> list:
    """Returns a vector with another element at an index, by operators that fuse (a scatter does not)."""
    (places,) = walk.emit("iota", [], {"dtype": "i32", "shape": list(array.shape), "dimension": 0}, [("i32", array.shape)])
    (is_there,) = walk.emit("eq", [places, Number(index, "i32")], {}, [("bool", array.shape)])
    (row,) = walk.emit("broadcast_in_dim", [element], {"shape": list(array.shape), "dims": []}, [(array.dtype, array.shape)])
    return walk.emit("select_n", [is_there, array, row], {}, [(array.dtype, array.shape)])


def _starts(walk, starts) -> list:
    return [walk.convert(start, "i32") for start in starts]


@add_rule("dynamic_slice")
def dynamic_slice(walk, equation, operands):
    sizes = plain(equation.params["slice_sizes"], equation)
    return walk.emit("dynamic_slice", [operands[0], *_starts(walk, operands[1:])], {"sizes": sizes}, walk.types(equation))


@add_rule("dynamic_update_slice")
def dynamic_update_slice(walk, equation, operands):
    return walk.emit("dynamic_update_slice", [*operands[:2], *_starts(walk, operands[2:])], {}, walk.types(equation))


# Sorting.

add_operator("sort", attributes={"dimension": "dimension", "num_keys": "num_keys"})
add_operator("approx_top_k", attributes={"k": "k", "reduction_dimension": "reduction_dimension", "is_max_k": "is_max_k"})


@add_rule("top_k")
def top_k(walk, equation, operands):
    axis = compat.top_k_axis(equation.params, len(operands[0].shape))
    return walk.emit("top_k", operands, {"k": plain(equation.params["k"], equation), "axis": axis}, walk.types(equation))


# Random bits: Threefry, bit for bit as in JAX. A key is two words.


def _check_keys(equation, aval) -> None:
    if compat.key_scheme(aval) != "threefry2x32":
        raise equation.fail("keys must use threefry2x32", compat.key_scheme(aval), "Use jax.random.key(seed), without impl")
    reason = compat.check_random_bits()
    if reason is not None:
        raise equation.fail("random bits must equal the bits of JAX", "another order of bits", reason)


def _mixed(walk, keys, places, shape: tuple) -> list:
    """Returns the two random words for each key (u32[..., 2]) and counter. `places` is one counter, or an array of counters.

    The first axes of `shape` are the axes of the keys, the last axes are the axes of the counters.
    """
    words = [take_one(walk, walk.writer.value(keys), len(keys.shape) - 1, word) for word in range(2)]
    operands = [_along(walk, word, shape, 0) for word in words] + [Number(0, "u32"), _along(walk, places, shape, len(shape) - len(places.shape))]
    return [walk.emit("threefry2x32", operands, {"word": word}, [("u32", shape)])[0] for word in range(2)]


def _along(walk, operand, shape: tuple, first: int):
    """Broadcasts an operand to `shape`. Its axes are the axes of `shape` from number `first` on."""
    if not operand.shape or tuple(operand.shape) == tuple(shape):
        return operand
    attributes = {"shape": list(shape), "dims": [first + axis for axis in range(len(operand.shape))]}
    return walk.emit("broadcast_in_dim", [operand], attributes, [(operand.dtype, shape)])[0]


def _places(walk, equation, shape: tuple):
    """Returns the counters 0, 1, ... as an array of this shape."""
    if any(isinstance(extent, str) for extent in shape):
        raise equation.fail("the result of one key among several must have a static shape", f"({', '.join(map(str, shape))})", "Draw all numbers from one key")
    count = math.prod(shape)
    (line,) = walk.emit("iota", [], {"dtype": "u32", "shape": [count], "dimension": 0}, [("u32", (count,))])
    return walk.reshape(line, shape)


def _keys(walk, words: list):
    """Returns an array of keys from their first and second words."""
    shape = (*words[0].shape, 2)
    parts = [walk.reshape(word, (*word.shape, 1)) for word in words]
    return walk.emit("concatenate", parts, {"dimension": len(shape) - 1}, [("u32", shape)])


@add_rule("random_seed")
def random_seed(walk, equation, operands):
    _check_keys(equation, equation.outputs[0])
    return walk.emit("random_seed", operands, {}, walk.types(equation))


@add_rule("random_wrap", "random_unwrap")
def random_wrap(walk, equation, operands):
    _check_keys(equation, equation.outputs[0] if equation.name == "random_wrap" else equation.inputs[0])
    return operands


# One key needs one operator. For many keys, as in jax.vmap, each key is mixed with its counters.


@add_rule("random_bits")
def random_bits(walk, equation, operands):
    _check_keys(equation, equation.inputs[0])
    ((dtype, shape),) = walk.types(equation)
    if not equation.inputs[0].shape:
        return walk.emit("random_bits", operands, {"shape": list(shape), "dtype": dtype}, [(dtype, shape)])
    own = shape[len(equation.inputs[0].shape) :]
    high, low = _mixed(walk, operands[0], _places(walk, equation, own), shape)
    return [walk.convert(walk.emit("xor", [high, low], {}, [("u32", shape)])[0], dtype)]


@add_rule("random_split")
def random_split(walk, equation, operands):
    _check_keys(equation, equation.inputs[0])
    ((dtype, shape),) = walk.types(equation)
    if not equation.inputs[0].shape:
        return walk.emit("random_split", operands, {"shape": list(shape[:-1])}, [(dtype, shape)])
    return _keys(walk, _mixed(walk, operands[0], _places(walk, equation, shape[len(equation.inputs[0].shape) : -1]), shape[:-1]))


@add_rule("random_fold_in")
def random_fold_in(walk, equation, operands):
    _check_keys(equation, equation.inputs[0])
    ((dtype, shape),) = walk.types(equation)
    if not equation.inputs[0].shape and not equation.inputs[1].shape:
        return walk.emit("random_fold_in", operands, {}, [(dtype, shape)])
    return _keys(walk, _mixed(walk, *operands, shape[:-1]))


@add_rule("iota_2x32_shape")
def counters(walk, equation, operands):
    """Counts the elements of a shape: the high and the low 32 bits of each number. Arrays have less than 2^32 elements, so the high bits are 0."""
    types = walk.types(equation)
    (high,) = walk.emit("broadcast_in_dim", [Number(0, "u32")], {"shape": list(types[0][1]), "dims": []}, [types[0]])
    return [high, _places(walk, equation, types[1][1])]


@add_rule("threefry2x32")
def threefry2x32(walk, equation, operands):
    types = walk.types(equation)
    words = [walk.broadcast(operand, types[0][1]) for operand in operands]
    return [walk.emit("threefry2x32", words, {"word": word}, [types[word]])[0] for word in range(2)]
