/* The manifest of element types: everything that is known of one stands in its row, and the tables of the generators (ir/dtype.h) and of
 * the runtime are made of these rows. The numbers never change. Python's names: generators/frontend/python/scalide/arrays.py, compared with
 * these by tests/python/test_dtypes.py. */
#ifndef SCALIDE_DTYPES_H
#define SCALIDE_DTYPES_H

/* row(C name, C++ name, text, number, kind, bits in memory, safetensors, XLA_FFI_DataType, cudaDataType_t)
 * kind: one of SCALIDE_DTYPE_KINDS. cudaDataType_t: -1 where no matmul of cuBLASLt takes it.
 * f64 is for rank-0 intermediates only, never an argument. safetensors: the last three are no names of that format, whose F8_E4M3 is
 * f8_e4m3fn; other readers refuse them. */
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
    row(F8_E4M3B11FNUZ, f8_e4m3b11fnuz, "f8_e4m3b11fnuz", 18, floating, 8, "F8_E4M3B11FNUZ", 23, -1)
#define SCALIDE_DTYPE_COUNT 19
#define SCALIDE_DTYPE_KINDS floating, signed_integer, unsigned_integer, truth

/* row(C name, C++ name, exponent bits, mantissa bits, bias, sign, infinity, subnormals, -0, code of NaN, code of the largest finite value,
 *     half-way cases): floats of at most 32 bits. value = (-1)^s * 2^(e - bias) * 1.m; without -0 its code is NaN (fnuz). OCP 8-bit
 * floating point (2023), the fnuz forms of Graphcore and AMD, OCP MX (e8m0), IEEE-like 8-bit formats (e3m4, e4m3), the first FP8 of TPUs
 * (e4m3b11fnuz). */
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
