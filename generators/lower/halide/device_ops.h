#pragma once
#include <Halide.h>

// Conversions and functions that NVIDIA GPUs have as instructions and Halide 21 cannot emit. Each is lowered to a placeholder, a dot
// product of bytes whose third operand is a constant that names the operation. emit/ptx.cpp replaces it in the PTX text, where it is one
// line, by the instructions in emit/device_functions.cpp. To LLVM the placeholder is a pure operation on words, so it is no barrier, and
// loads stay wide. (A call would split a 16-byte load into four.) CUDA only.

namespace scalide {

/// The lowest byte of the placeholder's constant. An f32 is passed and returned as its bits.
enum class DeviceOp : int {
    e4m3_to_f32 = 0x10, ///< decodes the lowest byte of a word
    f16_to_f32 = 0x11,  ///< decodes the lower half of a word
    f32_to_e4m3 = 0x40, ///< encodes into the lowest byte; clips (Overflow::clip), NaN becomes 0x7f
    f32_to_e5m2 = 0x50,
    f32_to_bf16 = 0x60, ///< encodes into the lower half; an overflow becomes infinity, NaN becomes 0x7fff
    f32_to_f16 = 0x61,
    exp = 0x80,
    exp_rounded, ///< `rounded`: for a result that is rounded to at most 11 bits
    exp2,
    expm1,
    logistic,
    logistic_rounded,
    tanh,
    tanh_stored, ///< for a result that is stored with at most 8 bits
    erf,
    erfc,
    log,
    log2,
    sqrt,
    rsqrt,
    divisor_scale, ///< a power of two s with which the reciprocal of b * s is a normal number
    reciprocal,    ///< of a number b * s
};

constexpr uint32_t device_op_mark = 0x5ca11d00;

/// `word` and the result are UInt(32).
Halide::Expr device_op(DeviceOp op, const Halide::Expr &word);

/// True if an expression reads memory or depends on a loop, so a placeholder may be used. Halide 21's LLVM cannot select instructions for a
/// placeholder of constants.
bool may_be_device_op(const Halide::Expr &word);

} // namespace scalide
