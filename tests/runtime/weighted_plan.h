#pragma once
#include "base/halide_abi.h"
#include "scalide/plan.h"

/// A plan with a prepare program, by hand:
///
/// program weighted(x: f32[b], w: f32[4] constant) -> (y: f32[b])
///   prepare: doubled = w + w
///   main:    y[i] = x[i] * sum(doubled)
namespace scalide::test {

template<typename T>
T *host_of(void *buffer) {
    return reinterpret_cast<T *>(static_cast<scalide::HalideBuffer *>(buffer)->host);
}

inline int double_weights(void **arguments) {
    for (int i = 0; i < 4; ++i) host_of<float>(arguments[2])[i] = 2 * host_of<float>(arguments[1])[i];
    return 0;
}

inline int multiply_by_sum(void **arguments) {
    const auto *x = static_cast<scalide::HalideBuffer *>(arguments[1]);
    for (int i = 0; i < x->dim[0].extent; ++i) {
        float sum = 0;
        for (int k = 0; k < 4; ++k) sum += host_of<float>(arguments[2])[k];
        host_of<float>(arguments[3])[i] = host_of<float>(arguments[1])[i] * sum;
    }
    return 0;
}

/// The tables of the plan. Tests may change them.
struct WeightedPlan {
    scalide_symbol symbols[1] = {{"b", 1, 1024, 1, SCALIDE_FROM_ARGUMENTS, -1, nullptr}};
    scalide_term b_terms[1] = {{1, {0, -1, -1, -1}}}, four_terms[1] = {{4, {-1, -1, -1, -1}}};
    scalide_extent b[1] = {{b_terms, 1}}, four[1] = {{four_terms, 1}};

    scalide_buffer prepare_buffers[2] = {{"w", SCALIDE_F32, 1, four, SCALIDE_STORAGE_DATA, 0, -1, 0, 0, nullptr, nullptr},
                                         {"doubled", SCALIDE_F32, 1, four, SCALIDE_STORAGE_DATA, 1, 0, 0, 0, nullptr, nullptr}};
    scalide_argument prepare_arguments[2] = {{"w", SCALIDE_INPUT, 0, -1, 0}, {"doubled", SCALIDE_OUTPUT, 1, -1, 0}};
    scalide_operand prepare_operands[2] = {{SCALIDE_OPERAND_BUFFER, 0, 1, four, 0}, {SCALIDE_OPERAND_BUFFER, 1, 1, four, 0}};
    scalide_step prepare_steps[1] = {{"double", double_weights, prepare_operands, 2, nullptr, nullptr}};
    scalide_program prepare = program_of(0, 2, 2);

    scalide_buffer buffers[4] = {{"x", SCALIDE_F32, 1, b, SCALIDE_STORAGE_DATA, 0, -1, 0, 0, nullptr, nullptr},
                                 {"w", SCALIDE_F32, 1, four, SCALIDE_STORAGE_DATA, 1, -1, -1, 0, nullptr, nullptr},
                                 {"y", SCALIDE_F32, 1, b, SCALIDE_STORAGE_DATA, 2, 0, 0, 0, nullptr, nullptr},
                                 {"doubled", SCALIDE_F32, 1, four, SCALIDE_STORAGE_PREPARED, 0, -1, 0, 0, nullptr, nullptr}};
    scalide_argument arguments[3] = {{"x", SCALIDE_INPUT, 0, -1, 0}, {"w", SCALIDE_CONSTANT, 1, -1, 0}, {"y", SCALIDE_OUTPUT, 2, -1, 0}};
    scalide_operand operands[3] = {
        {SCALIDE_OPERAND_BUFFER, 0, 1, b, 0}, {SCALIDE_OPERAND_BUFFER, 3, 1, four, 0}, {SCALIDE_OPERAND_BUFFER, 2, 1, b, 0}};
    scalide_step steps[1] = {{"multiply", multiply_by_sum, operands, 3, nullptr, nullptr}};
    scalide_program main = program_of(1, 3, 4);

    WeightedPlan() {
        prepare.arguments = prepare_arguments;
        prepare.buffers = prepare_buffers;
        prepare.steps = prepare_steps;
        main.symbols = symbols;
        main.arguments = arguments;
        main.buffers = buffers;
        main.steps = steps;
        main.prepare = &prepare;
    }
    WeightedPlan(const WeightedPlan &) = delete;
    WeightedPlan &operator=(const WeightedPlan &) = delete;

    static scalide_program program_of(int32_t symbol_count, int32_t argument_count, int32_t buffer_count) {
        scalide_program program = {};
        program.plan_version = SCALIDE_PLAN_VERSION;
        program.name = "weighted";
        program.target = "x86-64-linux-sse41";
        program.numerics = "f32";
        program.hash = "0";
        program.symbol_count = symbol_count;
        program.argument_count = argument_count;
        program.buffer_count = buffer_count;
        program.step_count = 1;
        return program;
    }
};

} // namespace scalide::test
