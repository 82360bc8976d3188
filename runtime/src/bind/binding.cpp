#include "bind/binding.h"
#include "bind/block_tables.h"
#include "bind/check.h"
#include "bind/collectives.h"
#include "bind/extent.h"
#include "bind/prepared.h"
#include "bind/recorder.h"
#include "bind/views.h"
#include <cstring>

namespace scalide {

namespace {

enum class Kind { SCALIDE_DTYPE_KINDS };

/// The type of a stored element, for which the kernels were compiled. A float type that C does not have is an unsigned integer.
constexpr HalideType word_of(Kind kind, uint8_t bits) {
    const uint8_t code = kind == Kind::floating && bits >= 32 ? 2 : kind == Kind::signed_integer ? 0 : 1;
    return {code, bits, 1};
}

#define SCALIDE_WORD(id, name, text, number, kind, bits, ...) word_of(Kind::kind, bits),
constexpr HalideType halide_types[] = {SCALIDE_DTYPES(SCALIDE_WORD)};
#undef SCALIDE_WORD

/// Places the tables of a binding in `memory` and returns their size in bytes. Without memory, only computes the size.
uint64_t lay_out(const scalide_program &program, void *memory, scalide_binding *binding) {
    uint64_t operands = 0, views = 0;
    for_each_operand(program, [&](const scalide_operand &operand) {
        ++operands;
        views += operand.kind == SCALIDE_OPERAND_BUFFER;
    });
    Carver carver(memory);
    carver.take<scalide_binding>(1);
    binding->arrays = carver.take<scalide_array>(static_cast<uint64_t>(program.argument_count));
    binding->data = carver.take<ArgumentData>(static_cast<uint64_t>(program.argument_count));
    binding->memory = carver.take<void *>(static_cast<uint64_t>(program.buffer_count));
    binding->scalars = carver.take<ScalarSlot>(static_cast<uint64_t>(program.scalar_count));
    binding->descriptors = carver.take<HalideBuffer>(views);
    binding->arguments = carver.take<void *>(operands + static_cast<uint64_t>(program.step_count));
    const BlockCounts counts = count_blocks(program);
    binding->loops.rows = carver.take<RowState>(counts.rows);
    binding->loops.carries = carver.take<CarryState>(counts.carries);
    binding->loops.steps = carver.take<int64_t>(static_cast<uint64_t>(program.block_count));
    return carver.bytes();
}

scalide_status out_of_memory(const scalide_binding &binding, const char *what, uint64_t bytes) {
    start_message(binding.context) << binding.program->name << ": cannot allocate " << what << " (" << bytes
                                   << " bytes): out of memory. Bind smaller arrays.";
    return SCALIDE_OUT_OF_MEMORY;
}

scalide_status device_failed(const scalide_binding &binding, scalide_status status) {
    start_message(binding.context) << binding.program->name << ": " << binding.context->device->failure << ". " << way_out(status);
    return status;
}

/// Returns the offset of the scalars in the arena of a device. The scratch memory of kernels follows them.
uint64_t scalars_offset(const scalide_binding &binding) { return round_up(binding.layout->arena_bytes, memory_alignment); }

uint64_t scratch_offset(const scalide_binding &binding) {
    return round_up(scalars_offset(binding) + sizeof(ScalarSlot) * static_cast<uint64_t>(binding.program->scalar_count),
                    device_arena_alignment);
}

void *memory_of(scalide_binding &binding, int32_t index) {
    const scalide_buffer &buffer = binding.program->buffers[index];
    switch (buffer.storage) {
    case SCALIDE_STORAGE_DATA:
        return binding.data[buffer.index].access == Access::copied ? copy_of(binding, buffer.index).data
                                                                   : binding.arrays[buffer.index].data;
    case SCALIDE_STORAGE_SCALE: return binding.arrays[buffer.index].scale;
    case SCALIDE_STORAGE_SCALAR: return &binding.scalars[buffer.index];
    case SCALIDE_STORAGE_PREPARED: return binding.constants->prepared[buffer.index].data;
    default: return binding.arena ? static_cast<char *>(binding.arena) + binding.layout->buffers[index].arena_offset : nullptr;
    }
}

/// Fills in the types and shapes of the kernels' views.
void describe_views(scalide_binding &binding) {
    HalideBuffer *view = binding.descriptors;
    HalideDimension *dimensions = binding.strided ? binding.strided : binding.layout->dimensions;
    for_each_operand(*binding.program, [&](const scalide_operand &operand) {
        if (operand.kind != SCALIDE_OPERAND_BUFFER) return;
        view->type = halide_type_of(binding.program->buffers[operand.index].dtype);
        view->dimensions = operand.rank;
        view->dim = dimensions;
        dimensions += operand.rank;
        ++view;
    });
}

/// Writes the addresses of the buffers into the kernels' views, and the addresses of the operands into the kernels' argument lists.
void write_addresses(scalide_binding &binding) {
    const scalide_program &program = *binding.program;
    HalideBuffer *view = binding.descriptors;
    void **argument = binding.arguments;
    if (binding.strided) write_strides(binding);
    for (int32_t i = 0; i < program.buffer_count; ++i) binding.memory[i] = memory_of(binding, i);
    for (int32_t i = 0; i < program.step_count; ++i) {
        *argument++ = &binding.user_context;
        for (int32_t k = 0; k < program.steps[i].operand_count; ++k) {
            const scalide_operand &operand = program.steps[i].operands[k];
            if (operand.kind == SCALIDE_OPERAND_SYMBOL) {
                *argument++ = &binding.symbols[operand.index];
            } else {
                void *memory = binding.memory[operand.index];
                view->host = binding.context->device ? nullptr : static_cast<uint8_t *>(memory);
                view->device = binding.context->device ? reinterpret_cast<uintptr_t>(memory) : 0;
                *argument++ = view++;
            }
        }
    }
}

// The kernels' host code reports what it launches. Buffers that must persist between two launches are part of the arena.
scalide_status measure_launches(scalide_binding &binding) {
    write_addresses(binding);
    return Recorder(binding).measure();
}

} // namespace

HalideType halide_type_of(int32_t dtype) { return halide_types[dtype]; }

scalide_binding *allocate_binding(scalide_context *context, const scalide_program &program, Layout *shared) {
    scalide_binding measured = {};
    const uint64_t bytes = lay_out(program, nullptr, &measured);
    void *memory = allocate(context->allocator, bytes);
    Layout *layout = memory && !shared ? allocate_layout(*context, program) : shared;
    if (!memory || !layout) {
        release(context->allocator, memory);
        return nullptr;
    }
    if (shared) shared->holders.fetch_add(1);
    std::memset(memory, 0, bytes);
    auto *binding = static_cast<scalide_binding *>(memory);
    lay_out(program, memory, binding);
    binding->context = context;
    retain_context(context);
    binding->program = binding->asked = &program;
    binding->user_context = static_cast<KernelContext *>(&context->workers[0]);
    binding->layout = layout;
    binding->symbols = layout->symbols;
    binding->loops.current = -1;
    return binding;
}

scalide_status allocate_arena(scalide_binding &binding, void **arena) {
    if (binding.layout->arena_bytes == UINT64_MAX) return out_of_memory(binding, "the arena", UINT64_MAX);
    if (!binding.context->device) {
        *arena = allocate(binding.context->allocator, binding.arena_bytes);
        return *arena ? SCALIDE_OK : out_of_memory(binding, "the arena", binding.arena_bytes);
    }
    *arena = nullptr;
    if (binding.arena_bytes == 0) return SCALIDE_OK;
    Device &device = *binding.context->device;
    const scalide_status status = device.driver->allocate(device, binding.arena_bytes, arena);
    return status == SCALIDE_OK ? status : device_failed(binding, status);
}

void release_arena(const scalide_binding &binding, void *arena) {
    if (!binding.context->device) {
        release(binding.context->allocator, arena);
    } else if (arena) {
        binding.context->device->driver->release(*binding.context->device, arena);
    }
}

void use_arena(scalide_binding &binding, void *arena) {
    binding.arena = arena;
    if (!binding.context->device || !arena) return;
    binding.scalars = reinterpret_cast<ScalarSlot *>(static_cast<char *>(arena) + scalars_offset(binding));
    binding.launches.scratch = static_cast<char *>(arena) + scratch_offset(binding);
}

scalide_status point(scalide_binding &binding) {
    write_addresses(binding);
    return binding.context->device ? Recorder(binding).record() : SCALIDE_OK;
}

scalide_status complete(scalide_binding &binding) {
    const bool on_device = binding.context->device != nullptr;
    uint64_t copies = 0;
    scalide_status status = check_prepared(binding);
    if (status == SCALIDE_OK) status = choose_access(binding, &copies);
    if (status != SCALIDE_OK) return status;
    describe_views(binding);
    if (on_device) status = measure_launches(binding);
    binding.arena_bytes = on_device ? scratch_offset(binding) + binding.launches.scratch_bytes : binding.layout->arena_bytes;
    if (copies > 0 && binding.layout->arena_bytes != UINT64_MAX) {
        binding.copies_offset = round_up(binding.arena_bytes, device_arena_alignment);
        binding.arena_bytes = binding.copies_offset + copies;
    }
    binding.has_collectives = has_collectives(*binding.program);
    if (status == SCALIDE_OK && binding.has_collectives) status = allocate_staging(binding);
    void *arena = nullptr;
    if (status == SCALIDE_OK) status = allocate_arena(binding, &arena);
    if (status != SCALIDE_OK) return status;
    use_arena(binding, arena);
    return point(binding);
}

} // namespace scalide
