#pragma once
#include <cstdint>

namespace scalide {

/// Bits that an emulator adds to what CPUID and XGETBV say, because a process cannot intercept these instructions. Only the tests' emulator
/// (tests/cpu/amx) exports a symbol `scalide_emulated_cpu` of this type; a process has it if LD_PRELOAD names that library.
struct EmulatedCpu {
    uint32_t leaf7_edx, leaf7_1_eax, xcr0;
};

extern "C" __attribute__((visibility("default"))) const EmulatedCpu scalide_emulated_cpu;

} // namespace scalide
