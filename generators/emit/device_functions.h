#pragma once
#include "lower/halide/device_ops.h"
#include <span>
#include <string>

namespace scalide {

/// PTX for an operation that lowering marks: $d is the result and $a the operand, in 32-bit registers. A text has its own scope for
/// registers.
struct DeviceFunction {
    DeviceOp op;
    std::string sm_80, sm_89; ///< by instruction set (ptx.h)
};

std::span<const DeviceFunction> device_functions();

/// Returns the text of a DeviceFunction with these registers.
std::string with_registers(std::string text, const std::string &result, const std::string &operand);

} // namespace scalide
