#include "base/cpu_features.h"
#include "base/float_environment.h"
#include "bind/binding.h"
#include "bind/check.h"
#include "bind/constants.h"
#include "bind/prepared.h"
#include "bind/views.h"
#include "context/entry.h"
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

bool runs_here(const scalide_variant &variant, int32_t card) {
    size_t length;
    return variant.symbol_count == 0 && variant.capability / 10 == card / 10 && variant.capability <= card &&
           (!variant.program || !missing_cpu_feature(variant.program->target, &length));
}

/// Returns the best variant of the program for this CPU and the context's GPU, or `program` if there is none.
const scalide_program &for_machine(const scalide_context &context, const scalide_program &program) {
    const int32_t card = context.device ? context.device->capability : 0;
    const scalide_variant *best = nullptr;
    for (int32_t i = 0; i < program.variant_count; ++i) {
        const scalide_variant &variant = program.variants[i];
        if (runs_here(variant, card) && (!best || variant.capability >= best->capability)) best = &variant;
    }
    return best && best->program ? *best->program : program;
}

/// Tells the log what was bound: `step: bound with b = 64: 12 steps, 65536 bytes of intermediate values. Each run copies, because the
/// strides are not dense: x (4096 bytes).`
void log_binding(const scalide_binding &binding) {
    const scalide_context &context = *binding.context;
    if (!context.log) return;
    char words[512];
    Text text(words, sizeof(words), Text::Use::message);
    text << binding.program->name << ": bound";
    if (binding.program->symbol_count > 0) print_values(text << " with", *binding.program, binding.symbols);
    text << ": " << binding.program->step_count << " steps, " << binding.arena_bytes << " bytes of intermediate values.";
    const char *separator = " Each run copies, because the strides are not dense: ";
    for (int32_t i = 0; i < binding.program->argument_count; ++i) {
        const uint64_t bytes = copied_bytes(binding, i);
        if (bytes == 0) continue;
        text << separator;
        text.name(binding.program->arguments[i].name) << " (" << bytes << " bytes)";
        separator = ", ";
    }
    if (separator[0] == ',') text << '.';
    context.log(context.log_user, words);
}

scalide_status no_tables(scalide_context *context, const scalide_program &program) {
    start_message(context) << program.name << ": out of memory: cannot allocate the tables of the binding.";
    return SCALIDE_OUT_OF_MEMORY;
}

/// Returns the form of the program for these values of its symbols, or nullptr if there is none.
const scalide_program *for_values(const scalide_program &program, const int32_t *symbols) {
    for (int32_t i = 0; i < program.variant_count; ++i) {
        const scalide_variant &variant = program.variants[i];
        bool holds = variant.symbol_count > 0 && variant.program;
        for (int32_t k = 0; holds && k < variant.symbol_count; ++k) holds = symbols[variant.symbol[k]] == variant.value[k];
        if (holds) return variant.program;
    }
    return nullptr;
}

} // namespace

namespace scalide {

scalide_status choose_program(scalide_context *context, const scalide_program **program) {
    scalide_status status = check_program(context, **program);
    if (status != SCALIDE_OK) return status;
    *program = &for_machine(*context, **program);
    status = check_program(context, **program);
    return status == SCALIDE_OK ? check_cpu(context, **program) : status;
}

} // namespace scalide

