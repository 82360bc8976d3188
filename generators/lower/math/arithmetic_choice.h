#pragma once
#include "ir/program.h"
#include "lower/math/elementwise.h"

namespace scalide {

/// Returns how each value of a kernel may be computed on a CUDA GPU. Arithmetic::exact for values of rank 0, because scales are computed
/// from them.
std::vector<Arithmetic> choose_arithmetic(const Program &kernel);

} // namespace scalide
