#pragma once
#include <map>
#include <string>

namespace scalide {

/// The instruction sets for PTX.
enum class InstructionSet {
    sm_80, ///< integer arithmetic in place of FP8 conversions
    sm_89, ///< with FP8 conversions: Ada, Hopper and later
};

/// Returns the instruction set of a compute capability (80, 89, 90 ...).
InstructionSet instruction_set(int card);

/// Rewrites the PTX of Halide 21, which is for sm_80. lower/halide/device_ops.h marks the instructions that Halide cannot express.
/// - Replaces the marks by instructions, and sets the header of the instruction set.
/// - States for each entry the threads of its launches, if `threads` has them. If `resident` is not 0, also states a minimum of threads on
/// a multiprocessor, which bounds the registers.
/// - Gives shared memory its address on the GPU, because Halide assumes address 0.
/// - Keeps subnormal numbers, which Halide's floor and ceil would flush.
/// - Rounds each sum and product, because LLVM has already formed the intended FMAs.
/// Throws InternalError for an unknown mark.
std::string rewrite_ptx(const std::string &ptx, InstructionSet set, const std::map<std::string, int> &threads, int resident = 0);

} // namespace scalide
