#pragma once
#include "emit/library.h"

namespace scalide {

/// Returns the matmuls and convolutions of each form, one line each, with the speed of the form relative to f32. Empty on GPUs, and for
/// programs without any. "3 matmuls (97 % of FLOPs) in bf16 (vdpbf16ps; 2.00 times the speed of f32, EPYC Zen 4, 2026-11-29)".
std::string speeds_of(const BuildReport &report);

/// Returns a line for each CPU of the build on which matmuls or convolutions in formats of the policy are not faster than in f32. The line
/// has their share of all FLOPs, the measured speed and a suggestion. Empty if only the program itself chose low-precision formats.
/// "f16_scaled is no faster than f32 on this machine in 2 of 2 matmuls (100 % of FLOPs): f16 (decoded to f32, FMA; 1.00 times the speed of
/// f32, EPYC Zen 4, 2026-11-29). Faster there: matmuls in bf16 2.00, f8 2.00".
std::string slow_formats(const BuildReport &report, const BuildOptions &options);

/// Returns a table of how a CPU multiplies each number format in matmuls, and its speed relative to f32.
std::string speed_table(const Halide::Target &target);

} // namespace scalide
