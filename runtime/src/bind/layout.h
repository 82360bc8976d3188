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
