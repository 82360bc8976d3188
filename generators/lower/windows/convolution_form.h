#pragma once
#include "ir/program.h"
#include "ir/window.h"
#include "lower/kernel/budgets.h"

// How a convolution is computed, as far as kernels of other classes and reports need to know.

namespace scalide {

/// True if the extent is symbolic or at least this long.
bool is_at_least(const Extent &extent, int64_t least);

/// A symbolic extent counts as longer than every static one.
bool is_longer(const Extent &a, const Extent &b);

/// Returns the axis of the result along which vectors run.
int64_t choose_lane_axis(const Convolution &convolution, const Extents &shape);

/// How elements are multiplied: as f32 or integers, as pairs of bf16, or as pairs by tiles of AMX.
struct ConvolutionForm {
    int group = 1; ///< input features that one instruction multiplies
    bool in_tiles = false;
    int64_t rows_axis = 0; ///< in tiles: the axis of the result along which rows run
};

ConvolutionForm convolution_form(const Program &kernel, const Node &node, const Budgets &budgets);

} // namespace scalide
