#include "transforms/analysis/updates.h"
#include "expr/base_operators.h"
#include <algorithm>

namespace scalide {

namespace {

bool is_update(const Node &node) {
    const BaseOperator *op = find_base_operator(node.op);
    return op != nullptr && (op->shape == Shape::scatter || node.op == "dynamic_update_slice");
}

/// True if one operand of one node is this value, and the program does not return the value.
bool is_read_once(const Program &program, ValueId value) {
    ptrdiff_t reads = std::ranges::count(program.results, value, &Result::value);
    if (reads > 0) return false;
    for (const Node &node : program.nodes) reads += std::ranges::count(node.operands, value);
    return reads == 1;
}

} // namespace

std::vector<int> updates_between(const Program &program, const std::vector<int> &makers, ValueId argument, ValueId value) {
    std::vector<int> updates;
    for (ValueId array = value; array != argument; array = program.nodes[updates.back()].operands[0]) {
        const int node = makers[array];
        if (node < 0 || !is_update(program.nodes[node]) || (array != value && !is_read_once(program, array))) return {};
        updates.push_back(node);
    }
    std::ranges::reverse(updates);
    return updates;
}

} // namespace scalide
