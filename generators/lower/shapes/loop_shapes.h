#pragma once
#include "ir/program.h"

namespace scalide {

/// Reshapes values of a kernel to the shape of its loop if their shapes differ only by axes of extent 1. Operators that read at the same
/// index then do so with an index of the same rank. The shape of the loop comes from a scan, a dot_general, or an argument that is
/// overwritten in place. Values that need a shape of their own, such as an iota along an axis of extent 1, are connected to the others by
/// reshapes.
Program take_loop_shapes(const Program &program);

} // namespace scalide
