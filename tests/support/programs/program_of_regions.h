#pragma once
#include "ir/program.h"
#include <random>

namespace scalide {

/// Returns a program of nested loops and branches over f32 arrays: of zero to four steps, forwards and backwards, with carries, elements,
/// captured arrays, stacks, and carries that change places. Branches are chosen by arguments and by the number of the step, which have no
/// rounding errors.
Program program_of_regions(std::mt19937 &random);

} // namespace scalide
