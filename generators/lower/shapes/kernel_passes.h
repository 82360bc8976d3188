#pragma once
#include "ir/program.h"
#include <functional>

namespace scalide {

/// Called with the program of a kernel that a pass made, and the name of the pass.
using AfterPass = std::function<void(const std::string &pass, const Program &kernel)>;

/// Runs the passes that change the axes of a kernel before it is lowered, each for the kernel classes to which it applies. Its elements and
/// the memory of its arguments and results stay the same, only their shapes change. Checks the program after each pass.
Program shape_kernel(const Program &kernel, const AfterPass &after_pass = {});

/// Returns the names of these passes, in order.
const std::vector<std::string> &kernel_pass_names();

} // namespace scalide
