#pragma once
#include <Halide.h>

namespace scalide {

/// Makes CUDA code access 16 bytes at a time, if adjacent elements that begin at a multiple of 16 bytes form a vector. Halide 21 does this
/// only for vectors of four 32-bit words. For narrower elements and longer vectors, it emits accesses of 8 bytes. Only global memory is
/// changed: Halide moves arrays within shared memory without information about their alignment.
void widen_accesses(Halide::Pipeline &pipeline);

} // namespace scalide
