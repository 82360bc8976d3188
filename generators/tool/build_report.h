#pragma once
#include "emit/library.h"

namespace scalide {

/// Returns one line per unexpected result of a build, or an empty text. Examples are kernels that spill registers on a GPU. Another example
/// is a matmul that a library (cuBLASLt) does not compute although the target has one, with the reason.
std::string exceptions_of(const BuildReport &report, const TargetFacts &facts);

/// Throws UserError for the first matmul that must be computed by a library but is not.
void check_libraries(const BuildReport &report, const TargetFacts &facts);

/// Returns the last line of a build. It gives the number of matmuls per format, whether formats that need a scale have one, and how state
/// is stored. It ends with the share of bytes that kernels write in fewer than 32 bits. "f8_master: 18 of 18 matmuls in f8, all scaled;
/// state: 2 arrays in f32; 74 % of bytes in 8 or 16 bits".
std::string numerics_line(const BuildReport &report);

/// Returns a line about the statistics that the runs of a library collect: "statistics: 12 tensors, in each 10th run". Empty if there are
/// none.
std::string statistics_line(const BuildReport &report);

/// Returns the output of `--report`: each kernel with its steps, then each matmul with the library that computes it. For CUDA, a kernel has
/// its resources per compute capability: the most registers and shared memory of a launch, and the spilled bytes of all launches.
std::string table_of(const BuildReport &report, const TargetFacts &facts);

} // namespace scalide
