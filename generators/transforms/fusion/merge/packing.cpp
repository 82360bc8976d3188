#include "transforms/fusion/merge/packing.h"
#include "expr/base_operators.h"
#include <algorithm>

namespace scalide {

namespace {

/// Arithmetic before the rounding, for each product once more.
constexpr int most_packing_cost = 12;
/// Forward, and twice in the backward pass. A product more reads the operand once more in its wide form.
constexpr size_t most_products = 3;

/// True when all that reads the value are products that the kernels compute themselves, and few.
bool is_for_products(const Groups &groups, ValueId value) {
    std::set<int> products;
    for (const Read &read : groups.graph().readers(value)) {
        const Group &group = groups[groups.group_of(read.reader)];
        if (groups.graph().shape(read.reader) != Shape::contract || !group.library.empty()) return false;
        products.insert(read.reader);
    }
    return !products.empty() && products.size() <= most_products && !groups.graph().is_result(value);
}

/// True when an argument that is overwritten still holds its old elements in all products that read `node`: they come first.
bool is_kept_for_readers(const Groups &groups, ValueId argument, int node) {
    const int writer = groups.graph().overwriter(argument);
    return writer < 0 || std::ranges::all_of(groups.graph().readers(groups.program().nodes[node].results[0]),
                                             [&](const Read &read) { return read.reader < writer; });
}

/// What a rounded operand is computed from in a packing.
struct Chain {
    int last;            ///< the node that rounds
    std::set<int> nodes; ///< all, `last` included
    int cost = 0;        ///< of the nodes
    bool reads_overwritten = false;
};

/// Takes `node` and what it reads within its group into `chain`; false when that cannot be computed again in a packing.
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

/// Nobody else reads what the chain makes on its way.
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
