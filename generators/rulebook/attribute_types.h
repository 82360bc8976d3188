#pragma once
#include "rulebook/rule.h"

namespace scalide {

/// Returns the types of attributes, in the order of the documentation.
std::vector<std::string> attribute_type_names();
/// One line on each, for rules/README.md.
std::string attribute_type_text(const std::string &type);

/// Returns why `value` does not have the type of the attribute, such as "must be a list of integers", or "" if it does.
std::string misfit(const AttributeSpec &spec, const Attribute &value);

} // namespace scalide
