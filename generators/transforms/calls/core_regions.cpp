#include "transforms/calls/core_regions.h"
#include "ir/regions.h"
#include "rulebook/builder.h"
#include "transforms/analysis/operators.h"
#include "transforms/analysis/splice.h"
#include "transforms/analysis/step_counts.h"
#include <algorithm>

namespace scalide {

namespace {

std::vector<ValueId> append_like(Builder &builder, const Node &like, Node node) {
    std::vector<Type> types;
    for (const ValueId result : like.results) types.push_back(builder.type(result));
    return add_node(builder.program(), std::move(node), types);
}

/// The first branch of a cond is for `true`.
std::vector<ValueId> switch_of(Builder &builder, const Node &node) {
    Node fresh = node;
    fresh.op = "switch";
    std::ranges::reverse(fresh.regions);
    fresh.operands[0] = builder.convert(node.operands[0], Dtype::i32);
    return append_like(builder, node, std::move(fresh));
}

std::vector<ValueId> scan_of_map(Builder &builder, const Node &node) {
    Node fresh = node;
    fresh.op = "scan";
    return append_like(builder, node, std::move(fresh));
}

/// Returns the body with lower + step instead of the number of the step. `lower` is an extent or, if `captures`, a new last argument.
Region from_lower(const Rulebook &rulebook, const Node &node, const Extent &lower, bool captures) {
    Program body = *node.regions[0];
    std::vector<ValueId> steps;
    for (const Argument &argument : body.arguments)
        if (argument.supply == Supply::step) steps.push_back(argument.value);
    ValueId start = -1;
    if (captures && !steps.empty()) {
        start = add_value(body, "lower", {Dtype::i32, {}});
        body.arguments.push_back({.value = start});
    }
    for (const ValueId step : steps)
        replace_argument(body, rulebook, step, node, [&](Builder &builder) {
            return builder.add_one("add", {step, captures ? start : builder.size(lower, Dtype::i32)});
        });
    return std::make_shared<const Program>(std::move(body));
}

std::vector<ValueId> scan_of_fori(Builder &builder, const Node &node) {
    Node fresh = node;
    fresh.op = "scan";
    const auto lower = node.attributes.find("lower");
    const bool is_given = lower != node.attributes.end();
    const Extent first = is_given ? lower->second.integer : Extent(0);
    fresh.attributes.erase("lower");
    fresh.attributes.erase("upper");
    const Program &body = *node.regions[0];
    if (!is_given || first != Extent(0)) fresh.regions[0] = from_lower(builder.rulebook(), node, first, !is_given);
    if (is_given) {
        fresh.attributes["length"] = *length_of(node);
        return append_like(builder, node, std::move(fresh));
    }
    fresh.attributes["count"] = std::string("true");
    fresh.operands.erase(fresh.operands.begin());
    fresh.operands[0] = steps_between(builder, node.operands[0], node.operands[1]);
    if (fresh.regions[0]->arguments.size() > body.arguments.size()) fresh.operands.push_back(node.operands[0]);
    return append_like(builder, node, std::move(fresh));
}

} // namespace

void to_core_regions(Program &program, const Rulebook &rulebook) {
    for (Node &node : program.nodes)
        rewrite_regions(node, program, [&](Program region) {
            to_core_regions(region, rulebook);
            return region;
        });
    replace_nodes(program, rulebook, [](const Program &, const Node &node) {
        if (node.op == "cond") return Remake(switch_of);
        if (node.op == "map") return Remake(scan_of_map);
        return node.op == "fori" ? Remake(scan_of_fori) : Remake();
    });
}

void place_in_scopes(Program &program) {
    for (Node &node : program.nodes)
        rewrite_regions(node, program, [&](Program region) {
            for (Node &inner : region.nodes) inner.scope = scope_within(node.scope, inner.scope);
            place_in_scopes(region);
            return region;
        });
}

} // namespace scalide
