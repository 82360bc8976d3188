#pragma once
#include "emit/built_form.h"
#include "emit/card_use.h"

namespace scalide {

/// Returns the plans as C source for runtime/include/scalide/plan.h: read-only tables and `const scalide_program *<program>_program(void)`.
std::string plan_source(const BuiltPrograms &programs);

/// Returns the name of the file without its folder, and the line: "net.scl:4". Returns "" without a line.
std::string short_location(const Location &location);

/// Returns a hash of what a caller must know of the arguments of a program, in order, as a C constant. The plan and the header have it.
std::string signature_of(const Plan &plan);

/// Returns a header for C99 and C++. For each program it has the function, the order of the arguments, and a struct of arrays with a typed
/// bind that checks the signature. `targets`: the targets of the library in words.
std::string plan_header(const std::string &library, const BuiltPrograms &programs, const std::string &targets);

/// Returns the same facts as JSON for other tools. `programs` have arguments, symbols, buffers with dtypes and lifetimes, steps and
/// kernels. `variants` have the same form, and the `cards`, the `cpu` or the `values` of symbols for which they are. Kernels in `uses`, by
/// C function, list their launches by compute capability.
std::string plan_manifest(const std::string &library, const BuiltPrograms &programs,
                          const std::map<std::string, std::vector<CardUse>> &uses);

/// Throws UserError if two programs of a library would have the same C names.
void check_identifiers(const BuiltPrograms &programs);

} // namespace scalide
