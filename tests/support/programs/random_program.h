#pragma once
#include "interpret/interpret.h"
#include <random>

namespace scalide {

/// Returns a program of about `count` random operators over arguments of rank 2, 1 and 0, with a symbolic extent `b`. Its result `loss` is
/// a scalar that depends on every value. The operators are chosen such that values stay small and gradients exist almost everywhere.
Program random_program(std::mt19937 &random, int count);

/// Returns zeros that fit the arguments if the symbols have these values.
std::vector<Array> zero_inputs(const Program &program, const Extent::Bindings &symbols);

/// Returns inputs that fit the arguments for b = 3: floats in [-1, 1].
std::vector<Array> random_inputs(const Program &program, std::mt19937 &random);

} // namespace scalide
