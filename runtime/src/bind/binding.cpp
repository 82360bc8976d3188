#include "bind/binding.h"
#include "bind/arena.h"
#include "bind/check.h"
#include "bind/extent.h"
#include "bind/prepared.h"
#include "run/recorder.h"
#include "run/scalar.h"
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

/// Calls visit(operand) for the operands of all steps, in order.
template<typename Visit>
void for_each_operand(const scalide_program &program, Visit visit) {
    for (int32_t i = 0; i < program.step_count; ++i) {
        for (int32_t k = 0; k < program.steps[i].operand_count; ++k) visit(program.steps[i].operands[k]);
    }
}

/// Places the tables of a binding in `memory` and returns their size in bytes. Without memory, only computes the size.
uint64_t lay_out(const scalide_program &program, void *memory, scalide_binding *binding) {
    uint64_t operands = 0, views = 0, dimensions = 0;
    for_each_operand(program, [&](const scalide_operand &operand) {
        ++operands;
        views += operand.kind == SCALIDE_OPERAND_BUFFER;
        dimensions += static_cast<uint64_t>(operand.rank);
    });
    Carver carver(memory);
    carver.take<scalide_binding>(1);
    binding->arrays = carver.take<scalide_array>(static_cast<uint64_t>(program.argument_count));
    binding->symbols = carver.take<int32_t>(static_cast<uint64_t>(program.symbol_count));
    binding->buffers = carver.take<BoundBuffer>(static_cast<uint64_t>(program.buffer_count));
    binding->scalars = carver.take<uint64_t>(static_cast<uint64_t>(program.scalar_count));
    binding->descriptors = carver.take<HalideBuffer>(views);
    binding->dimensions = carver.take<HalideDimension>(dimensions);
    binding->arguments = carver.take<void *>(operands + static_cast<uint64_t>(program.step_count));
    return carver.bytes();
}

Text complain_about(const scalide_binding &binding, const char *name) {
    return start_message(binding.context) << binding.program->name << '.' << name << ": ";
}

scalide_status out_of_memory(const scalide_binding &binding, const char *what, uint64_t bytes) {
    start_message(binding.context) << binding.program->name << ": cannot allocate " << what << " (" << bytes
                                   << " bytes): out of memory. Bind smaller arrays.";
    return SCALIDE_OUT_OF_MEMORY;
}

/// Reports an array with too many elements, and the values of the symbols.
void complain_about_elements(const scalide_binding &binding, const scalide_buffer &buffer) {
    const scalide_program &program = *binding.program;
    Text text = complain_about(binding, buffer.name) << "this array would have more than " << SCALIDE_MAX_ELEMENTS << " elements";
    if (program.symbol_count > 0) print_values(text << " with", program, binding.symbols);
    text << ". Bind smaller arrays.";
}

scalide_status count_buffers(scalide_binding &binding) {
    const scalide_program &program = *binding.program;
    for (int32_t i = 0; i < program.buffer_count; ++i) {
        const scalide_buffer &buffer = program.buffers[i];
        if (count_elements(buffer.shape, buffer.rank, binding.symbols, &binding.buffers[i].elements)) continue;
        complain_about_elements(binding, buffer);
        return SCALIDE_INVALID_ARGUMENT;
    }
    return SCALIDE_OK;
}

uint64_t bytes_of(const scalide_binding &binding, int32_t buffer) {
    return static_cast<uint64_t>(binding.buffers[buffer].elements) * scalide_dtype_size(binding.program->buffers[buffer].dtype);
}

scalide_status device_failed(const scalide_binding &binding, scalide_status status) {
    start_message(binding.context) << binding.program->name << ": " << binding.context->device->failure << ". " << way_out(status);
    return status;
}

// Buffers that kernels read but do not write are in the program or the binding on the CPU, and in the arena on a device.
bool is_in_arena(const scalide_binding &binding, int32_t buffer) {
    const int32_t storage = binding.program->buffers[buffer].storage;
    const bool moves = binding.context->device && (storage == SCALIDE_STORAGE_CONSTANT || storage == SCALIDE_STORAGE_SIZE);
    return storage == SCALIDE_STORAGE_ARENA || moves;
}

ArenaItem arena_item(const scalide_binding &binding, int32_t index) {
    const scalide_buffer &buffer = binding.program->buffers[index];
    if (buffer.storage == SCALIDE_STORAGE_ARENA) return {bytes_of(binding, index), buffer.first_step, buffer.last_step, 0};
    return {bytes_of(binding, index), 0, INT32_MAX, 0};
}

constexpr uint64_t scratch_alignment = 256; // the alignment that cuBLASLt needs for a workspace

