#pragma once
#include "ir/program.h"

namespace scalide {

/// Returns a line for each loop and branch of a fused program: its kernels, by their numbers in the order of calls, its steps, and the
/// bytes of what it carries and stacks. `runs_on_gpu`: the host runs its steps.
std::string list_loops(const Program &fused, bool runs_on_gpu);

} // namespace scalide
