"""Replaces the product of an FP8 array and a scale by the operator dequantize. A matmul then reads the array in FP8."""
from __future__ import annotations

from .. import arrays
from .text import Value, Writer, is_float


def fold_dequantization(writer: Writer) -> None:
    """Replaces each `q.astype(dtype) * scale` in which q is FP8 and scale has one element. Nodes that a gradient also reads stay."""
    lines, writer.lines = writer.lines, []
    for line in lines:
        found = _operands_of(writer, line.makes[0]) if len(line.makes) == 1 else None
        if found:
            q, scale = found
            writer.scope, writer.is_cotangent, writer.place = line.scope, line.is_cotangent, line.place
            if scale.shape:
                (scale,) = writer.emit("reshape", [scale], {"shape": []}, [(scale.dtype, ())])
            writer.rewrite(line, "dequantize", [q, scale], {"dtype": line.makes[0].dtype})
        writer.lines.append(line)
    writer.scope, writer.is_cotangent, writer.place = "", False, None


def _operands_of(writer: Writer, product: Value):
    """Returns the array and the scale whose product this value is, or None."""
    op, operands, _ = writer.nodes.get(product.name, ("", (), {}))
    if op != "mul" or product.scaled or not all(isinstance(operand, Value) for operand in operands):
        return None
    for wide, factor in (operands, operands[::-1]):
        q, scale = _read(writer, "convert_element_type", wide), _read(writer, "broadcast_in_dim", factor) or factor
        if q and q.shape == product.shape and is_float(q.dtype) and arrays.numpy_dtype(q.dtype).itemsize == 1 and all(n == 1 for n in scale.shape):
            return q, scale
    return None


def _read(writer: Writer, op: str, value: Value):
    """Returns the operand of the node that makes a value, if its operator is op."""
    made_by, operands, _ = writer.nodes.get(value.name, ("", (), {}))
    return operands[0] if made_by == op and isinstance(operands[0], Value) else None
