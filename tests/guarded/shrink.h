#pragma once
#include "ir/program.h"
#include <functional>

namespace scalide {

/// A program and the values of its symbols.
struct BoundProgram {
    Program program;
    Extent::Bindings sizes;
};

/// Reduces a failing program step by step, to fewer results, fewer nodes or smaller extents. Returns the program at which no single step
/// still fails.
BoundProgram shrink(BoundProgram failing, const std::function<bool(const BoundProgram &)> &fails);

} // namespace scalide
