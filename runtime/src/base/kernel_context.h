#pragma once
#include "base/halide_abi.h"
#include <cstddef>

namespace scalide {

/// The services that the runtime offers to kernels. They are part of the plan version, because the hooks of a shared library may be older
/// than the runtime.
struct KernelServices {
    int (*parallel_for)(void *user_context, HalideTask task, int min, int size, uint8_t *closure);
    void *(*allocate)(void *user_context, size_t bytes); ///< does not return if memory is lacking
    void (*release)(void *user_context, void *memory);
    void (*error)(void *user_context, const char *message);
    /// For kernels on devices: launches, and memory for data that they keep between two launches.
    int (*launch)(void *user_context, const HalideLaunch &launch);
    int (*allocate_on_device)(void *user_context, HalideBuffer *buffer);
};

constexpr uint64_t kernel_context_mark = 0x5343414c49444531; // "SCALIDE1"

/// The user context of Scalide's kernels begins with this structure.
struct KernelContext {
    uint64_t mark;
    const KernelServices *services;
};

} // namespace scalide
