#pragma once
#include "ir/program.h"
#include "rulebook/rulebook.h"

namespace scalide {

/// Gives the groups of the program to all operators that choose scales by what all ranks have, also in regions: attributes of type `groups`
/// that name none.
void share_scales(Program &program, const Rulebook &rulebook);

} // namespace scalide
