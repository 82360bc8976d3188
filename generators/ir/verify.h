#pragma once
#include "ir/program.h"

namespace scalide {

/// Checks what every program must hold, whatever its operators mean: ids in range, each value made once and before its uses, unique
/// names, known symbols, f64 of rank 0 only, inout results with the argument's type, sub-programs found and called with exactly their
/// types, no unknown types; of a user's program also that arguments give the value of each symbol. `after` names the pass that made the
/// program. Throws InternalError, or UserError (with the node's location) when `after` is empty, that is, when the program came from a
/// user.
void verify(const Program &program, const std::string &after);

} // namespace scalide
