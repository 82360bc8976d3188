#pragma once
#include "ir/program.h"
#include <random>

namespace scalide::test {

/// A random program of base operators with f32 arithmetic: arrays of up to three axes, rank-0 arithmetic in f32 and f64, roundings to
/// narrow dtypes, reductions over any axes, contractions, and inout arguments whose new values are drawn from all values of their type.
Program random_base_program(std::mt19937 &random, int node_count);

} // namespace scalide::test
