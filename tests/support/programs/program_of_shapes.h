#pragma once
#include "ir/program.h"
#include <random>

namespace scalide {

/// Returns a program of up to `count` random operators that move, reduce, scan and multiply arrays of up to four axes. It mixes static
/// extents with several symbols, and f32 with low-precision dtypes, so that schedules meet unusual extents. Results are all unused values
/// and some used ones. A discontinuous operator (argmax) reads only values that no arithmetic rounded.
Program program_of_shapes(std::mt19937 &random, int count);

} // namespace scalide
