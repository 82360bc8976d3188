#pragma once
#include "transforms/numerics/policy_match.h"

namespace scalide {

/// True if each condition of the rule holds at the site.
bool row_matches(const PolicyRule &row, const PolicyPlace &place);

/// Returns the only condition of a rule that does not hold at the site, "scope: head/**". Empty if the rule has another kind of site or
/// other operators, or if no condition or several conditions do not hold.
std::string missing_condition(const PolicyRule &row, const PolicyPlace &place);

/// Describes which condition of a rule holds at none of these sites of a program. The message suggests names for which it would hold.
Message describe_miss(const PolicyRule &row, const std::vector<PolicyPlace> &places, const std::string &program);

/// States that the rules at these lines match every site that this rule matches.
Message describe_hidden(const PolicyRule &row, const std::set<int> &lines);

} // namespace scalide
