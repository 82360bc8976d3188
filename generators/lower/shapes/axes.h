#pragma once
#include "ir/program.h"

namespace scalide {

/// Returns the same kernel with fewer axes: axes of extent 1 are dropped, and adjacent axes are merged, if every node of the program
/// permits it. Memory does not change, because arrays are dense and row-major; only the loops change. An elementwise kernel of any rank
/// becomes one loop, and one with a bias becomes two. Values, nodes and their order stay; shapes and attributes change.
///
/// Results with equal shapes keep equal shapes, and so do operands of reductions. They can then share loops.
Program merge_axes(const Program &program);

} // namespace scalide
