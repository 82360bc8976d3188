#include "ir/regions.h"
#include "ir/rewrite.h"
#include "transforms/analysis/passes.h"
#include "transforms/analysis/splice.h"
#include "transforms/expand/collectives.h"
#include "transforms/expand/least_extents.h"
#include "transforms/expand/magnitude_bounds.h"
#include "transforms/expand/normalize_dot.h"
#include "transforms/expand/top_k_chunks.h"
#include "transforms/simplify/trivial_sums.h"
#include <algorithm>

namespace scalide {

namespace {

/// Returns how a node is written in base operators; empty if it already is a base operator.
Remake remake_of(const Program &program, const Node &node, const Rulebook &rulebook, const TargetFacts &facts) {
    if (!node.regions.empty()) return {};
    if (is_bound(node)) return {}; // bound_magnitudes() replaces it later, because it examines the operand's base operators
    if (const Remake chunks = top_k_by_chunks(program, node, facts.sort)) return chunks;
    if (const Remake collective = collective_remake(program, node)) return collective;
    if (!rulebook.rule(node.op, node.location).is_base) return expand_value;
    if (node.op != "dot_general") return {};
    if (is_vector_dot(program, node)) return dot_as_sum;
    if (!is_normal_dot(program, node)) return normalize_dot;
    return {};
}

/// True if a composite contains one of these operators, directly or within other composites.
bool is_made_by(const Rule &rule, const Rulebook &rulebook, const std::set<std::string> &ops) {
    return std::ranges::any_of(rulebook.callees(rule),
                               [&](const Rule *callee) { return ops.contains(callee->op) || is_made_by(*callee, rulebook, ops); });
}

} // namespace

Program expand_to(const Program &program, const Rulebook &rulebook, const std::set<std::string> &ops) {
    Program expanded = program;
    for (Node &node : expanded.nodes)
        rewrite_regions(node, program, [&](const Program &region) { return expand_to(region, rulebook, ops); });
    for (size_t i = 0; i < expanded.nodes.size();) {
        const Node &node = expanded.nodes[i];
        const bool is_whole = !node.regions.empty() || ops.contains(node.op) || node.op == "call" ||
                              !is_made_by(rulebook.rule(node.op, node.location), rulebook, ops);
        if (is_whole) {
            i++;
        } else {
            replace_node(expanded, rulebook, i, expand_value);
        }
    }
    return remove_dead_nodes(remove_trivial_sums(expanded, rulebook));
}

Program expand(const Program &program, const Rulebook &rulebook, const TargetFacts &facts) {
    Program expanded = has_groups(program) ? expand_to(program, rulebook, sized_collectives()) : program;
    add_group_symbols(expanded);
    remove_reductions_of_one_rank(expanded);
    const Program owner = expanded;
    for (Node &node : expanded.nodes) rewrite_regions(node, owner, [&](const Program &region) { return expand(region, rulebook, facts); });
    replace_nodes(expanded, rulebook, [&](const Program &made, const Node &node) { return remake_of(made, node, rulebook, facts); });
    expanded = bound_magnitudes(remove_dead_nodes(std::move(expanded)), rulebook);
    require_elements(expanded);
    return expanded;
}

} // namespace scalide
