#pragma once
#include "lower/values/kinds.h"

namespace scalide {

/// Stores a single element in a Func of `shared` if many expressions of a kernel contain it. Without loops, Halide's bounds inference
/// copies an expression into each expression that uses it, so its size would double with every step of a long chain.
void share_single_elements(Lowering &lowering);

/// On CPUs, computes rank-0 arithmetic on arguments in a Func of `shared`, before the kernel's loops that read it. Arithmetic on an
/// argument that the kernel overwrites stays where it is read.
void share_scalars(Lowering &lowering);

} // namespace scalide
