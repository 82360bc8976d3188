#pragma once
#include "rulebook/rulebook.h"

namespace scalide {

/// True for operators such as comparisons, which have no gradient and only plain results.
bool stops_gradient(const Node &node, const Rulebook &rulebook);

/// Marks the values that depend on marked values through floats, in regions too.
void mark_reached(const Program &program, const Rulebook &rulebook, std::vector<bool> &reached);

/// Marks the values on which marked values depend, in regions too.
void mark_needed(const Program &program, std::vector<bool> &needed);

/// Returns for each result of a loop or a branch whether it depends on a marked operand. A carry does if any step, or its init, does.
std::vector<bool> reached_results(const Node &node, const Rulebook &rulebook, const std::vector<bool> &operands);

/// What a loop or a branch needs for some of its results.
struct Needed {
    std::vector<bool> operands;
    std::vector<bool> results; ///< the same results, and the carries from which other steps compute them
};
Needed needed_operands(const Node &node, const std::vector<bool> &results);

} // namespace scalide
