#pragma once
#include "interpret/interpret.h"
#include <random>

namespace scalide {

/// A program of `count` random operators, any that a rule is there for. Each is a check case of its rule, on
/// values made before it whose extents unify with the letters of the case, or on new arguments. Operands are held within the domain of the
/// rule. Results are the values that nobody reads.
///
/// A compiled program and the interpreter differ in the last bits of sums and functions. So an operator that makes large differences of
/// small ones (a comparison, a sort, a rounding) gets only operands that are equal to the bit: arguments, and what was moved, selected or
/// computed by correctly rounded operators from such.
Program program_of_operators(std::mt19937 &random, int count);

/// Draws inputs for the arguments of such a program when it is compiled. Floats are in [-2, 2] and integers have random bits. Scales are
/// powers of two or, seldom, zero.
std::vector<Array> draw_inputs(const Program &program, std::mt19937 &random);
/// Draws inputs for these extents.
std::vector<Array> draw_inputs(const Program &program, const Extent::Bindings &sizes, std::mt19937 &random);

} // namespace scalide
