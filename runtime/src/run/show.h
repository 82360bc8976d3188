#pragma once
#include "bind/binding.h"

/// What a trace shows: the buffers of the plan when they are complete.
namespace scalide {

/// Calls visit(buffer) for the buffers that a step completes, as far as no block does. Ends when `visit` returns false, and returns that.
template<typename Visit>
bool for_each_new_buffer(const scalide_binding &binding, int32_t step, Visit visit) {
    for (int32_t i = 0; i < binding.program->buffer_count; ++i)
        if (binding.program->buffers[i].first_step == step && !binding.layout->buffers[i].is_shown_by_block && !visit(i)) return false;
    return true;
}

/// The same for what a step of a loop has written, and for the results of a block.
template<typename Visit>
bool for_each_of_loop_step(const scalide_block &block, const Trace &trace, Visit visit) {
    for (int32_t i = 0; i < block.row_count; ++i)
        if (block.rows[i].is_written && !visit(block.rows[i].buffer)) return false;
    for (int32_t i = 0; i < block.carry_count && trace.shows_carries; ++i)
        if (!visit(block.carries[i].after)) return false;
    return true;
}

template<typename Visit>
bool for_each_result(const scalide_block &block, Visit visit) {
    for (int32_t i = 0; i < block.result_count; ++i)
        if (!visit(block.results[i])) return false;
    return true;
}

/// Calls the callback of a trace for a buffer of the binding.
void show(const scalide_binding &binding, const Trace &trace, int32_t buffer, const scalide_array &array);

} // namespace scalide
