#include "transforms/fusion/report.h"
#include "expr/base_operators.h"
#include "ir/window.h"
#include "transforms/fusion/groups/legality.h"
#include "transforms/fusion/groups/overwrites.h"
#include <algorithm>

namespace scalide {

namespace {

Extent bytes_of(const Program &program, ValueId value) {
    return element_count(program.type(value).shape) * Extent(size_of(program.type(value).dtype));
}

Extent total_bytes(const Program &program, const std::vector<ValueId> &values) {
    Extent bytes;
    for (ValueId value : values) bytes = bytes + bytes_of(program, value);
    return bytes;
}

/// Number of operations for one element of a window operator's result.
Extent elements_under(const Program &program, const Node &node) {
    const Extents &shape = program.type(node.operands.back()).shape;
    Extent count = 1;
    if (node.op == "conv_general_dilated") {
        const std::vector<int64_t> spec = convolution(node.attributes, shape).rhs_spec;
        for (size_t i = 1; i < spec.size(); i++) count = count * shape[spec[i]];
        return count * Extent(2);
    }
    for (const WindowAxis &axis : window_axes(node.attributes, shape.size())) count = count * axis.window;
    return count;
}

Extent flops_of(const FuseGraph &graph, int index) {
    const Program &program = graph.program();
    const Node &node = program.nodes[index];
    const Shape shape = find_base_operator(node.op)->shape;
    if (updates_in_place(graph, index)) return element_count(program.type(node.operands[2]).shape) * Extent(cost_of(node));
    const Extents &result = program.type(node.results[0]).shape;
    if (shape == Shape::reduce) return element_count(program.type(node.operands[0]).shape);
    if (shape == Shape::window) return element_count(result) * elements_under(program, node);
    if (shape != Shape::contract) return element_count(result) * Extent(cost_of(node));
    Extent products = element_count(result);
    for (int64_t axis : to_integers(node.attributes.at("contract").list[0]))
        products = products * program.type(node.operands[0]).shape[axis];
    return products * Extent(2);
}

/// Floating nodes that the kernel of a group recomputes, in program order.
std::vector<int> floating_nodes(const Groups &groups, int group) {
    std::set<int> found;
    std::vector<int> todo = groups[group].nodes;
    while (!todo.empty()) {
        const Node &node = groups.program().nodes[todo.back()];
        todo.pop_back();
        for (ValueId operand : node.operands) {
            const int producer = groups.graph().producer(operand);
            if (producer < 0 || !groups.graph().is_floating(producer)) continue;
            if (found.insert(producer).second) todo.push_back(producer);
        }
    }
    return {found.begin(), found.end()};
}

KernelReport report_kernel(const Groups &groups, int group) {
    const Program &program = groups.program();
    KernelReport report;
    report.kind = to_string(groups[group].kind);
    report.bytes_read = total_bytes(program, groups.inputs(group));
    report.bytes_written = total_bytes(program, groups.outputs(group));
    for (int node : groups[group].nodes) {
        if (updates_in_place(groups.graph(), node)) {
            const Extent array = bytes_of(program, program.nodes[node].operands[0]),
                         updates = bytes_of(program, program.nodes[node].operands[2]);
            const bool reads_old = !find_base_operator(program.nodes[node].op)->fold.empty();
            report.bytes_read = report.bytes_read - array + (reads_old ? updates : Extent(0));
            report.bytes_written = report.bytes_written - array + updates;
        }
        report.fused.push_back(program.nodes[node].op);
        report.flops = report.flops + flops_of(groups.graph(), node);
    }
    for (int node : floating_nodes(groups, group)) {
        report.recomputed.push_back(program.nodes[node].op);
        report.flops = report.flops + flops_of(groups.graph(), node);
    }
    return report;
}

} // namespace

FusionReport explain_fusion(const Groups &groups, const std::vector<int> &order) {
    FusionReport report;
    std::map<int, int> call_of_group;
    for (int group : order) {
        const int call = static_cast<int>(report.kernels.size());
        call_of_group[group] = call;
        report.kernels.push_back(report_kernel(groups, group));
        for (int producer : groups.before(group)) {
            const std::vector<Read> reads = groups.reads_between(producer, group);
            if (reads.empty()) continue; // the groups are only ordered: this group overwrites an argument that the producer reads
            std::set<std::string> values;
            for (const Read &read : reads) values.insert(groups.program().value_name(read.value));
            report.edges.push_back(
                {call_of_group.at(producer), call, {values.begin(), values.end()}, why_two_kernels(groups, producer, group)});
        }
    }
    return report;
}

} // namespace scalide
