#pragma once
#include "fuzz/choices.h"
#include "scalide/scalide.h"

namespace scalide {

/// Returns a new context on the CPU.
inline scalide_context *new_context(int threads) {
    scalide_options options = {};
    options.struct_size = sizeof(options);
    options.threads = threads;
    scalide_context *context = nullptr;
    expect(scalide_context_create(&options, &context) == SCALIDE_OK, "there is a context");
    return context;
}

} // namespace scalide
