#pragma once
#include "lower/kernel/lowered_kernel.h"

namespace scalide {

/// Applies a mutator to all definitions of all Funcs of a lowered kernel.
inline void mutate_definitions(LoweredKernel &kernel, Halide::Internal::IRMutator &mutator) {
    std::map<std::string, Halide::Internal::Function> all;
    for (const KernelOutput &output : kernel.outputs) all.merge(Halide::Internal::find_transitive_calls(output.func.function()));
    for (auto &[name, function] : all) function.mutate(&mutator);
}

} // namespace scalide
