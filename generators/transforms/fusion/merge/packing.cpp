#include "transforms/fusion/merge/packing.h"
#include "expr/base_operators.h"
#include <algorithm>

namespace scalide {

namespace {

/// Limit for the arithmetic before the rounding, which each matmul computes again.
constexpr int most_packing_cost = 12;
/// One matmul of the forward pass and two of the backward pass. Each matmul reads the operand in its wide format again.
constexpr size_t most_products = 3;

/// True if only generated matmul kernels read the value, and at most most_products of them.
bool is_for_products(const Groups &groups, ValueId value) {
    std::set<int> products;
    for (const Read &read : groups.graph().readers(value)) {
        const Group &group = groups[groups.group_of(read.reader)];
        if (groups.graph().shape(read.reader) != Shape::contract || !group.library.empty()) return false;
        products.insert(read.reader);
    }
    return !products.empty() && products.size() <= most_products && !groups.graph().is_result(value);
}

/// True if an overwritten argument still holds its old elements in all matmuls that read `node`. These then come before the node that
/// overwrites it.
bool is_kept_for_readers(const Groups &groups, ValueId argument, int node) {
    const int writer = groups.graph().overwriter(argument);
    return writer < 0 || std::ranges::all_of(groups.graph().readers(groups.program().nodes[node].results[0]),
                                             [&](const Read &read) { return read.reader < writer; });
}

/// The nodes that compute a rounded operand in a packing.
struct Chain {
    int last;            ///< the node that rounds
    std::set<int> nodes; ///< all, `last` included
    int cost = 0;        ///< of all nodes
    bool reads_overwritten = false;
};

/// Adds `node` and its producers in the same group to `chain`. Returns false if a packing cannot recompute them.
bool follow(const Groups &groups, int node, Chain &chain) {
    const Program &program = groups.program();
    const Node &n = program.nodes[node];
    if (groups.graph().shape(node) != Shape::elementwise || program.type(n.results[0]).is_scalar() || is_expensive(n)) return false;
    if (!chain.nodes.insert(node).second) return true;
    chain.cost += cost_of(n);
    return chain.cost <= most_packing_cost && std::ranges::all_of(groups.graph().reads(node), [&](const Read &read) {
               const int producer = groups.graph().producer(read.value);
               chain.reads_overwritten |= producer < 0 && groups.graph().overwriter(read.value) >= 0;
               if (producer < 0) return is_kept_for_readers(groups, read.value, chain.last);
               if (groups.group_of(producer) != groups.group_of(node)) return true;
               return !is_rounding(program, program.nodes[producer]) && follow(groups, producer, chain);
           });
}

/// True if no node outside the chain reads a value of it, except the last one.
bool is_closed(const Groups &groups, const Chain &chain) {
    return std::ranges::all_of(chain.nodes, [&](int node) {
        const ValueId value = groups.program().nodes[node].results[0];
        const auto is_inside = [&](const Read &read) { return chain.nodes.contains(read.reader); };
        return node == chain.last || (!groups.graph().is_result(value) && std::ranges::all_of(groups.graph().readers(value), is_inside));
    });
}

} // namespace

RoundedInPacking rounded_in_packing(const Groups &groups) {
    const Program &program = groups.program();
    RoundedInPacking found;
    for (int node = 0; node < std::ssize(program.nodes); ++node) {
        const Node &n = program.nodes[node];
        if (groups.graph().is_floating(node) || !is_rounding(program, n) || !is_for_products(groups, n.results[0])) continue;
        Chain chain{node, {}};
        if (!follow(groups, node, chain) || !is_closed(groups, chain)) continue;
        (chain.reads_overwritten ? found.where_ordered : found.always).merge(chain.nodes);
    }
    return found;
}

} // namespace scalide
