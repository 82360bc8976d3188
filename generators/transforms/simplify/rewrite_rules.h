#pragma once
#include "expr/expression.h"
#include "transforms/simplify/facts.h"
#include <map>

namespace scalide {

/// Values that the names of a pattern stand for.
using Bindings = std::map<std::string, ValueId>;

/// One identity of `simplify`, written in the expression language: a name is any value (the same one where it stands twice), a number is
/// a value that is this number throughout, a call is the operator of that name. Commutative operators match in both orders.
struct RewriteRule {
    Expression pattern, replacement;
    bool (*holds)(Facts &facts, const Bindings &bindings);
};

/// All identities, the first that matches wins. None changes a bit, NaN payloads aside.
const std::vector<RewriteRule> &rewrite_rules();

/// Binds the names of `pattern` so that it stands for `node`; nothing when it doesn't match.
std::optional<Bindings> match(const Expression &pattern, const Node &node, Facts &facts);

} // namespace scalide
