#pragma once
#include <ucontext.h>

namespace tiles {

/// Lets a CPU without AVX-512 FP16 go on at an instruction of it that converts or moves f16, which compilers use on every CPU with AMX. It
/// is replaced by instructions of AVX-512 with the same result. Returns false for other instructions.
///   vcvtph2psx     differs from vcvtph2ps in its map only, and is changed in memory
///   vcvtps2phx     of registers: vcvtps2ph
///   vmovw          from and to registers or memory: vpinsrw into zeros, vpextrw
/// The last two are longer than the instruction. They run from memory of the thread, and jump back.
bool replace_half_instruction(ucontext_t &context);

} // namespace tiles
