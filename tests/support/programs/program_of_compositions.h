#pragma once
#include "ir/program.h"
#include <random>

namespace scalide {

/// A program that composes stages as users do: an operator with loops of its own (a matmul, a convolution, a softmax, a sort, attention)
/// followed by what reads its result (a select by coordinates or by a predicate over the whole array, a clip, a residual sum, several
/// reductions, a cast, a concatenation, a gradient). Extents lie below, at and above one panel of a matmul, static or symbolic. The seed
/// determines the first pair of stages, so that consecutive seeds reach all pairs. `random` draws everything else.
Program program_of_compositions(unsigned seed, std::mt19937 &random);

} // namespace scalide
