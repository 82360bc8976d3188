#include "lower/values/shared.h"
#include <algorithm>

namespace scalide {

namespace {

constexpr double most_copies = 64;
/// How often a lowered operator uses its operand, roughly. Encoding a low-precision float uses it more often.
constexpr double copies_of_operand = 2, copies_of_encoded = 8;

double copies(const Type &result) { return is_narrow(result.dtype) ? copies_of_encoded : copies_of_operand; }

/// Rank-0 operations that LLVM itself moves out of loops. This is enough for products of scales.
constexpr int most_inlined = 4;

bool is_single(const Type &type) {
    return std::ranges::all_of(type.shape, [](const Extent &extent) { return extent == Extent(1); });
}

void share(Lowering &lowering, ValueId value) {
    const Type &type = lowering.kernel.program.type(value);
    Halide::Func stage("shared");
    stage() = to_word(type.dtype, lowering.values.at(value, Index(type.shape.size(), Halide::Expr(0))));
    lowering.values.bind(value, [stage, dtype = type.dtype](const Index &) { return from_word(dtype, stage()); });
    lowering.kernel.shared.push_back(stage);
}

/// By value: whether it depends on an overwritten argument. Such an argument can be read only in the loop of its result.
std::vector<bool> follow_overwritten(const Program &program) {
    std::vector<bool> found(program.values.size());
    for (const Result &result : program.results)
        if (result.argument >= 0) found[program.arguments[result.argument].value] = true;
    for (const Node &node : program.nodes)
        for (const ValueId operand : node.operands)
            if (found[operand]) found[node.results[0]] = true;
    return found;
}

/// By value: number of rank-0 operations on arguments alone that compute it, counted up to most_inlined + 1. 0 if it depends on other
/// values.
std::vector<int> count_scalar_operations(const Program &program) {
    std::vector<int> counts(program.values.size());
    std::vector<bool> is_scalar(program.values.size());
    for (const Argument &argument : program.arguments) is_scalar[argument.value] = program.type(argument.value).is_scalar();
    for (const Node &node : program.nodes) {
        const ValueId value = node.results[0];
        is_scalar[value] =
            program.type(value).is_scalar() && std::ranges::all_of(node.operands, [&](ValueId each) { return is_scalar[each]; });
        if (!is_scalar[value] || node.operands.empty()) continue;
        counts[value] = 1;
        for (const ValueId operand : node.operands) counts[value] = std::min(counts[value] + counts[operand], most_inlined + 1);
    }
    return counts;
}

} // namespace

void share_scalars(Lowering &lowering) {
    const Program &program = lowering.kernel.program;
    const std::vector<bool> stays = follow_overwritten(program);
    const std::vector<int> counts = count_scalar_operations(program);
    std::vector<bool> shared(program.values.size());
    for (const Node &node : program.nodes) {
        if (counts[node.results[0]] > 0) continue;
        for (const ValueId operand : node.operands) {
            if (counts[operand] <= most_inlined || stays[operand] || shared[operand]) continue;
            share(lowering, operand);
            shared[operand] = true;
        }
    }
}

void share_single_elements(Lowering &lowering) {
    const Program &program = lowering.kernel.program;
    const std::vector<bool> stays = follow_overwritten(program);
    std::vector<double> sizes(program.values.size(), 1);
    for (const Node &node : program.nodes) {
        const ValueId value = node.results[0];
        if (!is_single(program.type(value))) continue;
        for (const ValueId operand : node.operands) sizes[value] += copies(program.type(value)) * sizes[operand];
        if (sizes[value] <= most_copies || stays[value]) continue;
        share(lowering, value);
        sizes[value] = 1;
    }
}

} // namespace scalide
