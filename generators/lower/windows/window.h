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

/// How a convolution multiplies elements: as f32 or integers, as pairs of bf16, or as pairs by tiles of AMX.
struct ConvolutionForm {
    int group = 1; ///< input features that one instruction multiplies
    bool in_tiles = false;
    int64_t rows_axis = 0; ///< in tiles: the axis of the result along which rows run
};

ConvolutionForm convolution_form(const Program &kernel, const Node &node, const Budgets &budgets);

} // namespace scalide
