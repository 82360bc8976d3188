#pragma once
#include "ir/attribute.h"
#include <set>

namespace scalide {

/// As to_string() in attribute.h, for a program with these symbols: a word that is also a symbol is quoted.
std::string to_string(const Attribute &attribute, const std::set<std::string> &symbols);
std::string to_string(const Attributes &attributes, const std::set<std::string> &symbols);

} // namespace scalide
