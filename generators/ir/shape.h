#pragma once
#include "ir/type.h"

namespace scalide {

/// Shape without its axes of extent 1: two shapes with equal ones are walked by the same index.
Extents without_ones(Extents shape);

/// True when a reduction over these axes (ascending) keeps one behind them that is not of extent 1: it leaves columns, not rows.
bool leaves_columns(const Extents &shape, const std::vector<int64_t> &folded);

} // namespace scalide
