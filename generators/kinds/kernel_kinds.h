#pragma once
#include "ir/program.h"

namespace scalide {

/// Kernels as programs. After `fuse` the main program is a list of calls. Each callee is a *kernel*: a program in base operators, one
/// loop nest, whose attribute `kind` says which; `lower` has one function a kind, and so has this folder, which is the contract between
/// the two. Types and extents are those that ir/verify.h checks; README.md has the table.
///
/// Why a program is no kernel of the kind that it names, as `<op>.<value>: <requirement>, got <value>`; empty when it is one.
std::string why_illegal(const Program &kernel);

/// The names of all kinds.
std::vector<std::string> kernel_kinds();

} // namespace scalide
