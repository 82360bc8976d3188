#pragma once
#include "ir/program.h"
#include <random>

namespace scalide {

/// A program of up to `count` random operators that move, fold, scan and multiply arrays of up to four axes, known extents and several
/// symbols mixed, of wide and narrow dtypes: each of them loops over extents that no schedule knows. Results are the values that nobody
/// reads and some that others read. What jumps (argmax) reads only what no arithmetic rounded.
Program program_of_shapes(std::mt19937 &random, int count);

} // namespace scalide
