#pragma once
#include "emit/card_use.h"
#include "emit/plan.h"

namespace scalide {

/// A program of a library, and the C function of each of its kernels (without `_argv`).
struct PlannedProgram {
    const Plan &plan;
    const Program &fused;
    std::map<std::string, std::string> kernel_symbols;
};

/// The plans as C source for runtime/include/scalide/plan.h: read-only tables and `const scalide_program *<program>_program(void)`.
/// Variants stand behind their program.
std::string plan_source(const std::vector<PlannedProgram> &programs);

/// A C99 header (C++ too): of each program its function, the order of its arguments, and a struct of arrays with a typed bind.
std::string plan_header(const std::string &library, const std::vector<Plan> &plans);

/// The same facts for other tools, as JSON: `programs`, each with arguments, symbols, buffers with dtypes and lifetimes, steps, kernels;
/// `variants`, which are as programs, are for their `cards`. Kernels that are in `uses`, by C function, have their launches by card.
std::string plan_manifest(const std::string &library, const std::vector<PlannedProgram> &programs,
                          const std::map<std::string, std::vector<CardUse>> &uses);

/// Throws UserError where two programs of a library would have the same names in C.
void check_identifiers(const std::vector<Plan> &plans);

} // namespace scalide
