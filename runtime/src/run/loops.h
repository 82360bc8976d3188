#pragma once
#include "bind/binding.h"

/// Where the loops of a run are, and what stops them.
namespace scalide {

/// Returns the index of the loop around a block; -1: none.
int32_t loop_around(const scalide_program &program, int32_t block);
/// Prints `step 17 of scan h in step 2 of while x`, and the lines of the loops on request. Prints nothing outside of loops.
Text &print_loops(Text &text, const scalide_binding &binding, bool has_lines);

/// False if scalide_interrupt or the poll of the context stops the run, which then has failed.
bool may_go_on(const scalide_binding &binding);
/// Fails the run because a loop would take more steps than it may. Returns false.
bool fail_at_limit(const scalide_binding &binding, int32_t block);

/// True for a status after which a binding can run again.
inline bool is_stop(scalide_status status) { return status == SCALIDE_INTERRUPTED || status == SCALIDE_STEP_LIMIT; }

} // namespace scalide
