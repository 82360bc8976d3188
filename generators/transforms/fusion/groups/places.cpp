#include "transforms/fusion/groups/places.h"
#include <algorithm>
#include <functional>
#include <map>

namespace scalide {

namespace {

/// An index is identified by a hash of the chain of movement nodes that leads to it. 0 is the index of the kernel's loops.
using Places = std::set<size_t>;

size_t behind(size_t place, int node) { return std::hash<size_t>()(place * 0x9e3779b97f4a7c15 + static_cast<size_t>(node) + 1); }

} // namespace

int count_places(const Groups &groups, const std::vector<int> &nodes, int most) {
    const Program &program = groups.program();
    std::map<int, Places, std::greater<>> waiting; // readers are visited before the nodes that they read
    for (int node : nodes) waiting[node];
    int count = 0;
    while (!waiting.empty() && count < most) {
        const auto [index, read_at] = *waiting.begin();
        waiting.erase(waiting.begin());
        const Node &node = program.nodes[index];
        const Places places = read_at.empty() ? Places{0} : read_at; // a result of the kernel
        const bool same = access_of(program, node) == Access::same;
        count += static_cast<int>(places.size());
        for (ValueId operand : node.operands) {
            const int producer = groups.graph().producer(operand);
            if (producer < 0 || !(groups.graph().is_floating(producer) || std::ranges::binary_search(nodes, producer))) continue;
            for (size_t place : places) waiting[producer].insert(same ? place : behind(place, index));
        }
    }
    return std::min(count, most);
}

} // namespace scalide
