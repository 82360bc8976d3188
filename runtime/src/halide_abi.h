#pragma once
#include <cstddef>
#include <cstdint>

/// The part of Halide 21's HalideRuntime.h that kernels and runtime share. Written down here, because applications have no Halide.
namespace scalide {

struct HalideDimension {
    int32_t min, extent, stride;
    uint32_t flags;
};

/// The element types that kernels see: storage words (f16 and f8 are unsigned integers).
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

/// What a kernel's host code asks of `halide_<device>_run`: arguments up to the first that is NULL, buffers as HalideBuffer.
struct HalideLaunch {
    void *state; ///< as `initialize_kernels` left it
    const char *name;
    int32_t blocks[3], threads[3], shared_bytes;
    const size_t *sizes;
    void *const *arguments;
    const int8_t *is_buffer;
};

using HalideTask = int (*)(void *user_context, int index, uint8_t *closure);

} // namespace scalide
