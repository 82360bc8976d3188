#include "transforms/differentiate/activity.h"
#include "ir/regions.h"
#include <algorithm>
#include <span>

namespace scalide {

namespace {

/// The regions that compute the results of a node: the body of a loop, or all branches.
std::span<const Region> result_regions(const Node &node) {
    const std::span<const Region> regions(node.regions);
    return find_region_kind(node.op)->is_loop ? regions.last(1) : regions;
}

std::vector<bool> marks_of(const std::vector<ValueId> &values, const std::vector<bool> &marked) {
    std::vector<bool> marks;
    for (const ValueId value : values) marks.push_back(marked[value]);
    return marks;
}

/// Sets a mark. Returns true if it was not set.
bool set_mark(std::vector<bool> &marks, int index) {
    if (index < 0 || marks[index]) return false;
    return marks[index] = true;
}

/// Marks the results that one step reaches, and the inits of reached carries. Returns true if a carry was marked.
bool reach_by_step(const Program &region, const LoopView &view, const Rulebook &rulebook, std::vector<bool> &operands,
                   std::vector<bool> &results) {
    std::vector<bool> reached(region.values.size(), false);
    for (size_t i = 0; i < region.arguments.size(); i++) {
        const int operand = view.operands[i];
        reached[region.arguments[i].value] = operand >= 0 && operands[operand];
    }
    mark_reached(region, rulebook, reached);
    for (size_t r = 0; r < region.results.size(); r++)
        if (reached[region.results[r].value]) results[r] = true;
    bool has_more = false;
    for (size_t i = 0; i < region.arguments.size(); i++) {
        const int carry = view.carries[i];
        if (carry < 0) continue;
        if (results[carry]) has_more = set_mark(operands, view.operands[i]) || has_more;
        if (operands[view.operands[i]]) results[carry] = true;
    }
    return has_more;
}

/// Marks the operands that one step needs, and the carries that the step before must make. Returns true if a carry was marked.
bool need_by_step(const Program &region, const LoopView &view, Needed &needed) {
    std::vector<bool> values(region.values.size(), false);
    for (size_t r = 0; r < region.results.size(); r++)
        if (needed.results[r]) values[region.results[r].value] = true;
    mark_needed(region, values);
    bool has_more = false;
    for (size_t i = 0; i < region.arguments.size(); i++) {
        const int carry = view.carries[i];
        if (values[region.arguments[i].value]) {
            set_mark(needed.operands, view.operands[i]);
            has_more = set_mark(needed.results, carry) || has_more;
        }
        if (carry >= 0 && needed.results[carry]) set_mark(needed.operands, view.operands[i]);
    }
    return has_more;
}

} // namespace

bool stops_gradient(const Node &node, const Rulebook &rulebook) {
    if (!node.regions.empty()) return false;
    const Rule &rule = rulebook.rule(node.op, node.location);
    return rule.gradient_kind == GradientKind::none && std::ranges::all_of(rule.results, &ResultSpec::plain);
}

void mark_reached(const Program &program, const Rulebook &rulebook, std::vector<bool> &reached) {
    for (const Node &node : program.nodes) {
        const bool reads = std::ranges::any_of(node.operands, [&](ValueId operand) { return reached[operand]; });
        if (!reads || stops_gradient(node, rulebook)) continue;
        std::vector<bool> results(node.results.size(), true);
        if (!node.regions.empty()) results = reached_results(node, rulebook, marks_of(node.operands, reached));
        for (size_t i = 0; i < results.size(); i++)
            if (results[i] && is_float(program.type(node.results[i]).dtype)) reached[node.results[i]] = true;
    }
}

void mark_needed(const Program &program, std::vector<bool> &needed) {
    for (auto node = program.nodes.rbegin(); node != program.nodes.rend(); ++node) {
        const std::vector<bool> results = marks_of(node->results, needed);
        if (std::ranges::count(results, true) == 0) continue;
        std::vector<bool> operands(node->operands.size(), true);
        if (!node->regions.empty()) operands = needed_operands(*node, results).operands;
        for (size_t i = 0; i < operands.size(); i++)
            if (operands[i]) needed[node->operands[i]] = true;
    }
}

std::vector<bool> reached_results(const Node &node, const Rulebook &rulebook, const std::vector<bool> &operands) {
    const LoopView view(node);
    std::vector<bool> from = operands, results(node.results.size(), false);
    for (const Region &region : result_regions(node))
        while (reach_by_step(*region, view, rulebook, from, results))
            ;
    return results;
}

Needed needed_operands(const Node &node, const std::vector<bool> &results) {
    const LoopView view(node);
    Needed needed{std::vector<bool>(node.operands.size(), false), results};
    for (const Region &region : result_regions(node))
        while (need_by_step(*region, view, needed))
            ;
    return needed;
}

} // namespace scalide
