#pragma once
#include "emit/library.h"

namespace scalide {

/// What a build left out that one would want to know: kernels that spill registers on a card, products of matrices that no library
/// computes on a target that has one, with the reason. A line each; nothing where all is well.
std::string exceptions_of(const BuildReport &report, const TargetFacts &facts);

/// The last line of a build: products by format, whether what needs a scale has one, how state is stored, and the share of bytes that
/// kernels write in fewer than 32 bits. "f8_master: 18 of 18 matmuls in f8, all scaled; state: 2 arrays in f32; 74 % of bytes in 8 or 16
/// bits".
std::string numerics_line(const BuildReport &report);

/// `--report`: each kernel with its steps and, for CUDA, what it uses by card (most registers and shared memory of a launch, spilled bytes
/// of all); then each product of matrices with the library that computes it.
std::string table_of(const BuildReport &report, const TargetFacts &facts);

} // namespace scalide
