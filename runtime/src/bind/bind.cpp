#include "base/float_environment.h"
#include "bind/binding.h"
#include "bind/choose.h"
#include "bind/constants.h"
#include "bind/views.h"
#include "context/entry.h"
#include <algorithm>

using namespace scalide;

namespace {

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

/// Allocates a binding of these arrays, with a new layout if `shared` is NULL. Returns nullptr, with a message, if memory is lacking.
scalide_binding *create(const Request &request, const scalide_program &program, Layout *shared, HeldConstants &constants) {
    scalide_binding *binding = allocate_binding(request.context, program, shared);
    if (binding) {
        std::copy(request.arrays, request.arrays + request.count, binding->arrays);
        constants.give_to(*binding);
    } else {
        start_message(request.context) << program.name << ": out of memory: cannot allocate the tables of the binding.";
    }
    return binding;
}

/// Computes the rest of a binding that has a layout, and returns it or destroys it.
scalide_status finish(scalide_binding *binding, scalide_status status, scalide_binding **result) {
    if (status == SCALIDE_OK) status = complete(*binding);
    if (status == SCALIDE_OK) {
        *result = binding;
        log_binding(*binding);
    } else {
        scalide_binding_destroy(binding);
    }
    return status;
}

scalide_status bind_arrays(const Request &request, scalide_binding **result) {
    Choice choice(request);
    scalide_status status = choose_form(request, choice);
    if (status != SCALIDE_OK) return status;
    const scalide_program &program = *choice.program;
    scalide_binding *binding = create(request, program, nullptr, choice.constants);
    if (!binding) return SCALIDE_OUT_OF_MEMORY;
    std::copy(choice.symbols.values(), choice.symbols.values() + program.symbol_count, binding->symbols);
    binding->asked = request.program;
    status = finish(binding, fill_layout(request.context, program, *binding->layout), result);
    if (status == SCALIDE_OK && !request.context->device) map_constants(&program);
    return status;
}

/// Binds with the layout of another binding of the same shapes, which has been checked and computed.
scalide_status bind_layout(const Request &request, Layout *layout, scalide_binding **result) {
    HeldConstants constants(request.constants);
    const scalide_status status = constants.provide({request.context, *request.program, request.arrays});
    if (status != SCALIDE_OK) return status;
    scalide_binding *binding = create(request, *request.program, layout, constants);
    return binding ? finish(binding, SCALIDE_OK, result) : SCALIDE_OUT_OF_MEMORY;
}

/// A device needs launches of its own for each binding, so everything is bound again there. Another rank has other
/// values of symbols.
scalide_status bind_like(const Request &request, const scalide_binding &like, scalide_binding **result) {
    const scalide_status status = check_device(request.context, *request.program);
    if (status != SCALIDE_OK) return status;
    const Call call = {request.context, *request.program, request.arrays};
    if (!check_count(call, request.count) || !check_like(call, like.symbols)) return SCALIDE_INVALID_ARGUMENT;
    const bool is_same_rank = has_group_values(*request.context, *request.program, like.symbols);
    if (!is_same_rank) return bind_arrays({request.context, like.asked, request.arrays, request.count, request.constants}, result);
    const scalide_status bound = request.context->device ? bind_arrays(request, result) : bind_layout(request, like.layout, result);
    if (bound == SCALIDE_OK) (*result)->asked = like.asked;
    return bound;
}

/// Binds in the float environment of programs and reports a failure.
scalide_status bind(const Request &request, scalide_binding **result) {
    const FloatEnvironment environment;
    return report(request.context, bind_arrays(request, result));
}

} // namespace

scalide_status scalide_bind(scalide_context *context, const scalide_program *program, const scalide_array *arrays, size_t count,
                            scalide_binding **result) {
    if (result) *result = nullptr;
    const Entry entry(context, "scalide_bind", {{"program", program}, {"arrays", arrays || count == 0}, {"binding", result}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    return bind({context, program, arrays, count, nullptr}, result);
}

scalide_status scalide_bind_constants(scalide_context *context, const scalide_program *program, const scalide_array *arrays, size_t count,
                                      scalide_constants *constants, scalide_binding **result) {
    if (result) *result = nullptr;
    const Entry entry(context, "scalide_bind_constants",
                      {{"program", program}, {"arrays", arrays || count == 0}, {"constants", constants}, {"binding", result}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    return bind({context, program, arrays, count, constants}, result);
}

scalide_status scalide_bind_like(scalide_context *context, const scalide_binding *like, const scalide_array *arrays, size_t count,
                                 scalide_binding **result) {
    if (result) *result = nullptr;
    const Entry entry(context, "scalide_bind_like", {{"binding", like}, {"arrays", arrays || count == 0}, {"result", result}});
    if (entry.status() != SCALIDE_OK) return entry.status();
    const FloatEnvironment environment;
    scalide_constants *constants = hold_newest_constants(*like);
    const scalide_status status = report(context, bind_like({context, like->program, arrays, count, constants}, *like, result));
    scalide_constants_destroy(constants);
    return status;
}
