#pragma once
#include "ir/type.h"
#include "rulebook/rule.h"

namespace scalide {

/// Adds defaults and normalizes attributes: axes count from the front, lists of axes are sorted, and symbols in shapes are extents. Throws
/// UserError at `where` if an attribute is unknown, missing or of another type, or if an axis does not exist.
void complete_attributes(const Rule &rule, const std::vector<Type> &operands, Attributes &attributes, const Location &where);

} // namespace scalide
