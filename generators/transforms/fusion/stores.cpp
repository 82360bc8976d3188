#include "transforms/fusion/stores.h"
#include "expr/base_operators.h"
#include "ir/rewrite.h"
#include "ir/shape.h"
#include "transforms/analysis/operators.h"
#include "transforms/fusion/groups/overwrites.h"
#include <algorithm>

namespace scalide {

namespace {

constexpr int none = -1;

/// True if rounding the operand would change the node's result. Example: the gradient of a minimum looks for elements that equal the
/// minimum. Its kernel takes the minimum of unrounded elements, so no rounded element would equal it. Rounding also makes elements equal
/// whose order decides a choice (top_k, a router).
bool needs_exact_elements(const Node &node) {
    return node.op == "eq" || node.op == "ne" || node.op == "argsort" || node.op == "argmax" || node.op == "argmin";
}

/// How matmuls of other kernels use a value. If a value has several uses, the largest one counts.
enum class Use : uint8_t { other, product, wide_product };

/// The arrays that enter the kernel of a node and from which the node is computed.
std::set<ValueId> sources_in_kernel(const Groups &groups, int node) {
    std::set<ValueId> sources;
    std::vector<int> todo{node};
    while (!todo.empty()) {
        const int reader = todo.back();
        todo.pop_back();
        for (const Read &read : groups.graph().reads(reader)) {
            const bool is_inside = groups.producer_group(read.value) == groups.group_of(node);
            if (is_inside) todo.push_back(groups.graph().producer(read.value));
            if (!is_inside && !groups.program().type(read.value).is_scalar()) sources.insert(read.value);
        }
    }
    return sources;
}

/// Returns the map that stores the array whose maximum or minimum this node takes, or that reads it too and that the kernel of the node
/// follows. Returns `none` if there is no such map.
int reduced_map(const Groups &groups, int node) {
    if (groups.graph().is_floating(node) || !is_largest_of_all(groups.program(), groups.program().nodes[node])) return none;
    const int group = groups.group_of(node);
    if (groups[group].kind != KernelKind::full) return none;
    const std::set<ValueId> sources = sources_in_kernel(groups, node);
    const auto shares = [&](int map) {
        const auto is_source = [&](ValueId value) { return sources.contains(value); };
        return std::ranges::any_of(groups.inputs(map), is_source) || std::ranges::any_of(groups.outputs(map), is_source);
    };
    const std::set<int> &before = groups.before(group);
    const auto map = std::ranges::find_if(before, [&](int each) { return groups[each].kind == KernelKind::map && shares(each); });
    return map == before.end() ? none : *map;
}

class StorePlacer {
public:
    StorePlacer(const Groups &groups, const Stores &stores)
        : groups_(groups), stores_(stores), rewriter_(groups.program()), by_rows_(program().nodes.size(), false), kernels_(groups.size()) {
        for (int group = 0; group < groups.size(); ++group) kernels_[group] = group;
        if (stores.intermediates) find_operands();
        for (int node = 0; stores.rows_first && node < std::ssize(program().nodes); ++node) {
            const int map = reduced_map(groups, node);
            if (map == none) continue;
            by_rows_[node] = true;
            kernels_[groups.group_of(node)] = map;
        }
    }

    Program run() {
        rewriter_.copy_arguments();
        for (int node = 0; node < std::ssize(program().nodes); ++node) {
            place(node);
            for (const ValueId result : program().nodes[node].results)
                if (stores_.intermediates && is_stored(result)) narrow(node, result);
        }
        rewriter_.copy_results();
        name_repeated();
        return rewriter_.take();
    }

private:
    const Program &program() const { return groups_.program(); }

    void name_repeated() {
        std::vector<Attribute> names;
        for (const int node : groups_.graph().repeated())
            names.emplace_back(rewriter_.result().value_name(rewriter_(program().nodes[node].results[0])));
        if (!names.empty()) rewriter_.result().attributes[repeated_attribute] = Attribute(names);
    }

