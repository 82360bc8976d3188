#pragma once
#include "transforms/numerics/policy_match.h"

namespace scalide {

/// True when each condition of the row holds at the place.
bool row_matches(const PolicyRule &row, const PolicyPlace &place);

/// Which condition of a row holds at none of these places of a program, and the nearest names for which it would: `policy.yaml:3:
/// policy.rules.argument: must match something in program p, got 'w9'. Did you mean 'w1'? Arguments: x, w1. ...`.
Message describe_miss(const PolicyRule &row, const std::vector<PolicyPlace> &places, const std::string &program);

/// That rows at these lines match wherever this one does.
Message describe_hidden(const PolicyRule &row, const std::set<int> &lines);

} // namespace scalide
