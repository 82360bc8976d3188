"""The page of the number formats, computed from the tables of dtypes.h."""
import re

from references.tables import table

HEAD = """# Number formats

Scalide stores arrays in these formats. This page lists their bits, ranges and special values.
[Scaled arrays](../concepts/scaled-arrays.md) explains how a scale extends the range of a small format.

"""
NOTES = """
- A floating-point value is `(-1)^sign * 2^(exponent - bias) * 1.mantissa`. Rounding goes to the nearest value, ties to the even one.
- `f8_e8m0fnu` has only an exponent: it stores powers of two and serves as the scale of a block. Its ties round up.
- `f64` exists only for intermediate scalars. An argument cannot have it.
- A format without infinity turns an infinity into NaN.

"""
WIDE = """
`i64` is for indices, as NumPy, PyTorch and ONNX have them. A program stores, moves, compares and converts it, and indexes by it.
Arithmetic, sums, sorting and bit operations need at most 32 bits: convert an `i64` to `i32` first.
"""


def rows(text, macro):
    body = re.search(rf"#define {macro}\(row\)(.*?)(?:\n#define|\n/\*|\n$)", text, re.S)[1]
    return [[word.strip().strip('"') for word in found.split(",")] for found in re.findall(r"row\((.*?)\)", body)]


def number(value):
    return f"{value:.7g}" if 1e-4 <= value < 1e6 else f"{value:.4g}"


def floating(exponent_bits, mantissa_bits, bias, largest, has_subnormals):
    """(largest, smallest normal, smallest) of a format whose largest finite value has this code."""
    exponent, mantissa = largest >> mantissa_bits & (1 << exponent_bits) - 1, largest & (1 << mantissa_bits) - 1
    top = 2.0 ** (exponent - bias) * (1 + mantissa / 2.0**mantissa_bits)
    if not has_subnormals:
        return top, 2.0**-bias, 2.0**-bias
    return top, 2.0 ** (1 - bias), 2.0 ** (1 - bias - mantissa_bits)


def page(root):
    text = (root / "runtime/include/scalide/dtypes.h").read_text()
    types, floats, integers = rows(text, "SCALIDE_DTYPES"), [], []
    names = {row[0]: row for row in types}
    for c_name, _, exponent, mantissa, bias, sign, infinity, subnormals, minus_zero, nan, largest, _ in rows(text, "SCALIDE_FORMATS"):
        bits = int(names[c_name][5])
        limits = floating(int(exponent), int(mantissa), int(bias), int(largest.rstrip("u"), 16), subnormals == "true")
        special = [word for word, has in (("infinity", infinity), ("NaN", "true"), ("-0", minus_zero)) if has == "true"]
        layout = f"{int(sign == 'true')} + {exponent} + {mantissa}"
        floats.append([f"`{names[c_name][2]}`", bits, layout, bias, *map(number, limits), ", ".join(special), f"`0x{int(nan.rstrip('u'), 16):0{bits // 4}x}`"])
    for _, _, name, _, kind, bits, *_ in types:
        bits = int(bits)
        if kind == "signed_integer":
            integers.append([f"`{name}`", bits, f"{-(2 ** (bits - 1))} to {2 ** (bits - 1) - 1}"])
        elif kind == "unsigned_integer":
            integers.append([f"`{name}`", bits, f"0 to {2**bits - 1}"])
        elif kind == "truth":
            integers.append([f"`{name}`", bits, "false, true"])
    headings = ["format", "bits", "sign + exponent + mantissa", "bias", "largest", "smallest normal", "smallest subnormal", "special values", "bits of NaN"]
    files = [[f"`{name}`", f"`SCALIDE_{c_name}`", f"`{safetensors}`"] for c_name, _, name, _, _, _, safetensors, *_ in types]
    return (HEAD + "## Floating-point formats\n\n" + table(headings, floats) + NOTES + "## Integers and bool\n\n" + table(["format", "bits", "range"], integers) + WIDE
            + "\n## Names in C and in safetensors files\n\n" + table(["format", "C", "safetensors"], files)
            + "\nOther readers of safetensors files do not know `F8_E3M4`, `F8_E4M3_IEEE` and `F8_E4M3B11FNUZ`.\n")  # fmt: skip
