#pragma once
#include "halide_abi.h"
#include <cstddef>

namespace scalide {

/// What a kernel can ask of whoever runs it. Part of the plan version: the hooks of a shared library may be older than the runtime.
struct KernelServices {
    int (*parallel_for)(void *user_context, HalideTask task, int min, int size, uint8_t *closure);
    void *(*allocate)(void *user_context, size_t bytes); ///< does not return when memory is out
    void (*release)(void *user_context, void *memory);
    void (*error)(void *user_context, const char *message);
    /// Of kernels for devices: what they launch, and memory for what they keep between two launches.
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
