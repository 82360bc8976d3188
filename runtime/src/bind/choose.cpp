#include "bind/choose.h"
#include "base/cpu_features.h"
#include <cstring>

namespace scalide {

namespace {

/// A program has forms for values of symbols only for the machine that runs the program itself.
bool is_for_machine(const scalide_variant &variant, int32_t card) {
    size_t length;
    return variant.symbol_count > 0 || (variant.capability / 10 == card / 10 && variant.capability <= card &&
                                        (!variant.program || !missing_cpu_feature(variant.program->target, &length)));
}

bool is_for_values(const scalide_variant &variant, const int32_t *symbols) {
    if (!symbols) return variant.symbol_count == 0;
    bool has_values = variant.symbol_count > 0 && variant.program;
    for (int32_t k = 0; has_values && k < variant.symbol_count; ++k) has_values = symbols[variant.symbol[k]] == variant.value[k];
    return has_values;
}

/// Returns the program that replaces `program` one level further down the tree of variants: the best one for the machine if `symbols` is
/// NULL, the first one for these values of symbols otherwise. Returns `program` if there is none.
const scalide_program &find_variant(const scalide_context &context, const scalide_program &program, const int32_t *symbols) {
    const int32_t card = context.device ? context.device->capability : 0;
    const scalide_variant *best = nullptr;
    for (int32_t i = 0; i < program.variant_count; ++i) {
        const scalide_variant &variant = program.variants[i];
        const bool is_better = !best || (!symbols && variant.capability >= best->capability);
        if (is_better && is_for_values(variant, symbols) && is_for_machine(variant, card)) best = &variant;
    }
    return best && best->program ? *best->program : program;
}

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

/// Checks the arrays against the chosen program, gets its constants and computes its symbols.
scalide_status fit(const Request &request, Choice &choice) {
    Call call = {request.context, *choice.program, request.arrays};
    if (!check_count(call, request.count)) return SCALIDE_INVALID_ARGUMENT;
    const scalide_status status = choice.constants.provide(call);
    call.constants = choice.constants.arguments();
    return status == SCALIDE_OK ? check_arrays(call, choice.symbols.values()) : status;
}

/// Checks a program and replaces it by its variant for the machine. `supported`: a target whose features the CPU has, because asking the
/// CPU takes microseconds on a virtual machine. NULL: none is known.
scalide_status enter_program(scalide_context *context, const char *supported, const scalide_program **program) {
    scalide_status status = check_program(context, **program);
    if (status != SCALIDE_OK) return status;
    const scalide_program &variant = find_variant(*context, **program, nullptr);
    if (&variant != *program) status = check_program(context, variant);
    *program = &variant;
    if (status != SCALIDE_OK || (supported && std::strcmp(supported, variant.target) == 0)) return status;
    return check_cpu(context, variant);
}

} // namespace

scalide_status choose_program(scalide_context *context, const scalide_program **program) {
    return enter_program(context, nullptr, program);
}

scalide_status choose_form(const Request &request, Choice &choice) {
    scalide_status status = choose_program(request.context, &choice.program);
    if (status == SCALIDE_OK) status = choice.symbols.reserve(*choice.program); // all programs of the tree have the same symbols
    if (status == SCALIDE_OK) status = fit(request, choice);
    if (status != SCALIDE_OK) return status;
    const scalide_program &program = *choice.program;
    choice.program = &find_variant(*request.context, program, choice.symbols.values());
    if (choice.program == &program) return status;
    status = enter_program(request.context, program.target, &choice.program); // a form has no forms for values of its own
    return status == SCALIDE_OK ? fit(request, choice) : status;
}

} // namespace scalide
