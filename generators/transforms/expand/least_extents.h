#pragma once
#include "ir/program.h"

namespace scalide {

/// Some operators need elements: the place of the largest among none is no place, and a window of three elements does not fit two. Throws
/// UserError, as LAX does, where an extent is too small; where a binding decides, narrows the ranges of its symbols, so that binding says
/// no. Of base operators.
void require_elements(Program &program);

/// What an operator needs and ranges of single symbols cannot say: `extent` elements at least `least`, as n and s.
struct Requirement {
    std::string name; ///< of the operator and its field: dynamic_update_slice.update
    Extent extent, least;

    bool operator==(const Requirement &) const = default;
};

/// `n must be at least s`
std::string to_string(const Requirement &requirement);

/// Those of a program behind require_elements that a binding can break, each once.
std::vector<Requirement> open_requirements(const Program &program);

} // namespace scalide
