#pragma once
#include "ir/program.h"

namespace scalide {

/// The same kernel, whose values have the shape of its loop wherever they have it up to axes of extent 1: operators that read at the same
/// index then do so at an index of the same rank. The shape of a loop is that of a scan or a dot_general, and that of an argument that is
/// overwritten in place. Reshapes stand between such values and those that keep a shape of their own, such as an iota along an axis of
/// extent 1.
Program take_loop_shapes(const Program &program);

} // namespace scalide
