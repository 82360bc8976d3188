#pragma once
#include "ir/program.h"

namespace scalide {

/// A form has values of at most this many symbols, because the runtime compares this many.
constexpr size_t most_form_symbols = 4;

/// Returns the values of symbols for which a program is worth a form of its own, the most specific first. A matmul with one row or one
/// column is another loop nest, so there is a form in which the rows or the columns of a matmul are 1, and one for each likely value of a
/// symbol that counts rows or columns. If several symbols count the same rows or columns, there is one for each choice of likely values of
/// all of them. A program that updates an argument in place has only the forms of its likely values: training steps
/// run on batches. For each group of ranks there is a form with one rank, which has no collectives of this group. `program`: typed, without
/// calls.
std::vector<Extent::Bindings> value_forms(const Program &program);

/// Adds to the values of symbols the values that follow for the symbols of groups with one rank.
Extent::Bindings with_group_values(const Program &program, Extent::Bindings values);

/// Returns `form`, a program with numbers instead of symbols, with the arguments, results and symbols of `general`. A caller can bind
/// either. Empty if their arguments differ, for example because a policy stores a smaller array in another format.
std::optional<Program> with_interface_of(const Program &general, Program form);

} // namespace scalide
