#include "transforms/analysis/directions.h"
#include <algorithm>

namespace scalide {

std::string_view to_string(Direction direction) {
    constexpr std::string_view words[] = {"-", "forward", "backward", "update"};
    return words[static_cast<size_t>(direction)];
}

std::vector<bool> needed_by_model(const Program &program) {
    std::vector<bool> needed(program.values.size());
    for (const Result &result : program.results)
        if (result.argument < 0) needed[result.value] = true;
    for (const Node &node : program.nodes)
        if (node.role == Role::cotangent)
            for (const ValueId result : node.results) needed[result] = true;
    mark_sources(program, needed);
    return needed;
}

std::vector<Direction> directions_of(const Program &flat) {
    const std::vector<bool> is_needed = needed_by_model(flat);
    std::vector<bool> from_gradient(flat.values.size());
    std::vector<Direction> directions;
    for (const Node &node : flat.nodes) {
        const bool is_gradient = node.role == Role::cotangent;
        const bool depends = is_gradient || std::ranges::any_of(node.operands, [&](ValueId value) { return from_gradient[value]; });
        for (const ValueId result : node.results) from_gradient[result] = depends;
        const bool is_read = std::ranges::any_of(node.results, [&](ValueId value) { return is_needed[value]; });
        directions.push_back(is_gradient ? Direction::backward : is_read && !depends ? Direction::forward : Direction::update);
    }
    return directions;
}

Directions::Directions(const Program &program) {
    const Flat flat = flattened(program);
    add(program, flat.nodes, directions_of(flat.program));
}

Direction Directions::of(const Node &node) const {
    const auto found = directions_.find(&node);
    return found == directions_.end() ? Direction::none : found->second;
}

void Directions::add(const Program &program, const FlatNodes &nodes, const std::vector<Direction> &flat) {
    for (size_t i = 0; i < program.nodes.size(); i++) {
        const Node &node = program.nodes[i];
        if (nodes.first[i] >= 0) directions_[&node] = flat[static_cast<size_t>(nodes.first[i])];
        for (size_t r = 0; r < node.regions.size(); r++) add(*node.regions[r], nodes.regions[i][r], flat);
    }
}

} // namespace scalide
