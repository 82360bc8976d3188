// Constants: arguments from which a prepare program computes arrays once. Bindings share these arrays and count their holders.
#include "bind/prepared.h"
#include "base/float_environment.h"
#include "bind/check.h"
#include "bind/choose.h"
#include "bind/extent.h"
#include "context/entry.h"
#include <algorithm>
#include <cstring>
#include <sched.h>

using namespace scalide;

namespace {

bool is_constant(const scalide_program &program, int32_t argument) { return program.arguments[argument].role == SCALIDE_CONSTANT; }

bool has_constants(const scalide_program &program) {
    for (int32_t i = 0; i < program.argument_count; ++i) {
        if (is_constant(program, i)) return true;
    }
    return false;
}

scalide_constants *lay_out(void *memory, const scalide_program &program, uint64_t *bytes) {
    Carver carver(memory);
    auto *constants = carver.take<scalide_constants>(1);
    auto *arguments = carver.take<scalide_array>(static_cast<uint64_t>(program.argument_count));
    auto *prepared = carver.take<scalide_array>(static_cast<uint64_t>(program.prepare ? program.prepare->argument_count : 0));
    *bytes = carver.bytes();
    if (!memory) return nullptr;
    std::memset(memory, 0, *bytes);
    constants->arguments = arguments;
    constants->prepared = prepared;
    return constants;
}

/// Allocates constants without prepared arrays. Returns NULL if memory is lacking.
scalide_constants *allocate_constants(scalide_context &context, const scalide_program &program, const scalide_array *arrays) {
    uint64_t bytes;
    lay_out(nullptr, program, &bytes);
    void *memory = allocate(context.allocator, bytes);
    if (!memory) return nullptr;
    scalide_constants *constants = lay_out(memory, program, &bytes);
    constants->allocator = context.allocator;
    constants->holders.store(1);
    if (context.device) {
        constants->context = &context;
        retain_context(&context);
    }
    constants->prepare = program.prepare;
    constants->argument_count = program.argument_count;
    for (int32_t i = 0; i < program.argument_count; ++i) {
        if (!is_constant(program, i)) continue;
        constants->arguments[i] = arrays[i];
        constants->arguments[i].data = nullptr;
        constants->arguments[i].scale = nullptr;
    }
    return constants;
}

/// Returns the bytes of a dense array, rounded up. An array that is too large has 0: scalide_bind rejects it.
uint64_t rounded_bytes(const scalide_array &array) {
    int64_t elements = 1;
    for (int32_t axis = 0; axis < array.rank; ++axis) elements = multiply_extent(elements, array.extent[axis]);
    if (elements > SCALIDE_MAX_ELEMENTS) return 0;
    return round_up(static_cast<uint64_t>(elements) * scalide_dtype_size(array.dtype), memory_alignment);
}

/// Allocates one block for all prepared arrays and gives each its address.
scalide_status allocate_prepared(scalide_context *context, scalide_constants &constants, scalide_array *prepared, int32_t count) {
    for (int32_t i = 0; i < count; ++i) constants.bytes += rounded_bytes(prepared[i]);
    const scalide_status status = scalide_allocate(context, constants.bytes, &constants.memory);
    if (status != SCALIDE_OK) return status;
    uint64_t offset = 0;
    for (int32_t i = 0; i < count; ++i) {
        prepared[i].data = static_cast<char *>(constants.memory) + offset;
        offset += rounded_bytes(prepared[i]);
    }
    return SCALIDE_OK;
}

/// Runs the prepare program. `arrays` has its arguments: first the constants, then the outputs, which this function fills in.
scalide_status run_prepare(scalide_context *context, scalide_constants &constants, scalide_array *arrays, int32_t inputs) {
    const scalide_program *prepare = constants.prepare;
    const auto count = static_cast<size_t>(prepare->argument_count);
    constants.prepared_count = prepare->argument_count - inputs;
    scalide_status status = scalide_shape_outputs(context, prepare, arrays, count);
    if (status == SCALIDE_OK) status = allocate_prepared(context, constants, arrays + inputs, constants.prepared_count);
    scalide_binding *binding = nullptr;
    if (status == SCALIDE_OK) status = scalide_bind(context, prepare, arrays, count, &binding);
    if (status == SCALIDE_OK) status = scalide_run(binding);
    if (status == SCALIDE_OK) status = scalide_synchronise(context);
    scalide_binding_destroy(binding);
    std::copy(arrays + inputs, arrays + count, constants.prepared);
    return status;
}

scalide_status out_of_memory(scalide_context *context, const scalide_program &program) {
    start_message(context) << program.name << ": out of memory: cannot allocate the tables of the constants.";
    return SCALIDE_OUT_OF_MEMORY;
}

/// The program of the call is the variant for the context.
scalide_status prepare_constants(const Call &call, scalide_constants **result) {
    scalide_context *context = call.context;
    const scalide_program &program = call.program;
    for (int32_t i = 0; i < program.argument_count; ++i) {
        if (is_constant(program, i) && !check_type(call, i)) return SCALIDE_INVALID_ARGUMENT;
    }
    scalide_constants *constants = allocate_constants(*context, program, call.arrays);
    if (!constants) return out_of_memory(context, program);
    scalide_status status = SCALIDE_OK;
    if (program.prepare) {
        const uint64_t bytes = sizeof(scalide_array) * static_cast<uint64_t>(program.prepare->argument_count);
        auto *own = static_cast<scalide_array *>(allocate(context->allocator, bytes));
        int32_t inputs = 0;
        for (int32_t i = 0; own && i < program.prepare->argument_count; ++i) own[i] = {};
        for (int32_t i = 0; own && i < program.argument_count; ++i) {
            if (is_constant(program, i)) own[inputs++] = call.arrays[i];
        }
        status = own ? run_prepare(context, *constants, own, inputs) : out_of_memory(context, program);
        release(context->allocator, own);
    }
    if (status == SCALIDE_OK) {
        *result = constants;
    } else {
        scalide_constants_destroy(constants);
    }
    return status;
}

bool is_made_for(const scalide_constants &constants, const scalide_context &context, const scalide_program &program) {
    return constants.prepare == program.prepare && constants.argument_count == program.argument_count &&
           constants.context == (context.device ? &context : nullptr);
}

/// Protects the two pointers to constants of a binding while one of them is replaced, for a few instructions.
class ConstantsLock {
public:
    explicit ConstantsLock(const scalide_binding &binding) : flag_(binding.constants_lock) {
        while (flag_.exchange(true, std::memory_order_acquire)) sched_yield();
    }
    ConstantsLock(const ConstantsLock &) = delete;
    ConstantsLock &operator=(const ConstantsLock &) = delete;
    ~ConstantsLock() { flag_.store(false, std::memory_order_release); }

private:
    std::atomic<bool> &flag_;
};

/// Replaces the constants that the next run takes. Returns the constants that no run has taken.
scalide_constants *exchange_next(scalide_binding &binding, scalide_constants *next) {
    const ConstantsLock lock(binding);
    return binding.next_constants.exchange(next);
}

bool have_equal_extents(const scalide_array &a, const scalide_array &b) {
    return a.rank == b.rank && std::equal(a.extent, a.extent + a.rank, b.extent);
}

} // namespace