namespace {

/// Binds with `constants`, or with constants that it prepares itself if `constants` is NULL.
scalide_status bind_arrays(scalide_context *context, const scalide_program *program, const scalide_array *arrays, size_t count,
                           scalide_constants *constants, scalide_binding **result) {
    scalide_status status = choose_program(context, &program);
    if (status != SCALIDE_OK) return status;
    if (!check_count({context, *program, arrays}, count)) return SCALIDE_INVALID_ARGUMENT;
    scalide_binding *binding = allocate_binding(context, *program, nullptr);
    if (!binding) return no_tables(context, *program);
    const Call call = {context, *program, binding->arrays};
    std::copy(arrays, arrays + count, binding->arrays);
    status = take_constants(*binding, constants);
    if (status == SCALIDE_OK) status = check_arrays(call, binding->symbols);
    const scalide_program *form = status == SCALIDE_OK ? for_values(*program, binding->symbols) : nullptr;
    if (form) {
        status = bind_arrays(context, form, arrays, count, binding->constants, result);
        scalide_binding_destroy(binding); // it holds the constants until the form holds them
        return status;
    }
    if (status == SCALIDE_OK) status = fill_layout(context, *program, *binding->layout);
    if (status == SCALIDE_OK) status = complete(*binding);
    if (status == SCALIDE_OK) {
        if (!context->device) map_constants(program);
        *result = binding;
        log_binding(*binding);
    } else {
        scalide_binding_destroy(binding);
    }
    return status;
}

/// Binds with the layout of another binding of the same shapes, which has been checked and computed.
scalide_status bind_layout(scalide_context *context, const scalide_binding &like, const scalide_array *arrays, scalide_constants *constants,
                           scalide_binding **result) {
    scalide_binding *binding = allocate_binding(context, *like.program, like.layout);
    if (!binding) return no_tables(context, *like.program);
    std::copy(arrays, arrays + like.program->argument_count, binding->arrays);
    scalide_status status = constants ? take_constants(*binding, constants) : SCALIDE_OK;
    if (status == SCALIDE_OK) status = complete(*binding);
    if (status == SCALIDE_OK) {
        *result = binding;
        log_binding(*binding);
    } else {
        scalide_binding_destroy(binding);
    }
    return status;
}

/// A device needs launches of its own for each binding, so everything is bound again there.
scalide_status bind_like(scalide_context *context, const scalide_binding &like, const scalide_array *arrays, size_t count,
                         scalide_constants *constants, scalide_binding **result) {
    const scalide_program &program = *like.program;
    const scalide_status status = check_device(context, program);
    if (status != SCALIDE_OK) return status;
    const Call call = {context, program, arrays};
    if (!check_count(call, count) || !check_like(call, like.symbols)) return SCALIDE_INVALID_ARGUMENT;
    return context->device ? bind_arrays(context, &program, arrays, count, constants, result)
                           : bind_layout(context, like, arrays, constants, result);
}

/// Binds in the float environment of programs and reports a failure.
scalide_status bind(scalide_context *context, const scalide_program *program, const scalide_array *arrays, size_t count,
                    scalide_constants *constants, scalide_binding **result) {
    const FloatEnvironment environment;
    return report(context, bind_arrays(context, program, arrays, count, constants, result));
}

} // namespace

scalide_status scalide_bind(scalide_context *context, const scalide_program *program, const scalide_array *arrays, size_t count,
                            scalide_binding **result) {
    if (result) *result = nullptr;
    const Entry entry(context, "scalide_bind", {{"program", program}, {"arrays", arrays || count == 0}, {"binding", result}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    return bind(context, program, arrays, count, nullptr, result);
}

scalide_status scalide_bind_constants(scalide_context *context, const scalide_program *program, const scalide_array *arrays, size_t count,
                                      scalide_constants *constants, scalide_binding **result) {
    if (result) *result = nullptr;
    const Entry entry(context, "scalide_bind_constants",
                      {{"program", program}, {"arrays", arrays || count == 0}, {"constants", constants}, {"binding", result}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    return bind(context, program, arrays, count, constants, result);
}

scalide_status scalide_bind_like(scalide_context *context, const scalide_binding *like, const scalide_array *arrays, size_t count,
                                 scalide_binding **result) {
    if (result) *result = nullptr;
    const Entry entry(context, "scalide_bind_like", {{"binding", like}, {"arrays", arrays || count == 0}, {"result", result}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    const FloatEnvironment environment;
    scalide_constants *constants = hold_newest_constants(*like);
    const scalide_status status = report(context, bind_like(context, *like, arrays, count, constants, result));
    scalide_constants_destroy(constants);
    return status;
}
