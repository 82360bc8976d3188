#pragma once
#include "rulebook/rule.h"

namespace scalide {

/// The types that an attribute may have, in the order of the documentation.
std::vector<std::string> attribute_type_names();
/// One line on each, for rules/README.md.
std::string attribute_type_text(const std::string &type);

/// What is wrong with `value` as an attribute of that type ("must be a list of integers"); empty when nothing is.
std::string misfit(const AttributeSpec &spec, const Attribute &value);

} // namespace scalide
