#include "bind/binding.h"
#include "bind/check.h"
#include "bind/constants.h"
#include "run/recorder.h"
#include "threads/float_environment.h"
#include <algorithm>

using namespace scalide;

namespace {

scalide_status check_arrays(const Call &call, int32_t *symbols) {
    const int32_t count = call.program.argument_count;
    for (int32_t i = 0; i < count; ++i) {
        if (!check_type(call, i)) return SCALIDE_INVALID_ARGUMENT;
    }
    const scalide_status solved = solve_symbols(call, symbols);
    if (solved != SCALIDE_OK) return solved;
    if (!check_requirements(call, symbols)) return SCALIDE_INVALID_ARGUMENT;
    for (int32_t i = 0; i < count; ++i) {
        if (!check_shape(call, i, symbols) || !check_memory(call, i)) return SCALIDE_INVALID_ARGUMENT;
    }
    return check_overlap(call) ? SCALIDE_OK : SCALIDE_INVALID_ARGUMENT;
}

/// Returns the variant of the program for the context's GPU, or `program` if there is none.
const scalide_program *for_card(const scalide_context &context, const scalide_program &program) {
    const int32_t card = context.device ? context.device->capability : 0;
    const scalide_variant *best = nullptr;
    for (int32_t i = 0; i < program.variant_count; ++i) {
        const scalide_variant &variant = program.variants[i];
        const bool runs = variant.capability > 0 && variant.capability / 10 == card / 10 && variant.capability <= card;
        if (runs && (!best || variant.capability > best->capability)) best = &variant;
    }
    return best && best->program ? best->program : &program;
}

/// Tells the log what was bound: `step: bound with b = 64: 12 steps, 65536 bytes of intermediate values.`
void log_binding(const scalide_binding &binding) {
    const scalide_context &context = *binding.context;
    if (!context.log) return;
    char words[512];
    Text text(words, sizeof(words), Text::Use::message);
    text << binding.program->name << ": bound";
    if (binding.program->symbol_count > 0) print_values(text << " with", *binding.program, binding.symbols);
    text << ": " << binding.program->step_count << " steps, " << binding.arena_bytes << " bytes of intermediate values.";
    context.log(context.log_user, words);
}

/// Returns the form of the program for these values of its symbols, or nullptr if there is none.
const scalide_program *for_values(const scalide_program &program, const int32_t *symbols) {
    for (int32_t i = 0; i < program.variant_count; ++i) {
        const scalide_variant &variant = program.variants[i];
        bool holds = variant.capability == 0 && variant.program;
        for (int32_t k = 0; holds && k < variant.symbol_count; ++k) holds = symbols[variant.symbol[k]] == variant.value[k];
        if (holds) return variant.program;
    }
    return nullptr;
}

// Only a device can fail here. The state of its launches is then unknown.
scalide_status replace_addresses(scalide_binding &binding) {
    scalide_status status = point(binding);
    if (status == SCALIDE_OK && binding.launches.graph) status = capture(binding);
    if (status != SCALIDE_OK) binding.status = status;
    return status;
}

} // namespace

static scalide_status bind_arrays(scalide_context *context, const scalide_program *program, const scalide_array *arrays, size_t count,
                                  scalide_binding **result) {
    scalide_status status = check_program(context, *program);
    if (status == SCALIDE_OK) program = for_card(*context, *program);
    if (status == SCALIDE_OK) status = check_program(context, *program);
    if (status != SCALIDE_OK) return status;
    const Call call = {context, *program, arrays};
    if (!check_count(call, count)) return SCALIDE_INVALID_ARGUMENT;
    scalide_binding *binding = allocate_binding(context, *program);
    if (!binding) {
        start_message(context) << program->name << ": out of memory: cannot allocate the tables of the binding.";
        return SCALIDE_OUT_OF_MEMORY;
    }
    status = check_arrays(call, binding->symbols);
    const scalide_program *form = status == SCALIDE_OK ? for_values(*program, binding->symbols) : nullptr;
    if (form) {
        scalide_binding_destroy(binding);
        return scalide_bind(context, form, arrays, count, result);
    }
    if (status == SCALIDE_OK) {
        std::copy(arrays, arrays + count, binding->arrays);
        status = prepare(*binding);
    }
    if (status == SCALIDE_OK) {
        if (!context->device) map_constants(program);
        *result = binding;
        log_binding(*binding);
    } else {
        scalide_binding_destroy(binding);
    }
    return status;
}

scalide_status scalide_bind(scalide_context *context, const scalide_program *program, const scalide_array *arrays, size_t count,
                            scalide_binding **result) {
    if (!context || !program || !result || (!arrays && count > 0)) return SCALIDE_INVALID_ARGUMENT;
    const FloatEnvironment environment;
    *result = nullptr;
    return report(context, bind_arrays(context, program, arrays, count, result));
}

scalide_status scalide_set_argument(scalide_binding *binding, size_t index, const scalide_array *array) {
    if (!binding || !array) return SCALIDE_INVALID_ARGUMENT;
    const FloatEnvironment environment;
    const Call call = {binding->context, *binding->program, binding->arrays};
    if (index >= static_cast<size_t>(call.program.argument_count)) {
        start_message(call.context) << call.program.name << ": the argument index must be less than " << call.program.argument_count
                                    << ", got " << uint64_t(index) << ". Find it by name with scalide_find_argument.";
        return SCALIDE_INVALID_ARGUMENT;
    }
    const auto argument = static_cast<int32_t>(index);
    const scalide_array before = binding->arrays[index];
    binding->arrays[index] = *array;
    if (check_type(call, argument) && check_shape(call, argument, binding->symbols) && check_memory(call, argument) && check_overlap(call))
        return replace_addresses(*binding);
    binding->arrays[index] = before;
    return SCALIDE_INVALID_ARGUMENT;
}

scalide_status scalide_set_arguments(scalide_binding *binding, const scalide_array *arrays, size_t count) {
    if (!binding || (!arrays && count > 0)) return SCALIDE_INVALID_ARGUMENT;
    const FloatEnvironment environment;
    const Call call = {binding->context, *binding->program, arrays};
    if (!check_count(call, count)) return SCALIDE_INVALID_ARGUMENT;
    for (int32_t i = 0; i < call.program.argument_count; ++i) {
        if (!check_type(call, i) || !check_shape(call, i, binding->symbols) || !check_memory(call, i)) return SCALIDE_INVALID_ARGUMENT;
    }
    if (!check_overlap(call)) return SCALIDE_INVALID_ARGUMENT;
    std::copy(arrays, arrays + count, binding->arrays);
    return replace_addresses(*binding);
}

void scalide_binding_destroy(scalide_binding *binding) {
    if (!binding) return;
    const FloatEnvironment environment;
    Device *device = binding->context->device;
    const scalide_allocator &allocator = binding->context->allocator;
    if (device) {
        device->driver->synchronise(*device);
        release_launches(*binding);
        if (binding->arena) device->driver->release(*device, binding->arena);
    } else {
        release(allocator, binding->arena);
    }
    release(allocator, binding);
}
