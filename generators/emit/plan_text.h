#pragma once
#include "emit/plan.h"

namespace scalide {

/// The plan as C source for runtime/include/scalide/plan.h: read-only tables and `const scalide_program *<name>_program(void)`.
/// `kernel_symbols` names the C function of each kernel (without `_argv`).
std::string plan_source(const Plan &plan, const std::map<std::string, std::string> &kernel_symbols);

/// A C99 header (C++ too): the program's function, the order of its arguments, and a struct of arrays with a typed bind.
std::string plan_header(const Plan &plan);

/// The same facts for other tools, as JSON: arguments, symbols, buffers with dtypes and lifetimes, steps, kernels.
std::string plan_manifest(const Plan &plan, const Program &fused, const std::map<std::string, std::string> &kernel_symbols);

/// A name as a C identifier.
std::string to_identifier(const std::string &name);

} // namespace scalide
