#pragma once
#include "rulebook/rulebook.h"

namespace scalide {

/// Checks what a rule can only say together with the others: every name and function of its expressions is known and stands where it
/// may, every call has a fitting number of arguments, base operators are in expr/base_operators, a composite does not use itself.
/// Throws UserError at the expression.
void check_rule(const Rule &rule, const Rulebook &rulebook);

/// The operators that a composite's value is made of, in order of first use.
std::vector<std::string> used_operators(const Rule &rule, const Rulebook &rulebook);

/// An attribute of `rule`; nullptr when it has none of that name.
const AttributeSpec *find_attribute(const Rule &rule, const std::string &name);

/// How many arguments a call of `callee` takes in rule text: its operands (a variadic one counts once), then its attributes.
struct ArgumentCount {
    int least, most;
};
ArgumentCount argument_count(const Rule &callee);

} // namespace scalide
