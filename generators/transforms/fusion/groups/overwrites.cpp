#include "transforms/fusion/groups/overwrites.h"
#include "expr/base_operators.h"
#include "ir/rewrite.h"
#include "ir/shape.h"
#include <algorithm>
#include <functional>

namespace scalide {

namespace {

bool is_elementwise(const Node &node) { return find_base_operator(node.op)->shape == Shape::elementwise; }

/// A copy is a `reshape` to the operand's own shape. It is anchored, so its readers do not recompute it.
void copy_results(Program &program, const std::function<bool(const Result &)> &needs_copy) {
    for (Result &result : program.results) {
        if (!needs_copy(result)) continue;
        Node copy;
        copy.op = "reshape";
        copy.operands = {result.value};
        const Type type = program.type(result.value);
        copy.attributes["shape"] = to_attribute(type.shape);
        result.value = add_node(program, copy, {type}, result.name)[0];
    }
}

void copy_arguments_and_duplicates(Program &program) {
    const std::vector<int> makers = producers(program);
    std::vector<bool> is_taken(program.values.size());
    copy_results(program, [&](const Result &result) {
        const bool is_unchanged = result.argument >= 0 && program.arguments[result.argument].value == result.value;
        if (is_unchanged) return false;
        const bool needs_copy = makers[result.value] < 0 || is_taken[result.value];
        is_taken[result.value] = true;
        return needs_copy;
    });
}

/// Returns `start` and all nodes of `nodes` that depend on it.
std::vector<int> downstream(const FuseGraph &graph, const std::vector<int> &nodes, const std::vector<int> &start) {
    std::vector<int> found = start;
    for (size_t i = 0; i < found.size(); ++i)
        for (const Read &read : graph.readers(graph.program().nodes[found[i]].results[0]))
            if (std::ranges::binary_search(nodes, read.reader) && std::ranges::find(found, read.reader) == found.end())
                found.push_back(read.reader);
    return found;
}

/// True if the node is a scatter into this value that reads it in no other way. Its kernel writes the updated elements only.
bool scatters_into(const FuseGraph &graph, int node, ValueId value) {
    const std::vector<ValueId> &operands = graph.program().nodes[node].operands;
    const auto is_free_of = [&](ValueId operand) {
        return std::ranges::find(graph.sources(operand), value, &Read::value) == graph.sources(operand).end();
    };
    return graph.shape(node) == Shape::scatter && operands[0] == value && std::all_of(operands.begin() + 1, operands.end(), is_free_of);
}

/// True if the kernel reads an element of the argument, or of a value that depends on it, only before it overwrites the element. Matmuls
/// reduce each row of a tile before they store the row (lower/products/contract_reductions.cpp).
bool is_read_in_place(const FuseGraph &graph, const std::vector<int> &nodes, const Read &read, const Overwrite &overwrite) {
    const Program &program = graph.program();
    const Node &reader = program.nodes[read.reader];
    if (read.value == overwrite.argument && scatters_into(graph, read.reader, read.value)) return true;
    const auto is_product = [&](int node) { return graph.shape(node) == Shape::contract; };
    const bool is_total = graph.shape(read.reader) == Shape::reduce && program.type(reader.results[0]).is_scalar();
    const bool is_reduced_first = is_total && graph.prepares_kernels() && std::ranges::any_of(nodes, is_product);
    const ValueId walked = is_reduced_first ? reader.operands[0] : reader.results[0];
    return read.access == Access::same && (is_elementwise(reader) || is_reduced_first) &&
           without_ones(program.type(walked).shape) == without_ones(program.type(overwrite.value).shape);
}

/// `nodes` includes the node that computes the new value.
bool overwrites_safely(const FuseGraph &graph, const std::vector<int> &nodes, const Overwrite &overwrite) {
    const Program &program = graph.program();
    std::vector<int> readers;
    for (const Read &read : graph.readers(overwrite.argument)) {
        if (!std::ranges::binary_search(nodes, read.reader)) continue;
        if (!is_read_in_place(graph, nodes, read, overwrite)) return false;
        readers.push_back(read.reader);
    }
    return std::ranges::all_of(downstream(graph, nodes, readers), [&](int node) {
        return std::ranges::all_of(graph.readers(program.nodes[node].results[0]), [&](const Read &read) {
            return !std::ranges::binary_search(nodes, read.reader) || is_read_in_place(graph, nodes, read, overwrite);
        });
    });
}

/// True if the new value depends on the old one through rank-0 arithmetic alone. Fusion merges rank-0 arithmetic between the same array
/// kernels into one kernel. That kernel would overwrite the argument while its other results still need the old value.
bool follows_from_itself(const FuseGraph &graph, const Overwrite &overwrite) {
    const auto is_scalar = [&](int node) { return node >= 0 && group_of_node(graph.program(), node).kind == KernelKind::scalar; };
    std::vector<int> behind = {graph.producer(overwrite.value)};
    if (!is_scalar(behind[0])) return false;
    for (size_t i = 0; i < behind.size(); ++i)
        for (const Read &read : graph.reads(behind[i])) {
            if (read.value == overwrite.argument) return true;
            const int node = graph.producer(read.value);
            if (is_scalar(node) && std::ranges::find(behind, node) == behind.end()) behind.push_back(node);
        }
    return false;
}

/// True for the scale of a state. Arrays read the old scale, and the new scale depends on such arrays. A copy writes the new scale last.
/// The old one then stays available to kernels that recompute such arrays (fusion/merge/repeat.h).
bool is_scale_of_state(const FuseGraph &graph, const Overwrite &overwrite) {
    const Program &program = graph.program();
    const auto is_array = [&](const Read &read) { return !program.type(program.nodes[read.reader].results[0]).is_scalar(); };
    return program.type(overwrite.value).is_scalar() && std::ranges::any_of(graph.readers(overwrite.argument), is_array);
}

/// Orders the readers of the argument before the node that overwrites it. Returns false if a reader depends on that node.
bool order_readers(Groups &groups, const Overwrite &overwrite) {
    const FuseGraph &graph = groups.graph();
    const int writer = graph.producer(overwrite.value);
    for (const Read &read : graph.readers(overwrite.argument))
        if (read.reader != writer && groups.has_path(groups.group_of(writer), groups.group_of(read.reader))) return false;
    for (const Read &read : graph.readers(overwrite.argument)) groups.add_order(read.reader, writer);
    return true;
}

/// The new values of inout arguments that cannot be written where they are computed.
std::set<ValueId> find_conflicts(const Program &program, bool prepares_kernels) {
    const FuseGraph graph(program, prepares_kernels);
    Groups groups(graph);
    std::set<ValueId> conflicts;
    for (const Overwrite &overwrite : graph.overwrites()) {
        const std::vector<int> writer = {graph.producer(overwrite.value)};
        if (!overwrites_safely(graph, writer, overwrite) || follows_from_itself(graph, overwrite) || is_scale_of_state(graph, overwrite) ||
            !order_readers(groups, overwrite))
            conflicts.insert(graph.last_value(overwrite));
    }
    return conflicts;
}

} // namespace

bool updates_in_place(const FuseGraph &graph, int node) {
    const std::span<const Overwrite> overwrites = graph.overwrites_by(node);
    return std::ranges::any_of(overwrites, [&](const Overwrite &each) { return scatters_into(graph, node, each.argument); });
}

bool order_overwrites(Groups &groups) {
    return std::ranges::all_of(groups.graph().overwrites(), [&](const Overwrite &overwrite) { return order_readers(groups, overwrite); });
}

std::vector<int> following(const Groups &groups, int node) {
    return downstream(groups.graph(), groups[groups.group_of(node)].nodes, {node});
}

bool overwrites_safely(const Groups &groups, const std::vector<int> &nodes) {
    const FuseGraph &graph = groups.graph();
    return std::ranges::all_of(nodes, [&](int node) {
        return std::ranges::all_of(graph.overwrites_by(node),
                                   [&](const Overwrite &overwrite) { return overwrites_safely(graph, nodes, overwrite); });
    });
}

Program copy_shared_results(const Program &program, bool prepares_kernels) {
    Program copied = program;
    copy_arguments_and_duplicates(copied);
    // A value that is copied is no result, so it may float. What floats with it reads arguments later than before, and that shows in the
    // program with the copy alone. A copy reads values that are stored or depend on no overwritten argument, so one copy is enough.
    std::vector<bool> has_copy(copied.results.size());
    for (bool is_changed = true; is_changed;) {
        is_changed = false;
        const std::set<ValueId> conflicts = find_conflicts(copied, prepares_kernels);
        copy_results(copied, [&](const Result &result) {
            const auto index = static_cast<size_t>(&result - copied.results.data());
            if (result.argument < 0 || has_copy[index] || !conflicts.contains(result.value)) return false;
            return is_changed = has_copy[index] = true;
        });
    }
    return copied;
}

} // namespace scalide
