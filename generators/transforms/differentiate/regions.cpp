#include "transforms/differentiate/regions.h"
#include "ir/regions.h"
#include "transforms/differentiate/region_vjps.h"
#include <algorithm>

namespace scalide {

namespace {

/// A loop of whose steps nothing is known could not stack the values of each step.
void check_bounded(const Node &node) {
    const bool is_bounded = node.op != "while" && (node.op == "fori" ? length_of(node).has_value() : node.attributes.contains("length"));
    if (is_bounded) return;
    const std::string got = node.op == "while" ? "a condition" : "a number that an operand gives";
    throw UserError({node.location, node.op,
                     "a loop with a gradient must have a bound on its steps, because the gradient reads values of each step", got,
                     "Use fori with static bounds, or scan with a length. With {count: true, length: n}, a scan runs at most n steps"});
}

/// Returns the body of a fori as the body of a scan, which numbers its steps from 0 on.
Program counted_from_zero(Program body, const Extent &lower, const Rulebook &rulebook) {
    std::vector<Node> nodes = std::move(body.nodes);
    body.nodes.clear();
    Builder builder(rulebook, body);
    for (Argument &argument : body.arguments) {
        if (argument.supply != Supply::step || lower == Extent(0)) continue;
        const ValueId number = argument.value;
        argument.value = add_value(body, "step", body.type(number));
        builder.add_one("add", {argument.value, builder.size(lower, Dtype::i32)});
        body.nodes.back().results = {number};
    }
    std::ranges::move(nodes, std::back_inserter(body.nodes));
    return body;
}

/// Returns the same loop as a scan. It has the same operands and results.
Node as_scan(Node node, const Program &owner, const Rulebook &rulebook) {
    check_bounded(node);
    if (node.op == "fori") {
        const Extent lower = node.attributes.at("lower").integer;
        const Extent length = *length_of(node);
        rewrite_regions(node, owner, [&](Program body) { return counted_from_zero(std::move(body), lower, rulebook); });
        node.attributes.erase("lower");
        node.attributes.erase("upper");
        node.attributes["length"] = length;
    }
    node.op = "scan";
    return node;
}

} // namespace

std::vector<ValueId> append_region_vjp(Builder &builder, size_t index, const std::vector<ValueId> &cts, const std::vector<bool> &active) {
    const Node node = builder.program().nodes[index];
    if (!find_region_kind(node.op)->is_loop) return append_branch_vjp(builder, node, cts, active);
    return append_scan_vjp(builder, index, as_scan(node, builder.program(), builder.rulebook()), cts, active);
}

} // namespace scalide
