#include "transforms/policy_match.h"
#include <algorithm>

namespace scalide {

namespace {

bool is_below(const Extents &shape, int64_t limit) {
    const Extent count = element_count(shape);
    return count.is_static() && count.value() < limit;
}

bool matches(const PolicyRule &rule, const PolicyPlace &place) {
    if (rule.place != place.place) return false;
    const bool which = rule.which.empty() || rule.which == "any" || std::ranges::count(place.names, rule.which) > 0;
    const bool op = rule.ops.empty() || std::ranges::count(rule.ops, place.op) > 0;
    return which && op && glob_matches(rule.scope, place.scope) && (!rule.size_below || is_below(place.shape, *rule.size_below));
}

bool matches_from(std::string_view glob, std::string_view scope) {
    if (glob.empty()) return scope.empty();
    const bool deep = glob.starts_with("**");
    if (glob[0] != '*') return !scope.empty() && glob[0] == scope[0] && matches_from(glob.substr(1), scope.substr(1));
    const std::string_view rest = glob.substr(deep ? 2 : 1);
    for (size_t taken = 0; taken <= scope.size(); taken++) {
        if (matches_from(rest, scope.substr(taken))) return true;
        if (!deep && taken < scope.size() && scope[taken] == '/') return false;
    }
    return false;
}

} // namespace

bool glob_matches(std::string_view glob, std::string_view scope) {
    const bool below = glob.ends_with("/**") && scope == glob.substr(0, glob.size() - 3); // "head/**" fits head too
    return glob.empty() || below || matches_from(glob, scope);
}

const PolicyRule *find_rule(const Policy &policy, const PolicyPlace &place) {
    const auto found = std::ranges::find_if(policy.rules, [&](const PolicyRule &rule) { return matches(rule, place); });
    return found == policy.rules.end() ? nullptr : &*found;
}

} // namespace scalide
