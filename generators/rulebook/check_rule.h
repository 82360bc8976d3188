#pragma once
#include "rulebook/rulebook.h"

namespace scalide {

/// Checks a rule against the other rules. Names and functions in its expressions must be known and allowed there. Calls must have the right
/// number of arguments. A base operator must be in expr/base_operators. A composite must not use itself. Throws UserError at the
/// expression.
void check_rule(const Rule &rule, const Rulebook &rulebook);

/// Returns the operators that the value of a composite uses, in order of first use.
std::vector<std::string> used_operators(const Rule &rule, const Rulebook &rulebook);

/// Returns an attribute of `rule`, or nullptr if it does not exist.
const AttributeSpec *find_attribute(const Rule &rule, const std::string &name);

/// The number of arguments of a call in rule text: the operands (a variadic operand counts once), then the attributes.
struct ArgumentCount {
    int least, most;
};
ArgumentCount argument_count(const Rule &callee);

} // namespace scalide
