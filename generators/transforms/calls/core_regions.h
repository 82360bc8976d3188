#pragma once
#include "rulebook/rulebook.h"

namespace scalide {

/// Replaces `map` and `fori` by `scan`, and `cond` by `switch`, also in regions, so that the passes see three kinds of nodes: `scan`,
/// `while` and `switch`. The program has types.
void to_core_regions(Program &program, const Rulebook &rulebook);

/// Gives the nodes of regions the scopes of the nodes that own the regions. Before, their scopes are relative to these nodes. Roles stay:
/// the loop of a gradient also computes primal values again.
void place_in_scopes(Program &program);

} // namespace scalide
