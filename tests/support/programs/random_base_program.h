#pragma once
#include "ir/program.h"
#include <random>

namespace scalide::test {

/// Returns a random program of base operators with f32 arithmetic: arrays of up to three axes, scalar arithmetic in f32 and f64, roundings
/// to low-precision dtypes, reductions over any axes, and contractions. The new value of an inout argument is drawn from all values of its
/// type.
Program random_base_program(std::mt19937 &random, int node_count);

} // namespace scalide::test
