#pragma once
#include "rulebook/rulebook.h"

namespace scalide {

/// Replaces loops by the nodes of their steps, and branches by the nodes of all branches and a select_n. The program has types. Its values
/// keep their ids. Throws UserError for a loop whose number of steps is not a number of at most 64.
void unroll_regions(Program &program, const Rulebook &rulebook);

/// Does the same, also in regions, for all loops of at most 64 static steps, and for branches without other loops.
void unroll_possible_regions(Program &program, const Rulebook &rulebook);

/// Does the same, also in regions, for loops and branches that are no slower so: short loops, loops that ask for it, and branches of a few
/// cheap operators.
void unroll_short_regions(Program &program, const Rulebook &rulebook);

} // namespace scalide
