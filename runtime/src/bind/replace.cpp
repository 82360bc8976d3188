// Changes of a binding: other arrays, another arena, its end.
#include "base/float_environment.h"
#include "bind/binding.h"
#include "bind/check.h"
#include "bind/recorder.h"
#include "bind/views.h"
#include "context/entry.h"

using namespace scalide;

namespace scalide {

// Only a device can fail here. The state of its launches is then unknown.
scalide_status replace_addresses(scalide_binding &binding) {
    scalide_status status = point(binding);
    if (status == SCALIDE_OK && binding.launches.graph) status = capture(binding);
    if (status != SCALIDE_OK) binding.status = status;
    return status;
}

} // namespace scalide

namespace {

/// Returns the arrays for a binding, which must not be in its arena.
Call call_of(const scalide_binding &binding, const scalide_array *arrays) {
    return {binding.context, *binding.program, arrays, binding.has_callers_arena ? binding.arena : nullptr, binding.arena_bytes};
}

/// Checks memory of the caller for the arena.
scalide_status check_arena(const scalide_binding &binding, const void *memory, uint64_t bytes) {
    const uint64_t alignment = binding.context->device ? device_arena_alignment : memory_alignment;
    const uint64_t rest = reinterpret_cast<uintptr_t>(memory) % alignment;
    Device *device = binding.context->device;
    const Call call = {binding.context, *binding.program, binding.arrays, memory, binding.arena_bytes};
    if (bytes < binding.arena_bytes) {
        start_message(binding.context) << binding.program->name << ": the arena must have at least " << binding.arena_bytes
                                       << " bytes, got " << bytes << ". Ask scalide_arena_bytes.";
    } else if (rest != 0) {
        start_message(binding.context) << binding.program->name << ": the arena must be aligned to " << alignment
                                       << " bytes; this address is " << rest << " bytes past a " << alignment
                                       << "-byte boundary. Use scalide_allocate or aligned_alloc(" << alignment << ", size).";
    } else if (device && !device->driver->holds(*device, memory)) {
        start_message(binding.context) << binding.program->name
                                       << ": the arena must be memory of the context's device. Allocate it with scalide_allocate.";
    } else if (check_overlap(call)) {
        return SCALIDE_OK;
    }
    return SCALIDE_INVALID_ARGUMENT;
}

/// Only a device can fail here.
scalide_status replace_arena(scalide_binding &binding, void *arena, bool is_callers) {
    Device *device = binding.context->device;
    if (device) device->driver->synchronise(*device); // earlier runs use the old memory
    void *own = binding.has_callers_arena ? nullptr : binding.arena;
    binding.has_callers_arena = is_callers;
    use_arena(binding, arena);
    const scalide_status status = replace_addresses(binding);
    if (own) release_arena(binding, own);
    return status;
}

} // namespace

scalide_status scalide_set_argument(scalide_binding *binding, size_t index, const scalide_array *array) {
    const Entry entry(context_of(binding), "scalide_set_argument", {{"array", array}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    const FloatEnvironment environment;
    const Call call = call_of(*binding, binding->arrays);
    if (index >= static_cast<size_t>(call.program.argument_count)) {
        start_message(call.context) << call.program.name << ": the argument index must be less than " << call.program.argument_count
                                    << ", got " << uint64_t(index) << ". Find it by name with scalide_find_argument.";
        return SCALIDE_INVALID_ARGUMENT;
    }
    const auto argument = static_cast<int32_t>(index);
    if (!is_used_by_runs(call.program.arguments[index].role)) {
        complain(call, argument) << "cannot replace a constant alone: the program has prepared it. Call scalide_prepare and "
                                    "scalide_set_constants.";
        return SCALIDE_INVALID_ARGUMENT;
    }
    const scalide_array before = binding->arrays[index];
    binding->arrays[index] = *array;
    if (check_type(call, argument) && check_shape(call, argument, binding->symbols) && check_memory(call, argument) &&
        check_access(*binding, call, argument) && check_overlap(call))
        return replace_addresses(*binding);
    binding->arrays[index] = before;
    return SCALIDE_INVALID_ARGUMENT;
}

scalide_status scalide_set_arguments(scalide_binding *binding, const scalide_array *arrays, size_t count) {
    const Entry entry(context_of(binding), "scalide_set_arguments", {{"arrays", arrays || count == 0}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    const FloatEnvironment environment;
    const Call call = call_of(*binding, arrays);
    if (!check_count(call, count)) return SCALIDE_INVALID_ARGUMENT;
    if (!check_like(call, binding->symbols)) return SCALIDE_INVALID_ARGUMENT;
    for (int32_t i = 0; i < call.program.argument_count; ++i)
        if (is_used_by_runs(call.program.arguments[i].role) && !check_access(*binding, call, i)) return SCALIDE_INVALID_ARGUMENT;
    for (int32_t i = 0; i < call.program.argument_count; ++i)
        if (is_used_by_runs(call.program.arguments[i].role)) binding->arrays[i] = arrays[i];
    return replace_addresses(*binding);
}

void scalide_binding_destroy(scalide_binding *binding) {
    if (!binding) return;
    const FloatEnvironment environment;
    scalide_context *context = binding->context;
    Device *device = context->device;
    if (device) {
        enter_when_free(*context);
        device->driver->synchronise(*device);
        release_launches(*binding);
    }
    if (!binding->has_callers_arena) release_arena(*binding, binding->arena);
    if (device) leave(*context);
    scalide_constants_destroy(binding->next_constants.exchange(nullptr));
    scalide_constants_destroy(binding->constants);
    release(binding->layout);
    release(context->allocator, binding->strided);
    release(context->allocator, binding->staging);
    release(context->allocator, binding);
    release_context(context);
}

scalide_status scalide_set_arena(scalide_binding *binding, void *memory, size_t bytes) {
    const Entry entry(context_of(binding), "scalide_set_arena");
    if (entry.status() != SCALIDE_OK) return entry.status();
    const FloatEnvironment environment;
    if (!memory && !binding->has_callers_arena) return SCALIDE_OK;
    void *arena = memory;
    const scalide_status status = memory ? check_arena(*binding, memory, bytes) : allocate_arena(*binding, &arena);
    return status == SCALIDE_OK ? replace_arena(*binding, arena, memory != nullptr) : status;
}
