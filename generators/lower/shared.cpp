#include "lower/shared.h"
#include <algorithm>

namespace scalide {

namespace {

constexpr double most_copies = 64;
/// About as often as the forms in lower/ use an operand; encoding a narrow float takes it apart.
constexpr double copies_of_operand = 2, copies_of_encoded = 8;

double copies(const Type &result) { return is_float(result.dtype) && size_of(result.dtype) <= 2 ? copies_of_encoded : copies_of_operand; }

bool is_single(const Type &type) {
    return std::ranges::all_of(type.shape, [](const Extent &extent) { return extent == Extent(1); });
}

void share(Lowering &lowering, ValueId value) {
    const Type &type = lowering.kernel.program.type(value);
    Halide::Func stage("shared");
    stage() = to_word(type.dtype, lowering.values.at(value, Index(type.shape.size(), Halide::Expr(0))));
    lowering.values.bind(value, [stage, dtype = type.dtype](const Index &) { return from_word(dtype, stage()); });
    lowering.kernel.stages["shared"].push_back(stage);
}

/// By value: it follows from an argument that is overwritten, which can be read where results are made alone.
std::vector<bool> follow_overwritten(const Program &program) {
    std::vector<bool> found(program.values.size());
    for (const Result &result : program.results)
        if (result.argument >= 0) found[program.arguments[result.argument].value] = true;
    for (const Node &node : program.nodes)
        for (const ValueId operand : node.operands)
            if (found[operand]) found[node.results[0]] = true;
    return found;
}

} // namespace

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
