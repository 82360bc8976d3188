#pragma once
#include "expr/expression.h"
#include "transforms/simplify/facts.h"
#include <map>

namespace scalide {

/// The values for which the names of a pattern stand.
using Bindings = std::map<std::string, ValueId>;

/// One identity of `simplify`, in the expression language. A name matches any value; a repeated name must match the same value. A number
/// matches a value whose elements are all this number. A call matches the operator of that name. Commutative operators match in both
/// orders.
struct RewriteRule {
    Expression pattern, replacement;
    bool (*holds)(Facts &facts, const Bindings &bindings);
};

/// Returns all identities. The first one that matches is applied. None changes a bit, except NaN payloads.
const std::vector<RewriteRule> &rewrite_rules();

/// Binds the names of `pattern` so that it equals `node`. Returns nothing if it does not match.
std::optional<Bindings> match(const Expression &pattern, const Node &node, Facts &facts);

} // namespace scalide
