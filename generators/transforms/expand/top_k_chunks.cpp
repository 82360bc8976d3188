#include "transforms/expand/top_k_chunks.h"
#include <bit>

namespace scalide {

namespace {

/// Returns the picoseconds to sort a line.
double cost_of_line(int64_t count, const SortCosts &costs) {
    const int levels = std::bit_width(uint64_t(std::max<int64_t>(count, 1) - 1));
    return count <= costs.longest_by_network ? double(costs.network_step) * double(count * levels * (levels + 1))
                                             : double(costs.digits_line) + double(costs.digits_element) * double(count);
}

/// Returns the elements of a chunk, a power of two; 1: the whole line is sorted.
int64_t choose_chunk(int64_t n, int64_t k, const SortCosts &costs) {
    int64_t best = 1;
    double least = 0.75 * cost_of_line(n, costs); // the gain must also pay for the additional kernels
    for (int64_t chunk = 2; k * chunk <= n; chunk *= 2) {
        const double cost =
            double(costs.maximum_element) * double(n) + cost_of_line((n + chunk - 1) / chunk, costs) + cost_of_line(k * chunk, costs);
        if (cost >= least) continue;
        best = chunk;
        least = cost;
    }
    return best;
}

} // namespace

Remake top_k_by_chunks(const Program &program, const Node &node, const SortCosts &costs) {
    if (node.op != "top_k_places") return {};
    const Extents &shape = program.type(node.operands[0]).shape;
    const Extent &n = shape[size_t(node.attributes.at("axis").integer.value())], &k = node.attributes.at("k").integer;
    const int64_t chunk = n.is_static() && k.is_static() ? choose_chunk(n.value(), k.value(), costs) : 1;
    if (chunk == 1) return {};
    return [chunk, chunks = (n.value() + chunk - 1) / chunk](Builder &builder, const Node &top_k) {
        Attributes attributes = top_k.attributes;
        attributes["chunk"] = chunk;
        attributes["chunks"] = chunks;
        return builder.add("top_k_by_chunks", top_k.operands, attributes);
    };
}

} // namespace scalide
