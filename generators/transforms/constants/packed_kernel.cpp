#include "transforms/constants/packed_kernel.h"
#include "ir/rewrite.h"
#include "ir/text.h"
#include "transforms/constants/panel_movement.h"
#include <algorithm>

namespace scalide {

namespace {

bool is_product(const Node &node) { return node.op == "dot_general" || node.op == "conv_general_dilated"; }

/// Returns the kernel without arguments that no node reads, and removes the same operands of its call.
Program remove_unread_arguments(Program kernel, std::vector<ValueId> &operands) {
    const std::vector<int> uses = count_uses(kernel);
    std::vector<int> place;
    std::vector<Argument> arguments;
    std::vector<ValueId> kept;
    for (size_t i = 0; i < operands.size(); i++) {
        place.push_back(static_cast<int>(arguments.size()));
        if (uses[kernel.arguments[i].value] == 0 && !kernel.arguments[i].inout) continue;
        arguments.push_back(kernel.arguments[i]);
        kept.push_back(operands[i]);
    }
    for (Result &result : kernel.results)
        if (result.argument >= 0) result.argument = place[result.argument];
    kernel.arguments = std::move(arguments);
    operands = std::move(kept);
    return kernel;
}

} // namespace

std::optional<PanelProgram> panel_program(const Program &kernel, const PanelLayout &layout) {
    const ValueId operand = std::ranges::find_if(kernel.nodes, is_product)->operands[1];
    Rewriter rewriter(kernel);
    Program &body = rewriter.result();
    body.attributes = {};
    std::vector<bool> is_needed(kernel.values.size(), false);
    is_needed[operand] = true;
    mark_sources(kernel, is_needed);
    PanelProgram made;
    for (size_t i = 0; i < kernel.arguments.size(); i++) {
        const ValueId value = kernel.arguments[i].value;
        if (!is_needed[value]) continue;
        made.sources.push_back(i);
        rewriter.map(value, add_value(body, kernel.value_name(value), kernel.type(value)));
        body.arguments.push_back({.value = rewriter(value)});
    }
    for (const Node &node : kernel.nodes)
        if (is_needed[node.results[0]]) rewriter.copy(node);
    PanelMovement movement(body, layout, kernel.type(operand));
    if (!movement.is_possible() || made.sources.empty()) return {};
    const ValueId panels = movement.pack(rewriter(operand));
    body.results.push_back({.name = "panels", .value = panels});
    made.program = rewriter.take();
    return made;
}

Program with_panels(const Program &kernel, const PanelLayout &layout, const Type &panels, std::vector<ValueId> &operands) {
    Rewriter rewriter(kernel);
    rewriter.copy_arguments();
    Program &fresh = rewriter.result();
    const ValueId argument = add_value(fresh, "panels", panels);
    fresh.arguments.push_back({.value = argument});
    fresh.attributes[panels_attribute] = to_attribute(panels.shape);
    for (const Node &node : kernel.nodes) {
        if (!is_product(node)) {
            rewriter.copy(node);
            continue;
        }
        const ValueId unpacked = PanelMovement(fresh, layout, kernel.type(node.operands[1])).unpack(argument);
        rewriter.copy(node);
        fresh.nodes.back().operands[1] = unpacked;
    }
    rewriter.copy_results();
    return canonical(remove_unread_arguments(remove_dead_nodes(rewriter.take()), operands));
}

} // namespace scalide