scalide_status allocate_memory(scalide_binding &binding, uint64_t packed) {
    const uint64_t scalars = round_up(packed, memory_alignment),
                   scratch = round_up(scalars + sizeof(uint64_t) * static_cast<uint64_t>(binding.program->scalar_count), scratch_alignment);
    if (!binding.context->device) {
        binding.arena_bytes = packed;
        binding.arena = allocate(binding.context->allocator, packed);
        return binding.arena ? SCALIDE_OK : out_of_memory(binding, "the arena", packed);
    }
    if (packed == UINT64_MAX) return out_of_memory(binding, "the arena", packed);
    binding.arena_bytes = scratch + binding.launches.scratch_bytes;
    if (binding.arena_bytes == 0) return SCALIDE_OK;
    Device &device = *binding.context->device;
    const scalide_status status = device.driver->allocate(device, binding.arena_bytes, &binding.arena);
    if (status != SCALIDE_OK) return device_failed(binding, status);
    binding.scalars = reinterpret_cast<uint64_t *>(static_cast<char *>(binding.arena) + scalars);
    binding.launches.scratch = static_cast<char *>(binding.arena) + scratch;
    return SCALIDE_OK;
}

scalide_status allocate_arena(scalide_binding &binding) {
    const scalide_program &program = *binding.program;
    const auto count = static_cast<uint64_t>(program.buffer_count);
    Carver sizes;
    sizes.take<ArenaItem>(count);
    sizes.take<int32_t>(2 * count);
    void *memory = allocate(binding.context->allocator, sizes.bytes());
    if (!memory) return out_of_memory(binding, "the tables that plan the arena", sizes.bytes());
    Carver carver(memory);
    auto *items = carver.take<ArenaItem>(count);
    auto *work = carver.take<int32_t>(2 * count);
    int32_t arena_buffers = 0;
    for (int32_t i = 0; i < program.buffer_count; ++i) {
        if (is_in_arena(binding, i)) items[arena_buffers++] = arena_item(binding, i);
    }
    const scalide_status status = allocate_memory(binding, pack_arena(items, arena_buffers, work));
    for (int32_t i = 0, item = 0; status == SCALIDE_OK && i < program.buffer_count; ++i) {
        if (is_in_arena(binding, i)) binding.buffers[i].memory = static_cast<char *>(binding.arena) + items[item++].offset;
    }
    release(binding.context->allocator, memory);
    return status;
}

/// Copies constants and sizes to the memory from which the kernels of a device read them.
scalide_status fill_arena(const scalide_binding &binding) {
    Device &device = *binding.context->device;
    for (int32_t i = 0; i < binding.program->buffer_count; ++i) {
        const scalide_buffer &buffer = binding.program->buffers[i];
        if (!is_in_arena(binding, i) || buffer.storage == SCALIDE_STORAGE_ARENA || bytes_of(binding, i) == 0) continue;
        const void *from = buffer.storage == SCALIDE_STORAGE_CONSTANT ? buffer.constant : &binding.buffers[i].size_value;
        const scalide_status status = device.driver->copy_in(device, binding.buffers[i].memory, from, bytes_of(binding, i));
        if (status != SCALIDE_OK) return device_failed(binding, status);
    }
    return SCALIDE_OK;
}

scalide_status reserve_kernel_scratch(const scalide_binding &binding) {
    int64_t bytes;
    if (binding.program->scratch.count == 0 || !evaluate(binding.program->scratch, binding.symbols, &bytes)) return SCALIDE_OK;
    if (reserve_scratch(binding.context, static_cast<uint64_t>(bytes))) return SCALIDE_OK;
    return out_of_memory(binding, "the scratch memory of each thread", static_cast<uint64_t>(bytes));
}

scalide_status place_sizes(scalide_binding &binding) {
    const scalide_program &program = *binding.program;
    for (int32_t i = 0; i < program.buffer_count; ++i) {
        if (program.buffers[i].storage != SCALIDE_STORAGE_SIZE) continue;
        int64_t size;
        if (!evaluate(*program.buffers[i].size, binding.symbols, &size)) {
            Text text = complain_about(binding, program.buffers[i].name) << "the size must be in [0, " << INT32_MAX << ']';
            print_values(text << ", but it is not with", program, binding.symbols) << ". Bind smaller arrays.";
            return SCALIDE_INVALID_ARGUMENT;
        }
        store_scalar(program.buffers[i].dtype, size, &binding.buffers[i].size_value);
    }
    return SCALIDE_OK;
}

