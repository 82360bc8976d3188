#include "lower/outputs.h"
#include <algorithm>

// scalar kernels: everything is inlined into the outputs, but for scales that many others are made of. An expression is a tree to some of
// Halide's passes, and each scale reads the one before several times.
//
// stages: scale (rank 0)
namespace scalide {

namespace {

constexpr int longest_chain = 3; ///< of stored scales within one expression

} // namespace

void lower_scalar(Lowering &lowering) {
    const Program &program = lowering.kernel.program;
    for (const Value &value : program.values) {
        internal_check(value.type.is_scalar(), "value " + value.name + " of a scalar kernel is an array");
    }
    std::vector<int> chain(program.values.size(), 0);
    for (const Node &node : program.nodes) {
        const ValueId value = node.results[0];
        for (const ValueId operand : node.operands) {
            chain[value] = std::max(chain[value], chain[operand]);
        }
        if (node.op != "convert_element_type" || program.type(value).dtype != Dtype::f32 || ++chain[value] < longest_chain) {
            continue;
        }
        chain[value] = 0;
        std::vector<Halide::Func> &scales = lowering.kernel.stages["scale"];
        scales.push_back(Halide::Func("scale_" + std::to_string(scales.size())));
        scales.back()() = lowering.values.at(value, {});
        lowering.values.bind(value, scales.back());
    }
    add_outputs_by_shape(lowering);
}

} // namespace scalide
