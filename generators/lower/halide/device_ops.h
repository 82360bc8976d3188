#pragma once
#include <Halide.h>

// FP8 conversions that NVIDIA GPUs have as instructions and Halide 21 cannot emit. Each is lowered to a placeholder, a dot product of bytes
// whose third operand is a constant that names the conversion. emit/ptx.cpp replaces it in the PTX text, where it is one line. To LLVM the
// placeholder is a pure operation on words, so it is no barrier, and loads stay wide. (A call would split a 16-byte load into four.) CUDA
// only.

namespace scalide {

/// The lowest byte of the placeholder's constant.
enum class DeviceOp : int {
    e4m3_to_f32 = 0x10, ///< decodes the lowest byte of a word
    f32_to_e4m3 = 0x40, ///< encodes into the lowest byte; clips (Overflow::clip), NaN becomes 0x7f
    f32_to_e5m2 = 0x50,
};

constexpr uint32_t device_op_mark = 0x5ca11d00;

/// `word` and the result are UInt(32). An f32 is passed as its bits.
Halide::Expr device_op(DeviceOp op, const Halide::Expr &word);

} // namespace scalide