    /// Returns the number of the kernel that will run a node; `none` for floating nodes, which any kernel may run.
    int kernel_of(int node) const { return groups_.graph().is_floating(node) ? none : kernels_[groups_.group_of(node)]; }

    /// True if Stores::intermediates applies to this value: an f32 array that one kernel writes and another reads.
    bool is_stored(ValueId value) const {
        const int node = groups_.graph().producer(value);
        if (node < 0 || groups_.graph().is_floating(node) || groups_.graph().is_result(value)) return false;
        const Group &group = groups_[groups_.group_of(node)];
        constexpr KernelKind kinds[] = {KernelKind::map, KernelKind::row, KernelKind::contract, KernelKind::window};
        const Type &type = program().type(value);
        if (uses_[value] != Use::product) return false;
        const bool is_array = type.dtype == Dtype::f32 && without_ones(type.shape) == group.iteration;
        if (!is_array || group.iteration.empty() || std::ranges::find(kinds, group.kind) == std::end(kinds)) return false;
        const auto in_library = [&](const Read &read) { return !groups_[groups_.group_of(read.reader)].library.empty(); };
        const auto in_update = [&](const Read &read) { return is_in_update(read.reader); };
        const auto asks_for_exact = [&](const Read &read) { return is_exact(read.reader); };
        const auto is_outside = [&](const Read &read) { return kernel_of(read.reader) != kernel_of(node); };
        const std::vector<Read> &readers = groups_.graph().readers(value);
        const auto is_carried = [&](const Read &read) { return is_outside(read) && carries(read.reader); };
        return group.library.empty() && std::ranges::none_of(readers, in_library) && std::ranges::none_of(readers, in_update) &&
               std::ranges::none_of(readers, asks_for_exact) && std::ranges::none_of(readers, is_carried) &&
               std::ranges::any_of(readers, is_outside);
    }

    /// Finds the operands of matmuls. It visits the nodes from last to first, because operands may pass through other nodes.
    void find_operands() {
        uses_.resize(program().values.size());
        for (int node = static_cast<int>(program().nodes.size()) - 1; node >= 0; --node) {
            const Node &each = program().nodes[node];
            if (each.op == "dot_general" || each.op == "conv_general_dilated") {
                const Use use = each.attributes.contains("wide") ? Use::wide_product : Use::product;
                for (const ValueId operand : each.operands) uses_[operand] = std::max(uses_[operand], use);
            } else if (each.results.size() == 1 && prepares_operand(each)) {
                uses_[each.operands[0]] = std::max(uses_[each.operands[0]], uses_[each.results[0]]);
            }
        }
    }

    /// True if the result has the same elements as the operand: moved, converted, or divided or multiplied by a scale. The scale is one
    /// number, or for divisions one number a block or row.
    bool prepares_operand(const Node &node) const {
        if (node.op == "mul") {
            const int factor = groups_.graph().producer(node.operands[1]);
            return factor >= 0 && program().nodes[factor].op == "broadcast_in_dim" &&
                   program().type(program().nodes[factor].operands[0]).is_scalar();
        }
        return only_moves(node) || node.op == "convert_element_type" || node.op == "div";
    }

    /// True for additions and multiplications of the forward pass. A value that they read is a carry, and its rounding errors add up.
    bool carries(int reader) const {
        const Node &node = program().nodes[reader];
        const bool combines = node.op == "add" || node.op == "sub" || node.op == "mul";
        const bool scales_operand = prepares_operand(node) && uses_[node.results[0]] != Use::other;
        return combines && node.role == Role::primal && !scales_operand;
    }

    /// True if the node, or a node of its kernel that depends on it, needs unrounded elements.
    bool is_exact(int reader) const {
        const auto is_needed = [&](int each) { return needs_exact_elements(program().nodes[each]); };
        return is_needed(reader) || std::ranges::any_of(following(groups_, reader), is_needed);
    }

