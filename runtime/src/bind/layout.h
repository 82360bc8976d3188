#pragma once
#include "base/halide_abi.h"
#include "context/context.h"
#include "scalide/plan.h"
#include <atomic>

namespace scalide {

/// A buffer of the plan, the same in all bindings of equal shapes.
struct BufferSize {
    int64_t elements;
    uint64_t arena_offset; ///< of a buffer in the arena
    int32_t entry;         ///< the last entry of Layout::moved with this buffer, while fill_blocks() runs
    bool is_moved_once;    ///< the row or the spare memory of a block, which no other block may move
    bool is_read_only;     ///< an argument may be there during a step of a loop, which the steps must not write
    bool is_step;          ///< blocks write the number of the element there
    bool is_shown_by_block;
};

/// A buffer that has another address in each step of a block, and the part of Layout::moved_views with the kernels' views that follow it.
struct MovedBuffer {
    int32_t buffer, first_view, end_view;
};

/// The parts of the tables that belong to a block.
struct BlockPlace {
    int32_t moved;      ///< the first of its entries in Layout::moved: its rows, then `before` and `after` of each carry
    int32_t row, carry; ///< the first of its rows and carries among those of all blocks
    int32_t end;        ///< index of the first block after it that is not in it
    int64_t length;     ///< the number of elements of its rows; INT64_MAX: no limit
};

/// Where the argument list and the views of a step begin.
struct StepPlace {
    int32_t argument, view;
    bool is_moved; ///< a block moves buffers of the step
};

/// What depends only on the program and on the values of its symbols. Bindings of equal shapes share it, also in several contexts and
/// threads, so nothing changes after bind but the number of holders. One block of memory contains it with its tables.
struct Layout {
    std::atomic<int32_t> holders; ///< bindings
    scalide_allocator allocator;  ///< of the context of the first binding
    int32_t *symbols;
    BufferSize *buffers;
    HalideDimension *dimensions; ///< of the kernels' views, in order of steps and operands
    uint64_t arena_bytes;        ///< of the buffers in the arena
    StepPlace *steps;
    BlockPlace *blocks;
    MovedBuffer *moved;   ///< of all blocks, in order
    int32_t *moved_views; ///< indices of views, in the order of `moved`
    bool *is_staged;      ///< by carry: a step may write its `init` before another one has read it
};

/// Returns a layout with one holder and empty tables, or nullptr if memory is lacking.
Layout *allocate_layout(const scalide_context &context, const scalide_program &program);
/// Fills in all tables but the symbols, which must be known.
scalide_status fill_layout(scalide_context *context, const scalide_program &program, Layout &layout);
void release(Layout *layout);

/// Returns the number of dimensions of all views of the kernels.
uint64_t count_dimensions(const scalide_program &program);

uint64_t bytes_of(const scalide_program &program, const Layout &layout, int32_t buffer);

/// Calls visit(operand) for the operands of all steps, in order.
template<typename Visit>
void for_each_operand(const scalide_program &program, Visit visit) {
    for (int32_t i = 0; i < program.step_count; ++i) {
        for (int32_t k = 0; k < program.steps[i].operand_count; ++k) visit(program.steps[i].operands[k]);
    }
}

} // namespace scalide
