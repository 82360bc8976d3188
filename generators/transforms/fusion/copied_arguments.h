#pragma once
#include "ir/program.h"

namespace scalide {

/// An inout argument that the program changes in a part only: by a chain of scatters and dynamic_update_slices.
struct PartialUpdate {
    std::string argument;
    Location location; ///< of the last update
};

/// Returns the arguments that a program changes in a part only. `program` is inlined and simplified, without the formats of a policy.
std::vector<PartialUpdate> partial_updates(const Program &program);

/// An inout argument that kernels write as a whole although the program changes a part of it.
struct CopiedArgument {
    PartialUpdate update;
    std::string reason;
};

/// Returns the arguments of `updates` that the kernels of the program do not update in place, without small arguments (below 1 MiB).
/// Symbols have nominal sizes.
std::vector<CopiedArgument> copied_arguments(const Program &fused, const std::vector<PartialUpdate> &updates);

} // namespace scalide
