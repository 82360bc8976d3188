#pragma once
#include <Halide.h>
#include <array>

// A sum of two products of bf16 numbers that lie in different rows. Halide 21 finds the instruction for it (vdpbf16ps) only if the
// numbers are adjacent in one vector. A marker therefore stands for the operation until vectors exist.

namespace scalide {

/// Returns the marker of sum + a[0] * b[0] + a[1] * b[1] in f32. `a` and `b` are bit patterns of bf16, UInt(16).
Halide::Expr add_bf16_pair(const Halide::Expr &sum, const std::array<Halide::Expr, 2> &a, const std::array<Halide::Expr, 2> &b);

/// Returns the lowering pass that replaces the markers. Every pipeline with a marker needs it.
Halide::Internal::IRMutator *bf16_pairs_pass();

} // namespace scalide
