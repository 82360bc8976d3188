/* The element types (dtypes). Each dtype has one row, and all other tables of dtypes are built from these rows. The numbers are part of the
 * file formats and never change. The Python package has its own table; a test compares it with this one. */
#ifndef SCALIDE_DTYPES_H
#define SCALIDE_DTYPES_H

/* row(C name, C++ name, text, number, kind, bits in memory, safetensors, XLA_FFI_DataType, cudaDataType_t)
 *   text              the name in programs and policies
 *   kind              one of SCALIDE_DTYPE_KINDS
 *   safetensors       the name in safetensors files. F8_E3M4, F8_E4M3_IEEE and F8_E4M3B11FNUZ are extensions of Scalide, which other
 *                     readers reject.
 *                     F8_E4M3 is the standard name of f8_e4m3fn.
 *   XLA_FFI_DataType  the number in XLA custom calls
 *   cudaDataType_t    the number in cuBLASLt; -1 if no cuBLASLt matmul supports the dtype
 * f64 is for scalar intermediate values only. It is never the dtype of an argument. i64 is for indices: programs store, move, compare and
 * convert it, and index by it, but arithmetic has at most 32 bits. */
/* clang-format off */
#define SCALIDE_DTYPES(row)                                                                             \
    row(F32,         f32,         "f32",         0,  floating,         32, "F32",         11, 0)        \
    row(F16,         f16,         "f16",         1,  floating,         16, "F16",         10, 2)        \
    row(BF16,        bf16,        "bf16",        2,  floating,         16, "BF16",        16, 14)       \
    row(F8_E4M3FN,   f8_e4m3fn,   "f8_e4m3fn",   3,  floating,         8,  "F8_E4M3",     20, 28)       \
    row(F8_E5M2,     f8_e5m2,     "f8_e5m2",     4,  floating,         8,  "F8_E5M2",     19, 29)       \
    row(F8_E4M3FNUZ, f8_e4m3fnuz, "f8_e4m3fnuz", 5,  floating,         8,  "F8_E4M3FNUZ", 25, -1)       \
    row(F8_E5M2FNUZ, f8_e5m2fnuz, "f8_e5m2fnuz", 6,  floating,         8,  "F8_E5M2FNUZ", 24, -1)       \
    row(F8_E8M0FNU,  f8_e8m0fnu,  "f8_e8m0fnu",  7,  floating,         8,  "F8_E8M0",     33, -1)       \
    row(I32,         i32,         "i32",         8,  signed_integer,   32, "I32",         4,  -1)       \
    row(BOOL,        boolean,     "bool",        9,  truth,            8,  "BOOL",        1,  -1)       \
    row(F64,         f64,         "f64",         10, floating,         64, "F64",         12, -1)       \
    row(I8,          i8,          "i8",          11, signed_integer,   8,  "I8",          2,  -1)       \
    row(U8,          u8,          "u8",          12, unsigned_integer, 8,  "U8",          6,  -1)       \
    row(I16,         i16,         "i16",         13, signed_integer,   16, "I16",         3,  -1)       \
    row(U16,         u16,         "u16",         14, unsigned_integer, 16, "U16",         7,  -1)       \
    row(U32,         u32,         "u32",         15, unsigned_integer, 32, "U32",         8,  -1)       \
    row(F8_E3M4,     f8_e3m4,     "f8_e3m4",     16, floating,         8,  "F8_E3M4",     29, -1)       \
    row(F8_E4M3,     f8_e4m3,     "f8_e4m3",     17, floating,         8,  "F8_E4M3_IEEE", 28, -1)      \
    row(F8_E4M3B11FNUZ, f8_e4m3b11fnuz, "f8_e4m3b11fnuz", 18, floating, 8, "F8_E4M3B11FNUZ", 23, -1)    \
    row(I64,         i64,         "i64",         19, signed_integer,   64, "I64",         5,  -1)
#define SCALIDE_DTYPE_COUNT 20
#define SCALIDE_DTYPE_KINDS floating, signed_integer, unsigned_integer, truth

/* The float formats of at most 32 bits.
 * row(C name, C++ name, exponent bits, mantissa bits, bias, sign, infinity, subnormals, -0, NaN, largest, half-way cases)
 *   sign, infinity, subnormals, -0   whether the format has them
 *   NaN, largest                     the bit patterns of NaN and of the largest finite number
 *   half-way cases                   how a value halfway between two numbers is rounded
 * A normal number is (-1)^s * 2^(e - bias) * 1.m. In a format without -0 (fnuz), the bit pattern of -0 is NaN.
 * Origins: OCP 8-bit floating point (f8_e4m3fn, f8_e5m2), Graphcore and AMD (fnuz), OCP MX (f8_e8m0fnu), IEEE-like 8-bit formats (f8_e3m4,
 * f8_e4m3), the first FP8 format of TPUs (f8_e4m3b11fnuz). */
#define SCALIDE_FORMATS(row)                                                                            \
    row(F32,         f32,         8, 23, 127, true,  true,  true,  true,  0x7fc00000u, 0x7f7fffffu, even) \
    row(F16,         f16,         5, 10, 15,  true,  true,  true,  true,  0x7e00u,     0x7bffu,     even) \
    row(BF16,        bf16,        8, 7,  127, true,  true,  true,  true,  0x7fc0u,     0x7f7fu,     even) \
    row(F8_E4M3FN,   f8_e4m3fn,   4, 3,  7,   true,  false, true,  true,  0x7fu,       0x7eu,       even) \
    row(F8_E5M2,     f8_e5m2,     5, 2,  15,  true,  true,  true,  true,  0x7eu,       0x7bu,       even) \
    row(F8_E4M3FNUZ, f8_e4m3fnuz, 4, 3,  8,   true,  false, true,  false, 0x80u,       0x7fu,       even) \
    row(F8_E5M2FNUZ, f8_e5m2fnuz, 5, 2,  16,  true,  false, true,  false, 0x80u,       0x7fu,       even) \
    row(F8_E8M0FNU,  f8_e8m0fnu,  8, 0,  127, false, false, false, false, 0xffu,       0xfeu,       up)   \
    row(F8_E3M4,     f8_e3m4,     3, 4,  3,   true,  true,  true,  true,  0x78u,       0x6fu,       even) \
    row(F8_E4M3,     f8_e4m3,     4, 3,  7,   true,  true,  true,  true,  0x7cu,       0x77u,       even) \
    row(F8_E4M3B11FNUZ, f8_e4m3b11fnuz, 4, 3, 11, true, false, true, false, 0x80u,     0x7fu,       even)
/* clang-format on */

#endif
