#pragma once
#include "bind/layout.h"

/// The tables of a layout that say what the blocks of a program move.
namespace scalide {

/// Sums over all blocks.
struct BlockCounts {
    uint64_t rows = 0, carries = 0, views = 0;
};

/// `views` is at least the number of views that follow moved buffers.
BlockCounts count_blocks(const scalide_program &program);
/// Fills in the tables of blocks and steps, and checks the shapes of what blocks move. Its other tables must be complete.
scalide_status fill_blocks(scalide_context *context, const scalide_program &program, Layout &layout);

/// Returns the number of entries of the block in Layout::moved.
inline int32_t count_moved(const scalide_block &block) { return block.row_count + 2 * block.carry_count; }
inline bool is_in_place(const scalide_carry &carry) { return carry.before == carry.after; }

/// True if the steps of a loop update the buffer in place.
bool is_carried_in_place(const scalide_program &program, int32_t buffer);
/// True if a block names this buffer as an array that it reads, writes or carries. Its memory is then dense.
bool is_used_by_blocks(const scalide_program &program, int32_t buffer);

} // namespace scalide
