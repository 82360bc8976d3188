#pragma once
#include "ir/type.h"
#include "rulebook/rule.h"

namespace scalide {

/// Fills in defaults and brings attributes into one form: axes count from the front, lists of axes are sorted, symbols in shapes are
/// extents. Throws UserError at `where` when one is unknown, missing, of another type, or names an axis that is not there.
void complete_attributes(const Rule &rule, const std::vector<Type> &operands, Attributes &attributes, const Location &where);

} // namespace scalide
