#pragma once
#include <Halide.h>

// Conversions of FP8 that cards have as instructions and Halide 21 cannot name. Each is written as a dot product of bytes whose third
// operand is a constant that says what is meant: to LLVM a pure operation on words, so that nothing is a barrier and loads stay wide; in
// the PTX one line, which emit/ptx.cpp replaces. (A call would split a load of 16 bytes into four.) For CUDA alone.

namespace scalide {

/// The lowest byte of the marker's constant.
enum class DeviceOp : int {
    e4m3_to_f32 = 0x10, ///< of the lowest byte of a word
    f32_to_e4m3 = 0x40, ///< into the lowest byte; clips (Overflow::clip), NaN becomes 0x7f
    f32_to_e5m2 = 0x50,
};

constexpr uint32_t device_op_mark = 0x5ca11d00;

/// `word` and the result are UInt(32); f32 as its bits.
Halide::Expr device_op(DeviceOp op, const Halide::Expr &word);

} // namespace scalide
