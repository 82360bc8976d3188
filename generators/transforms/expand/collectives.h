#pragma once
#include "transforms/analysis/splice.h"
#include <set>

namespace scalide {

/// True if the program has groups of ranks.
bool has_groups(const Program &program);

/// Replaces sums and maxima over the ranks of groups with one rank by their operands.
void remove_reductions_of_one_rank(Program &program);

/// The operators that need symbols of add_group_symbols(). Operators that contain them must be expanded before.
std::set<std::string> sized_collectives();

/// Declares the symbols of the collectives of a program and its regions: the number of this rank, and the elements of an array for each
/// rank. Throws UserError if a group is not declared with `ranks`.
void add_group_symbols(Program &program);

/// Returns how a collective is written: with the symbols of add_group_symbols(), or as data movement if there is one rank. Empty: its rule
/// says it. An array of more than 64 elements is reduced by chunks, so that a rank sends two arrays, however many ranks there are. A
/// smaller one goes to all ranks at once, which saves one of two messages.
Remake collective_remake(const Program &program, const Node &node);

} // namespace scalide