namespace scalide {

scalide_status HeldConstants::provide(const Call &call) {
    if (!constants_) return has_constants(call.program) ? prepare_constants(call, &constants_) : SCALIDE_OK;
    if (is_made_for(*constants_, *call.context, call.program)) return SCALIDE_OK;
    start_message(call.context) << call.program.name
                                << ": the constants must be prepared for this program and, on a device, in this context. Call "
                                   "scalide_prepare with them.";
    return SCALIDE_INVALID_ARGUMENT;
}

void HeldConstants::give_to(scalide_binding &binding) {
    binding.constants = constants_;
    for (int32_t i = 0; constants_ && i < binding.program->argument_count; ++i) {
        if (is_constant(*binding.program, i)) binding.arrays[i] = constants_->arguments[i];
    }
    constants_ = nullptr;
}

scalide_constants *hold_newest_constants(const scalide_binding &binding) {
    const ConstantsLock lock(binding);
    scalide_constants *next = binding.next_constants.load(std::memory_order_relaxed);
    scalide_constants *newest = next ? next : binding.constants;
    if (newest) newest->holders.fetch_add(1);
    return newest;
}

scalide_status check_prepared(const scalide_binding &binding) {
    for (int32_t i = 0; i < binding.program->buffer_count; ++i) {
        const scalide_buffer &buffer = binding.program->buffers[i];
        if (buffer.storage != SCALIDE_STORAGE_PREPARED) continue;
        const scalide_array expected = describe(buffer, binding.symbols, nullptr);
        const scalide_array &prepared = binding.constants->prepared[buffer.index];
        if (expected.dtype == prepared.dtype && have_equal_extents(expected, prepared)) continue;
        start_message(binding.context) << binding.program->name << '.' << buffer.name
                                       << ": the prepared array has another type than the program reads. Generate the library again.";
        return SCALIDE_INVALID_PROGRAM;
    }
    return SCALIDE_OK;
}

scalide_status take_next_constants(scalide_binding &binding) {
    if (!binding.next_constants.load(std::memory_order_relaxed)) return SCALIDE_OK;
    scalide_constants *before = binding.constants;
    {
        const ConstantsLock lock(binding);
        binding.constants = binding.next_constants.exchange(nullptr);
    }
    if (binding.context->device) binding.context->device->driver->synchronise(*binding.context->device); // earlier runs read the old ones
    const scalide_status status = replace_addresses(binding);
    scalide_constants_destroy(before);
    return status;
}

} // namespace scalide

