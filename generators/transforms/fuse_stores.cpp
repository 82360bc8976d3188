#include "transforms/fuse_stores.h"
#include "expr/base_operators.h"
#include "ir/rewrite.h"
#include "ir/shape.h"
#include "transforms/fuse_overwrites.h"
#include "transforms/operators.h"
#include <algorithm>

namespace scalide {

namespace {

/// A reduction over all axes of what a map stores for others too.
bool reduces_a_map(const Groups &groups, int node) {
    if (groups.graph().is_floating(node) || !is_largest_of_all(groups.program(), groups.program().nodes[node])) return false;
    const int group = groups.group_of(node);
    return groups[group].kind == KernelKind::full && std::ranges::any_of(groups.before(group), [&](int producer) {
               return groups[producer].kind == KernelKind::map && !groups.reads_between(producer, group).empty();
           });
}

bool is_narrowed(const Groups &groups, ValueId value) {
    const Program &program = groups.program();
    const int node = groups.graph().producer(value);
    if (node < 0 || groups.graph().is_floating(node) || groups.graph().is_result(value)) return false;
    const int made_by = groups.group_of(node);
    const Group &group = groups[made_by];
    constexpr KernelKind kinds[] = {KernelKind::map, KernelKind::row, KernelKind::contract, KernelKind::window};
    const bool is_array = program.type(value).dtype == Dtype::f32 && without_ones(program.type(value).shape) == group.iteration;
    if (!is_array || group.iteration.empty() || std::ranges::find(kinds, group.kind) == std::end(kinds)) return false;
    const auto in_library = [&](const Read &read) { return !groups[groups.group_of(read.reader)].library.empty(); };
    const auto makes_result = [&](int each) {
        const ValueId made = program.nodes[each].results[0];
        return groups.graph().is_result(made) && !program.type(made).is_scalar();
    };
    const auto in_update = [&](const Read &read) { // as an element of the result, not of a product that follows
        const bool multiplies = find_base_operator(program.nodes[read.reader].op)->shape == Shape::contract;
        return !multiplies && std::ranges::any_of(following(groups, read.reader), makes_result);
    };
    const auto is_outside = [&](const Read &read) { return groups.group_of(read.reader) != made_by; };
    const std::vector<Read> &readers = groups.graph().readers(value);
    return group.library.empty() && std::ranges::none_of(readers, in_library) && std::ranges::none_of(readers, in_update) &&
           std::ranges::any_of(readers, is_outside);
}

} // namespace

bool is_largest_of_all(const Program &program, const Node &node) {
    return (node.op == "reduce_max" || node.op == "reduce_min") && program.type(node.results[0]).is_scalar() &&
           without_ones(program.type(node.operands[0]).shape).size() > 1;
}

Program reduce_rows_first(const Groups &groups) {
    Rewriter rewriter(groups.program());
    rewriter.copy_arguments();
    for (size_t i = 0; i < groups.program().nodes.size(); i++) {
        const Node &node = groups.program().nodes[i];
        if (!reduces_a_map(groups, static_cast<int>(i))) {
            rewriter.copy(node);
            continue;
        }
        const Type type = groups.program().type(node.operands[0]);
        Node rows = node;
        rows.operands = rewriter(node.operands);
        rows.attributes = reduce_attributes({type.rank() - 1});
        Node all = rows;
        all.operands = add_node(rewriter.result(), rows, {{type.dtype, Extents(type.shape.begin(), type.shape.end() - 1)}}, "");
        all.attributes = reduce_attributes(count_up(type.rank() - 1));
        rewriter.map(node.results[0],
                     add_node(rewriter.result(), all, {{type.dtype, {}}}, groups.program().value_name(node.results[0]))[0]);
    }
    rewriter.copy_results();
    return rewriter.take();
}

Program narrow_intermediates(const Groups &groups, Dtype dtype) {
    const Program &program = groups.program();
    Rewriter rewriter(program);
    rewriter.copy_arguments();
    std::map<ValueId, std::pair<ValueId, int>> widened; // by value: as other groups than its own read it
    const auto convert = [&](const Node &like, ValueId value, Dtype to) {
        Node node{"convert_element_type", {value}, convert_attributes(to), {}, like.scope, like.role, like.location};
        const std::string name = rewriter.result().value_name(value);
        return add_node(rewriter.result(), node, {{to, rewriter.result().type(value).shape}}, name + "." + std::string(to_string(to)))[0];
    };
    const auto group_of = [&](int node) { return groups.graph().is_floating(node) ? -1 : groups.group_of(node); };
    for (size_t i = 0; i < program.nodes.size(); i++) {
        Node node = program.nodes[i];
        std::vector<std::pair<ValueId, ValueId>> own;
        for (const ValueId operand : node.operands) {
            const auto found = widened.find(operand);
            if (found == widened.end() || found->second.second == group_of(static_cast<int>(i))) continue;
            own.push_back({operand, rewriter(operand)});
            rewriter.map(operand, found->second.first);
        }
        rewriter.copy(node);
        for (const auto &[old, exact] : own) rewriter.map(old, exact);
        for (const ValueId result : node.results)
            if (is_narrowed(groups, result))
                widened[result] = {convert(node, convert(node, rewriter(result), dtype), Dtype::f32), group_of(static_cast<int>(i))};
    }
    rewriter.copy_results();
    return rewriter.take();
}

} // namespace scalide
