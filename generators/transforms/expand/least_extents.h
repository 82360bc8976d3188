#pragma once
#include "ir/program.h"

namespace scalide {

/// Checks that axes are long enough for operators. argmax of no elements has no index, and a window of three elements does not fit into
/// two. Throws UserError, as LAX does, if an extent is too small. If a symbol's value decides, its range is narrowed, so binding rejects
/// the value. The program must consist of base operators.
void require_elements(Program &program);

/// A requirement that ranges of single symbols cannot express: `extent` must be at least `least`, for example two symbols n and s.
struct Requirement {
    std::string name; ///< operator and field: dynamic_update_slice.update
    Extent extent, least;

    bool operator==(const Requirement &) const = default;
};

/// For example `n must be at least s`.
std::string to_string(const Requirement &requirement);

/// Returns the requirements that a binding can violate after require_elements(), without duplicates.
std::vector<Requirement> open_requirements(const Program &program);

} // namespace scalide