    /// True if the reading kernel computes a result of the program from the element. An element that a matmul reads does not count.
    bool is_in_update(int reader) const {
        const auto makes_result = [&](int each) {
            const ValueId made = program().nodes[each].results[0];
            return groups_.graph().is_result(made) && !program().type(made).is_scalar();
        };
        return find_base_operator(program().nodes[reader].op)->shape != Shape::contract &&
               std::ranges::any_of(following(groups_, reader), makes_result);
    }

    /// Copies a node. It reads the rounded array if another kernel computed it, and the exact value if its own kernel computes it.
    void place(int index) {
        const Node &node = program().nodes[index];
        std::vector<std::pair<ValueId, ValueId>> exact;
        for (const ValueId operand : node.operands) {
            const auto found = narrowed_.find(operand);
            if (found == narrowed_.end() || found->second.kernel == kernel_of(index)) continue;
            exact.push_back({operand, rewriter_(operand)});
            rewriter_.map(operand, found->second.widened);
        }
        by_rows_[index] ? reduce_rows_first(node) : rewriter_.copy(node);
        for (const auto &[operand, value] : exact) rewriter_.map(operand, value);
    }

    void reduce_rows_first(const Node &node) {
        const Type type = program().type(node.operands[0]);
        Node rows = node;
        rows.operands = rewriter_(node.operands);
        rows.attributes = reduce_attributes({type.rank() - 1});
        Node all = rows;
        all.operands = add_node(rewriter_.result(), rows, {{type.dtype, Extents(type.shape.begin(), type.shape.end() - 1)}}, "");
        all.attributes = reduce_attributes(count_up(type.rank() - 1));
        rewriter_.map(node.results[0], add_node(rewriter_.result(), all, {{type.dtype, {}}}, program().value_name(node.results[0]))[0]);
    }

    void narrow(int node, ValueId value) {
        const ValueId stored = convert(node, rewriter_(value), *stores_.intermediates);
        narrowed_[value] = {convert(node, stored, Dtype::f32), kernel_of(node)};
    }

    ValueId convert(int node, ValueId value, Dtype to) {
        const Node &like = program().nodes[node];
        Attributes attributes = convert_attributes(to);
        if (is_narrow(to)) attributes["overflow"] = "format"; // an infinity stays one
        const Node made{"convert_element_type", {value}, std::move(attributes), {}, like.scope, like.role, like.location};
        const Value from = rewriter_.result().values[value];
        const ValueId form = add_node(rewriter_.result(), made, {{to, from.type.shape}}, from.name + "." + std::string(to_string(to)))[0];
        rewriter_.result().values[form].part = {from.part.kind, from.part.array(from.name)};
        return form;
    }

    struct Narrowed {
        ValueId widened; ///< the value that other kernels read
        int kernel;      ///< the kernel that computes the value
    };

    const Groups &groups_;
    const Stores stores_;
    Rewriter rewriter_;
    std::vector<bool> by_rows_; ///< by node
    std::vector<Use> uses_;     ///< by value
    std::vector<int> kernels_;  ///< by group: itself, or the map that will reduce its rows
    std::map<ValueId, Narrowed> narrowed_;
};

} // namespace

bool is_largest_of_all(const Program &program, const Node &node) {
    return (node.op == "reduce_max" || node.op == "reduce_min") && program.type(node.results[0]).is_scalar() &&
           without_ones(program.type(node.operands[0]).shape).size() > 1;
}

std::set<int> repeated_nodes(const Program &program) {
    const auto found = program.attributes.find(repeated_attribute);
    if (found == program.attributes.end()) return {};
    std::set<std::string> names;
    for (const Attribute &name : found->second.list) names.insert(name.word);
    std::set<int> nodes;
    for (int node = 0; node < std::ssize(program.nodes); ++node)
        if (names.contains(program.value_name(program.nodes[node].results[0]))) nodes.insert(node);
    return nodes;
}

Program place_stores(const Groups &groups, const Stores &stores) { return StorePlacer(groups, stores).run(); }

} // namespace scalide
