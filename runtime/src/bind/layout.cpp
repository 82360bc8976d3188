#include "bind/layout.h"
#include "base/memory.h"
#include "base/scalar.h"
#include "bind/arena.h"
#include "bind/block_tables.h"
#include "bind/check.h"
#include "bind/collectives.h"
#include "bind/extent.h"
#include <cstring>

namespace scalide {

namespace {

/// A layout in progress, for messages.
struct Filling {
    scalide_context *context;
    const scalide_program &program;
    Layout &layout;

    Text complain_about(const char *name) const { return start_message(context) << program.name << '.' << name << ": "; }
};

} // namespace

uint64_t count_dimensions(const scalide_program &program) {
    uint64_t count = 0;
    for_each_operand(program, [&](const scalide_operand &operand) { count += static_cast<uint64_t>(operand.rank); });
    return count;
}

namespace {

/// Places the tables in `memory` and returns their size in bytes. Without memory, only computes the size.
uint64_t lay_out(const scalide_program &program, void *memory, Layout *layout) {
    Carver carver(memory);
    carver.take<Layout>(1);
    layout->symbols = carver.take<int32_t>(static_cast<uint64_t>(program.symbol_count));
    layout->buffers = carver.take<BufferSize>(static_cast<uint64_t>(program.buffer_count));
    layout->dimensions = carver.take<HalideDimension>(count_dimensions(program));
    const BlockCounts counts = count_blocks(program);
    layout->steps = carver.take<StepPlace>(static_cast<uint64_t>(program.step_count));
    layout->blocks = carver.take<BlockPlace>(static_cast<uint64_t>(program.block_count));
    layout->moved = carver.take<MovedBuffer>(counts.rows + 2 * counts.carries);
    layout->moved_views = carver.take<int32_t>(counts.views);
    layout->is_staged = carver.take<bool>(counts.carries);
    return carver.bytes();
}

/// Reports an array with too many elements, and the values of the symbols.
void complain_about_elements(const Filling &filling, const scalide_buffer &buffer) {
    Text text = filling.complain_about(buffer.name) << "this array would have more than " << SCALIDE_MAX_ELEMENTS << " elements";
    if (filling.program.symbol_count > 0) print_values(text << " with", filling.program, filling.layout.symbols);
    text << ". Bind smaller arrays.";
}

scalide_status count_buffers(const Filling &filling) {
    for (int32_t i = 0; i < filling.program.buffer_count; ++i) {
        const scalide_buffer &buffer = filling.program.buffers[i];
        if (count_elements(buffer.shape, buffer.rank, filling.layout.symbols, &filling.layout.buffers[i].elements)) continue;
        complain_about_elements(filling, buffer);
        return SCALIDE_INVALID_ARGUMENT;
    }
    return SCALIDE_OK;
}

/// Fills in the dimensions of a kernel's view: row-major strides, innermost dimension first.
bool describe_view(const Filling &filling, const scalide_operand &operand, HalideDimension *dimensions) {
    int64_t stride = 1;
    for (int32_t i = 0; i < operand.rank; ++i) {
        int64_t extent;
        if (!evaluate(operand.shape[operand.rank - 1 - i], filling.layout.symbols, &extent)) return false;
        dimensions[i] = {0, static_cast<int32_t>(extent), static_cast<int32_t>(stride), 0};
        stride = multiply_extent(stride, extent); // the strides of an empty view are not used
    }
    return stride <= filling.layout.buffers[operand.index].elements;
}

scalide_status describe_views(const Filling &filling) {
    HalideDimension *dimensions = filling.layout.dimensions;
    const scalide_operand *bad = nullptr;
    for_each_operand(filling.program, [&](const scalide_operand &operand) {
        if (operand.kind != SCALIDE_OPERAND_BUFFER) return;
        if (!describe_view(filling, operand, dimensions)) bad = &operand;
        dimensions += operand.rank;
    });
    if (!bad) return SCALIDE_OK;
    filling.complain_about(filling.program.buffers[bad->index].name)
        << "a kernel reads more elements than this buffer has. Generate the library again.";
    return SCALIDE_INVALID_PROGRAM;
}

ArenaItem arena_item(const Filling &filling, int32_t index) {
    const scalide_buffer &buffer = filling.program.buffers[index];
    const uint64_t bytes = bytes_of(filling.program, filling.layout, index);
    return {bytes, buffer.first_step, buffer.last_step, 0};
}

scalide_status plan_arena(const Filling &filling) {
    const scalide_program &program = filling.program;
    const auto count = static_cast<uint64_t>(program.buffer_count);
    Carver sizes;
    sizes.take<ArenaItem>(count);
    sizes.take<int32_t>(2 * count);
    void *memory = allocate(filling.context->allocator, sizes.bytes());
    if (!memory) {
        start_message(filling.context) << program.name << ": cannot allocate the tables that plan the arena (" << sizes.bytes()
                                       << " bytes): out of memory. Bind smaller arrays.";
        return SCALIDE_OUT_OF_MEMORY;
    }
    Carver carver(memory);
    auto *items = carver.take<ArenaItem>(count);
    auto *work = carver.take<int32_t>(2 * count);
    int32_t item_count = 0;
    for (int32_t i = 0; i < program.buffer_count; ++i)
        if (program.buffers[i].storage == SCALIDE_STORAGE_ARENA) items[item_count++] = arena_item(filling, i);
    filling.layout.arena_bytes = pack_arena(items, item_count, work);
    for (int32_t i = 0, item = 0; i < program.buffer_count; ++i)
        if (program.buffers[i].storage == SCALIDE_STORAGE_ARENA) filling.layout.buffers[i].arena_offset = items[item++].offset;
    release(filling.context->allocator, memory);
    return SCALIDE_OK;
}

} // namespace

Layout *allocate_layout(const scalide_context &context, const scalide_program &program) {
    Layout measured = {};
    const uint64_t bytes = lay_out(program, nullptr, &measured);
    void *memory = allocate(context.allocator, bytes);
    if (!memory) return nullptr;
    std::memset(memory, 0, bytes);
    auto *layout = static_cast<Layout *>(memory);
    lay_out(program, memory, layout);
    layout->holders.store(1);
    layout->allocator = context.allocator;
    return layout;
}

scalide_status fill_layout(scalide_context *context, const scalide_program &program, Layout &layout) {
    const Filling filling = {context, program, layout};
    scalide_status status = count_buffers(filling);
    if (status == SCALIDE_OK) status = describe_views(filling);
    if (status == SCALIDE_OK) status = check_collectives(context, program, layout);
    if (status == SCALIDE_OK) status = fill_blocks(context, program, layout);
    return status == SCALIDE_OK ? plan_arena(filling) : status;
}

void release(Layout *layout) {
    if (layout->holders.fetch_sub(1) > 1) return;
    const scalide_allocator allocator = layout->allocator;
    release(allocator, layout);
}

uint64_t bytes_of(const scalide_program &program, const Layout &layout, int32_t buffer) {
    return static_cast<uint64_t>(layout.buffers[buffer].elements) * scalide_dtype_size(program.buffers[buffer].dtype);
}

} // namespace scalide
