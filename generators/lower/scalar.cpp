#include "lower/outputs.h"

// scalar kernels: everything is inlined into the outputs, but for values that stand in many places.
//
// stages: shared
namespace scalide {

namespace {

/// Halide's bounds inference writes out a rank-0 expression as often as it stands in others: beyond this it is stored once.
constexpr double most_copies = 64;
/// About as often as the forms in lower/ use an operand; encoding a narrow float takes it apart.
constexpr double copies_of_operand = 2, copies_of_encoded = 8;

double copies(const Program &program, const Node &node) {
    const Dtype dtype = program.type(node.results[0]).dtype;
    return is_float(dtype) && size_of(dtype) <= 2 ? copies_of_encoded : copies_of_operand;
}

void share(Lowering &lowering) {
    const Program &program = lowering.kernel.program;
    const std::vector<int> uses = count_uses(program);
    std::vector<double> sizes(program.values.size(), 1);
    for (const Node &node : program.nodes) {
        const ValueId value = node.results[0];
        for (const ValueId operand : node.operands) sizes[value] += copies(program, node) * sizes[operand];
        if (sizes[value] <= most_copies || uses[value] == 0) continue;
        Halide::Func stage(program.value_name(value));
        stage() = to_word(program.type(value).dtype, lowering.values.at(value, {}));
        lowering.values.bind(value, stage, 0);
        lowering.kernel.stages["shared"].push_back(stage);
        sizes[value] = 1;
    }
}

} // namespace

void lower_scalar(Lowering &lowering) {
    for (const Value &value : lowering.kernel.program.values) {
        internal_check(value.type.is_scalar(), "value " + value.name + " of a scalar kernel is an array");
    }
    share(lowering);
    add_outputs_by_shape(lowering);
}

} // namespace scalide
