#pragma once
#include "lower/values/kinds.h"

// The parts of lower/windows/window.cpp. A kernel of kind window has one window operator. The nodes after it are elementwise on the same
// shape.

namespace scalide {

/// Each function lowers one window operator and binds its result. It leaves WindowStages or ConvolutionStages.
void lower_reduce_window(Lowering &lowering, const Node &node);
void lower_select_and_scatter_add(Lowering &lowering, const Node &node);
void lower_select_and_gather_add(Lowering &lowering, const Node &node);
void lower_convolution(Lowering &lowering, const Node &node);

} // namespace scalide
