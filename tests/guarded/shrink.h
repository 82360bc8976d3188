#pragma once
#include "ir/program.h"
#include <functional>

namespace scalide {

/// A program and the values of its symbols.
struct BoundProgram {
    Program program;
    Extent::Bindings sizes;
};

/// The smallest that still fails: with fewer results, fewer nodes, smaller extents, as far as one step at a time leads.
BoundProgram shrink(BoundProgram failing, const std::function<bool(const BoundProgram &)> &fails);

} // namespace scalide
