#pragma once
#include "ir/program.h"
#include "lower/math/elementwise.h"

namespace scalide {

/// Returns how each value of a kernel may be computed on a CUDA GPU. Arithmetic::exact for values of rank 0, because scales are computed
/// from them.
std::vector<Arithmetic> choose_arithmetic(const Program &kernel);

/// Returns how each value of a kernel may be computed on other targets: Arithmetic::of_8_bits or of_11_bits if every reader rounds it to so
/// few bits, directly or after operators that keep relative errors. Otherwise, and for values of rank 0, Arithmetic::exact.
std::vector<Arithmetic> choose_reduced_arithmetic(const Program &kernel);

} // namespace scalide
