#include "bind/check_blocks.h"
#include "bind/check.h"
#include <initializer_list>

namespace scalide {

bool is_writable(const scalide_program &program, int32_t index) {
    if (!is_used_by_steps(program, index)) return false;
    const scalide_buffer &buffer = program.buffers[index];
    const bool is_argument = buffer.storage == SCALIDE_STORAGE_DATA || buffer.storage == SCALIDE_STORAGE_SCALE;
    return buffer.storage != SCALIDE_STORAGE_PREPARED && (!is_argument || program.arguments[buffer.index].role != SCALIDE_INPUT);
}

namespace {

/// True if the buffer has memory of the binding that is in use over the whole block.
bool has_own_memory(const scalide_program &program, const scalide_block &block, int32_t index) {
    if (!is_used_by_steps(program, index)) return false;
    const scalide_buffer &buffer = program.buffers[index];
    if (buffer.storage == SCALIDE_STORAGE_SCALAR) return true;
    const bool is_in_use = buffer.first_step <= block.first_step && buffer.last_step >= block.end_step - 1;
    return buffer.storage == SCALIDE_STORAGE_ARENA && (is_in_use || block.first_step == block.end_step);
}

bool is_scalar(const scalide_program &program, int32_t index, int32_t dtype) {
    return is_used_by_steps(program, index) && program.buffers[index].rank == 0 && program.buffers[index].dtype == dtype;
}

bool good_row(const scalide_program &program, const scalide_block &block, const scalide_row &row) {
    if (!has_own_memory(program, block, row.buffer)) return false;
    if (!(row.is_written ? is_writable(program, row.of) : is_used_by_steps(program, row.of))) return false;
    const scalide_buffer &buffer = program.buffers[row.buffer], &of = program.buffers[row.of];
    return buffer.dtype == of.dtype && buffer.rank + 1 == of.rank;
}

bool good_carry(const scalide_program &program, const scalide_block &block, const scalide_carry &carry) {
    if (!is_used_by_steps(program, carry.init) || !is_writable(program, carry.after)) return false;
    if (carry.before != carry.after && (!has_own_memory(program, block, carry.before) || carry.before == carry.init)) return false;
    const scalide_buffer &after = program.buffers[carry.after];
    for (int32_t index : {carry.init, carry.before})
        if (program.buffers[index].dtype != after.dtype || program.buffers[index].rank != after.rank) return false;
    return true;
}

bool good_arrays(const scalide_program &program, const scalide_block &block) {
    if (block.row_count < 0 || block.carry_count < 0 || block.result_count < 0) return false;
    for (int32_t i = 0; i < block.row_count; ++i)
        if (!good_row(program, block, block.rows[i])) return false;
    for (int32_t i = 0; i < block.carry_count; ++i)
        if (!good_carry(program, block, block.carries[i])) return false;
    for (int32_t i = 0; i < block.result_count; ++i)
        if (!is_used_by_steps(program, block.results[i])) return false;
    return true;
}

bool good_loop(const scalide_program &program, const scalide_block &block) {
    if (block.length ? !good_extent(program, *block.length) : block.condition < 0 || block.row_count > 0) return false;
    const bool has_step = block.step < 0 || (is_scalar(program, block.step, SCALIDE_I32) && has_own_memory(program, block, block.step));
    return has_step && (block.condition < 0 || is_scalar(program, block.condition, SCALIDE_I32));
}

bool good_while(const scalide_program &program, const scalide_block &block) {
    return !block.length && block.row_count == 0 && block.step < 0 && block.most_steps >= 0 && block.test_end >= block.first_step &&
           block.test_end <= block.end_step && is_scalar(program, block.condition, SCALIDE_BOOL);
}

bool good_switch(const scalide_program &program, const scalide_block &block) {
    if (block.length || block.row_count > 0 || block.carry_count > 0 || block.step >= 0 || block.branch_count < 1) return false;
    int32_t end = block.first_step;
    for (int32_t i = 0; i < block.branch_count; ++i) {
        if (block.branch_ends[i] < end) return false;
        end = block.branch_ends[i];
    }
    return end == block.end_step && is_scalar(program, block.condition, SCALIDE_I32);
}

/// The block is in its parent and after the blocks in the parent that stand before it.
bool good_range(const scalide_program &program, const scalide_block &block) {
    if (block.first_step < 0 || block.end_step < block.first_step || block.end_step > program.step_count) return false;
    const auto own = static_cast<int32_t>(&block - program.blocks);
    if (block.parent < -1 || block.parent >= own) return false;
    int32_t earlier = own - 1;
    for (; earlier != block.parent; earlier = program.blocks[earlier].parent)
        if (earlier < 0 || block.first_step < program.blocks[earlier].end_step) return false;
    if (block.parent < 0) return true;
    const scalide_block &parent = program.blocks[block.parent];
    return block.first_step >= parent.first_step && block.end_step <= parent.end_step;
}

} // namespace

bool good_block(const scalide_program &program, const scalide_block &block) {
    if (!good_range(program, block) || !good_arrays(program, block)) return false;
    switch (block.kind) {
    case SCALIDE_BLOCK_LOOP: return good_loop(program, block);
    case SCALIDE_BLOCK_WHILE: return good_while(program, block);
    case SCALIDE_BLOCK_SWITCH: return good_switch(program, block);
    default: return false;
    }
}

} // namespace scalide