scalide_status scalide_prepare(scalide_context *context, const scalide_program *program, const scalide_array *arrays, size_t count,
                               scalide_constants **result) {
    if (result) *result = nullptr;
    const Entry entry(context, "scalide_prepare", {{"program", program}, {"arrays", arrays || count == 0}, {"constants", result}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    const FloatEnvironment environment;
    const scalide_status status = choose_program(context, &program);
    if (status != SCALIDE_OK) return status;
    const Call call = {context, *program, arrays};
    return check_count(call, count) ? prepare_constants(call, result) : SCALIDE_INVALID_ARGUMENT;
}

scalide_status scalide_set_constants(scalide_binding *binding, scalide_constants *constants) {
    if (!binding || !constants || !is_made_for(*constants, *binding->context, *binding->program)) return SCALIDE_INVALID_ARGUMENT;
    for (int32_t i = 0; i < constants->argument_count; ++i) {
        if (is_constant(*binding->program, i) && !have_equal_extents(constants->arguments[i], binding->arrays[i]))
            return SCALIDE_INVALID_ARGUMENT;
    }
    constants->holders.fetch_add(1);
    scalide_constants_destroy(exchange_next(*binding, constants));
    return SCALIDE_OK;
}

size_t scalide_constants_bytes(const scalide_constants *constants) { return constants ? constants->bytes : 0; }

void scalide_constants_destroy(scalide_constants *constants) {
    if (!constants || constants->holders.fetch_sub(1) > 1) return;
    const scalide_allocator allocator = constants->allocator;
    scalide_context *context = constants->context;
    if (!context) {
        release(allocator, constants->memory);
    } else if (constants->memory) {
        enter_when_free(*context);
        context->device->driver->release(*context->device, constants->memory);
        leave(*context);
    }
    release(allocator, constants);
    if (context) release_context(context);
}
