#pragma once
#include "interpret/interpret.h"
#include <random>

namespace scalide {

/// A program of about `count` random operators over arguments of rank 2, 1 and 0, with a symbolic extent `b`; its result `loss` has rank 0
/// and reads every value. Operators are such that values stay small and gradients exist almost everywhere.
Program random_program(std::mt19937 &random, int count);

/// Zeros that fit the arguments where the symbols have these values.
std::vector<Array> zero_inputs(const Program &program, const Extent::Bindings &symbols);

/// Inputs that fit the arguments, b = 3: floats in [-1, 1].
std::vector<Array> random_inputs(const Program &program, std::mt19937 &random);

} // namespace scalide
