#pragma once
#include "ir/type.h"

namespace scalide {

/// Returns the shape without axes of extent 1. If two shapes agree after that, the same linear index addresses both.
Extents without_ones(Extents shape);

/// Returns true if a reduction over these axes (ascending) keeps an axis after them with an extent other than 1: a column reduction.
bool leaves_columns(const Extents &shape, const std::vector<int64_t> &folded);

} // namespace scalide
