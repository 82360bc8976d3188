#pragma once
#include "ir/program.h"

namespace scalide {

/// Some operators need elements: the place of the largest among none is no place, and a window of three elements does not fit two. Throws
/// UserError, as LAX does, where an extent is too small; where a binding decides, narrows the ranges of its symbols, so that binding says
/// no; not where the difference of two symbols decides, of which a range says nothing: there places are clamped. Of base operators.
void require_elements(Program &program);

} // namespace scalide
