#pragma once
#include "ir/program.h"

namespace scalide {

/// The contract of kernels between `fuse` and `lower`. After `fuse`, the main program is a list of calls. Each callee is a *kernel*: a
/// program in base operators that becomes one loop nest. Its attribute `kind` names its kernel class; `lower` and this folder have one
/// function for each. ir/verify.h checks types and extents. README.md has the table of kinds.
///
/// Returns why a program is no kernel of its kind, as `<op>.<value>: <requirement>, got <value>`; empty if it is one.
std::string why_illegal(const Program &kernel);

/// Returns the names of all kinds.
std::vector<std::string> kernel_kinds();

} // namespace scalide