void *memory_of(scalide_binding &binding, int32_t index) {
    const scalide_buffer &buffer = binding.program->buffers[index];
    if (is_in_arena(binding, index)) return binding.buffers[index].memory;
    switch (buffer.storage) {
    case SCALIDE_STORAGE_DATA: return binding.arrays[buffer.index].data;
    case SCALIDE_STORAGE_SCALE: return binding.arrays[buffer.index].scale;
    case SCALIDE_STORAGE_SCALAR: return &binding.scalars[buffer.index];
    case SCALIDE_STORAGE_CONSTANT: return const_cast<void *>(buffer.constant);
    case SCALIDE_STORAGE_PREPARED: return binding.constants->prepared[buffer.index].data;
    default: return &binding.buffers[index].size_value;
    }
}

/// Fills in the shape of a kernel's view: row-major strides, innermost dimension first.
bool describe_view(const scalide_binding &binding, const scalide_operand &operand, HalideBuffer *view, HalideDimension *dimensions) {
    int64_t stride = 1;
    for (int32_t i = 0; i < operand.rank; ++i) {
        int64_t extent;
        if (!evaluate(operand.shape[operand.rank - 1 - i], binding.symbols, &extent)) return false;
        dimensions[i] = {0, static_cast<int32_t>(extent), static_cast<int32_t>(stride), 0};
        stride = multiply_extent(stride, extent); // the strides of an empty view are not used
    }
    view->type = halide_type_of(binding.program->buffers[operand.index].dtype);
    view->dimensions = operand.rank;
    view->dim = dimensions;
    return stride <= binding.buffers[operand.index].elements;
}

scalide_status describe_views(scalide_binding &binding) {
    HalideBuffer *view = binding.descriptors;
    HalideDimension *dimensions = binding.dimensions;
    const scalide_operand *bad = nullptr;
    for_each_operand(*binding.program, [&](const scalide_operand &operand) {
        if (operand.kind != SCALIDE_OPERAND_BUFFER) return;
        if (!describe_view(binding, operand, view, dimensions)) bad = &operand;
        dimensions += operand.rank;
        ++view;
    });
    if (!bad) return SCALIDE_OK;
    complain_about(binding, binding.program->buffers[bad->index].name)
        << "a kernel reads more elements than this buffer has. Generate the library again.";
    return SCALIDE_INVALID_PROGRAM;
}

/// Writes the addresses of the buffers into the kernels' views, and the addresses of the operands into the kernels' argument lists.
void write_addresses(scalide_binding &binding) {
    const scalide_program &program = *binding.program;
    HalideBuffer *view = binding.descriptors;
    void **argument = binding.arguments;
    for (int32_t i = 0; i < program.buffer_count; ++i) binding.buffers[i].memory = memory_of(binding, i);
    for (int32_t i = 0; i < program.step_count; ++i) {
        *argument++ = &binding.user_context;
        for (int32_t k = 0; k < program.steps[i].operand_count; ++k) {
            const scalide_operand &operand = program.steps[i].operands[k];
            if (operand.kind == SCALIDE_OPERAND_SYMBOL) {
                *argument++ = &binding.symbols[operand.index];
            } else if (operand.kind == SCALIDE_OPERAND_SCALAR) {
                *argument++ = binding.buffers[operand.index].memory;
            } else {
                void *memory = binding.buffers[operand.index].memory;
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

scalide_binding *allocate_binding(scalide_context *context, const scalide_program &program) {
    scalide_binding measured = {};
    const uint64_t bytes = lay_out(program, nullptr, &measured);
    void *memory = allocate(context->allocator, bytes);
    if (!memory) return nullptr;
    std::memset(memory, 0, bytes);
    auto *binding = static_cast<scalide_binding *>(memory);
    lay_out(program, memory, binding);
    binding->context = context;
    binding->program = &program;
    binding->user_context = static_cast<KernelContext *>(&context->workers[0]);
    return binding;
}

scalide_status point(scalide_binding &binding) {
    write_addresses(binding);
    return binding.context->device ? Recorder(binding).record() : SCALIDE_OK;
}

scalide_status prepare(scalide_binding &binding) {
    const bool on_device = binding.context->device != nullptr;
    scalide_status status = count_buffers(binding);
    if (status == SCALIDE_OK) status = check_prepared(binding);
    if (status == SCALIDE_OK) status = place_sizes(binding);
    if (status == SCALIDE_OK) status = describe_views(binding);
    if (status == SCALIDE_OK && on_device) status = measure_launches(binding);
    if (status == SCALIDE_OK) status = allocate_arena(binding);
    if (status == SCALIDE_OK && on_device) status = fill_arena(binding);
    if (status == SCALIDE_OK) status = reserve_kernel_scratch(binding);
    if (status == SCALIDE_OK) status = point(binding);
    return status;
}

} // namespace scalide
