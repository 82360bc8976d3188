#pragma once
#include "ir/program.h"

namespace scalide {

/// The same kernel over fewer axes: axes of extent 1 are dropped, and neighbouring axes merged into one, wherever every node of the
/// program lets them. Memory does not change (arrays are dense and row-major), only how it is walked: an elementwise kernel of any rank
/// becomes one loop, and one with a bias two. Values, nodes and their order stay; shapes and attributes change.
///
/// Results of equal shape, and operands of reductions of equal shape, keep equal shapes, so that they can share loops.
Program merge_axes(const Program &program);

} // namespace scalide
