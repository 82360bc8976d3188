#pragma once
#include <ucontext.h>

namespace tiles {

/// Lets a CPU without AVX-512 FP16 go on at a conversion between f16 and f32 of these instructions, which compilers use on every CPU with
/// AMX. The instruction is replaced by that of AVX-512 with the same result. Returns false for other instructions.
///   vcvtph2psx  differs from vcvtph2ps in its map only, and is changed in memory
///   vcvtps2phx  is one byte shorter than vcvtps2ph, which runs from memory of the thread and jumps back
bool replace_half_conversion(ucontext_t &context);

} // namespace tiles
