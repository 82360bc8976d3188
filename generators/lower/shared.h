#pragma once
#include "lower/kinds.h"

namespace scalide {

/// Stores single elements that would stand in very many places of a kernel's expressions, each in a Func of `shared`. Where there is no
/// loop, Halide's bounds inference writes an expression out as often as it stands in others, which doubles at every step of a long chain.
void share_single_elements(Lowering &lowering);

/// For CPUs: rank-0 arithmetic on arguments whose value the loops of the kernel read, each in a Func of `shared` that is made before them.
/// What follows from an argument that the kernel overwrites stays where it is read.
void share_scalars(Lowering &lowering);

} // namespace scalide
