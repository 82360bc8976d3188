#pragma once
#include <map>
#include <string>

namespace scalide {

/// What the text of a kernel's PTX may use.
enum class InstructionSet {
    sm_80, ///< integer arithmetic in place of FP8 conversions
    sm_89, ///< FP8 conversions: Ada, Hopper and all later cards
};

/// The instruction set of a card, by its compute capability (80, 89, 90 ...).
InstructionSet instruction_set(int card);

/// Halide 21 makes PTX for sm_80, in which lower/halide/device_ops.h marks the instructions that it cannot name. Puts these in, sets the
/// header of the instruction set, tells each entry the threads of its launches (`threads`, by entry; those that are not there stay open)
/// and, where `resident` is not 0, how many threads all blocks on a multiprocessor are at least, which bounds their registers, and gives
/// shared memory the address that the card has for it: Halide takes 0. Nothing flushes subnormal numbers, as Halide's floor and ceil do,
/// and sums and products are rounded: what is contracted, LLVM has made fma. Throws InternalError for a marker that it does not know.
std::string rewrite_ptx(const std::string &ptx, InstructionSet set, const std::map<std::string, int> &threads, int resident = 0);

} // namespace scalide
