#pragma once
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

using HalideTask = int (*)(void *user_context, int index, uint8_t *closure);

} // namespace scalide
