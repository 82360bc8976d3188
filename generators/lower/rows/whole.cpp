#include "lower/rows/whole.h"
#include "lower/rows/reduction.h"
#include "lower/shapes/whole_reductions.h"
#include <set>

namespace scalide {
namespace {

std::vector<const Node *> whole_reductions(const Program &program) {
    std::vector<const Node *> nodes;
    for (const Node &node : program.nodes) {
        if (is_whole_reduction(program, node)) nodes.push_back(&node);
    }
    return nodes;
}

} // namespace

std::vector<Halide::Func> store_reduced(Lowering &lowering, const std::vector<Halide::Var> &axes) {
    std::vector<Halide::Func> stored;
    std::set<ValueId> seen;
    for (const Node *node : whole_reductions(lowering.kernel.program)) {
        const ValueId value = node->operands[0];
        if (!seen.insert(value).second) continue;
        Halide::Func func("stored_" + std::to_string(stored.size()));
        const Dtype dtype = lowering.kernel.program.type(value).dtype;
        func(buffer_order(axes)) = to_word(dtype, lowering.values.at(value, Index(axes.begin(), axes.end())));
        // Without bounds, Halide would compute what the reductions read, rounded up to their blocks, and the loops would differ.
        for (size_t i = 0; i < axes.size(); i++) {
            func.bound(axes[i], 0, lowering.values.extent(lowering.kernel.program.type(value).shape[i]));
        }
        stored.push_back(func);
    }
    return stored;
}

TotalStages reduce_stored(Lowering &lowering, const std::vector<Halide::Func> &stored) {
    const std::vector<const Node *> nodes = whole_reductions(lowering.kernel.program);
    size_t next = 0;
    std::set<ValueId> seen;
    for (const Node *node : nodes) {
        if (seen.insert(node->operands[0]).second) lowering.values.bind(node->operands[0], stored.at(next++));
    }
    TotalStages stages;
    reduce_all(lowering, nodes, stages);
    return stages;
}

} // namespace scalide
