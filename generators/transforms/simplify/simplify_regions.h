#pragma once
#include "ir/program.h"
#include "rulebook/rulebook.h"
#include "transforms/simplify/region_edit.h"

namespace scalide {

/// Changes a node with regions, and returns whether it did.
using ChangeRegions = std::function<bool(RegionEdit &edit)>;

/// Applies a change to the loops and branches of a program until none changes, but not to the nodes inside of them.
Program edit_regions(Program program, const Rulebook &rulebook, const ChangeRegions &change);

/// Simplifies the loops and branches of a program, but not the nodes inside of them: results, arguments and nodes that a loop or a branch
/// does not need leave it, and constants enter it. Changes no bit of a result.
Program simplify_regions(Program program, const Rulebook &rulebook);

} // namespace scalide
