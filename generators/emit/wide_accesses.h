#pragma once
#include <Halide.h>

namespace scalide {

/// Device code for CUDA reads and writes 16 bytes at a time wherever neighbours that begin at a multiple of 16 bytes are a vector. Halide
/// 21 itself does so for vectors of four words alone; of narrower elements it makes accesses of 8 bytes, of longer vectors of words too. Of
/// arrays in global memory alone: in shared memory Halide moves an array without a word about how it is aligned then.
void widen_accesses(Halide::Pipeline &pipeline);

} // namespace scalide
