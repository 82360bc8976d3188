#pragma once
#include "scalide/plan.h"

namespace scalide {

/// Checks where a symbol gets its value.
bool good_symbol(const scalide_program &program, const scalide_symbol &symbol);
/// Checks the collective of a step. The symbols and buffers of the program are correct.
bool good_collective(const scalide_program &program, const scalide_collective &collective);

} // namespace scalide
