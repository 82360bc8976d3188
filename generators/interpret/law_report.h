#pragma once
#include "interpret/law_case.h"
#include <optional>

namespace scalide {

/// The first difference between two arrays.
struct Difference {
    size_t element = 0;
    double got = 0, expected = 0;
};

/// Returns the first element whose error exceeds `tolerance` times the largest finite magnitude in `expected`, or times `least` if that is
/// larger. NaN equals NaN. Infinities must be equal.
std::optional<Difference> find_difference(const Array &got, const Array &expected, double tolerance, double least);

/// Returns "3, expected 2 at out[1, 0]: x[1, 0] = 1.5 (scale 2), y: f32[3] = ..., seed 7".
std::string describe(const LawCase &law_case, const std::string &what, const std::vector<int64_t> &shape, const Difference &difference);

/// Prints a number with all its digits.
std::string number(double value);

} // namespace scalide
