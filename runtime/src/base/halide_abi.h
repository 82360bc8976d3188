#pragma once
#include <cstddef>
#include <cstdint>

/// The part of Halide 21's HalideRuntime.h that kernels and runtime share. It is repeated here because applications do not have Halide.
namespace scalide {

struct HalideDimension {
    int32_t min, extent, stride;
    uint32_t flags;
};

/// The element types that kernels see. FP16 and FP8 are stored as unsigned integers.
struct HalideType {
    uint8_t code; ///< 0 int, 1 unsigned int, 2 float
    uint8_t bits;
    uint16_t lanes;
};

struct HalideBuffer {
    uint64_t device;
    const void *device_interface;
    uint8_t *host;
    uint64_t flags;
    HalideType type;
    int32_t dimensions;
    HalideDimension *dim; ///< innermost first
    void *padding;
};
static_assert(sizeof(HalideBuffer) == 56 && sizeof(HalideDimension) == 16, "layout of halide_buffer_t");

/// What a kernel's host code passes to `halide_<device>_run`. The arguments end at the first NULL. Buffers are passed as HalideBuffer.
struct HalideLaunch {
    void *state; ///< as `initialize_kernels` returned it
    const char *name;
    int32_t blocks[3], threads[3], shared_bytes;
    const size_t *sizes;
    void *const *arguments;
    const int8_t *is_buffer;
};

using HalideTask = int (*)(void *user_context, int index, uint8_t *closure);

} // namespace scalide
