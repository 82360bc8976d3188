#pragma once
#include "rulebook/policy.h"

namespace scalide {

/// True when `scope` fits the glob: `*` stands for any part of a segment, `**` for any segments. An empty glob fits everything.
bool glob_matches(std::string_view glob, std::string_view scope);

/// The place that a policy is asked about.
struct PolicyPlace {
    PolicyRule::Place place;
    std::vector<std::string> names; ///< the words that `which` may be: role, kind, name ...; `any` always is
    std::string op, scope;
    Extents shape;
};

/// The first row of the policy that matches; nullptr when none does.
const PolicyRule *find_rule(const Policy &policy, const PolicyPlace &place);

} // namespace scalide
