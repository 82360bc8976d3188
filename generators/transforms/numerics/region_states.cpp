#include "transforms/numerics/region_states.h"
#include "ir/regions.h"
#include <algorithm>

namespace scalide {

namespace {

bool is_same_state(const StateInRegion &a, const StateInRegion &b) {
    return a.state == b.state && a.owner == b.owner && a.stored == b.stored && a.lent == b.lent;
}

/// In the first step, the next value is that of the step; later, it is the larger one.
void carry_states(Program &region, Builder &builder, const std::vector<StateInRegion> &states) {
    std::vector<ValueId> carried;
    for (const StateInRegion &state : states) carried.push_back(add_value(region, state.state->name, state.state->type));
    carried.push_back(add_value(region, "has_state", {Dtype::boolean, {}}));
    Node of_policy{};
    of_policy.location = states[0].state->location;
    builder.stamp_like(of_policy);
    std::vector<ValueId> next;
    for (size_t i = 0; i < states.size(); i++) {
        const ValueId value = states[i].next < 0 ? states[i].before : states[i].next;
        const ValueId largest = builder.add_one("max", {carried[i], value});
        next.push_back(builder.add_one("select_n", {carried.back(), value, largest}));
    }
    next.push_back(builder.constant(1, Dtype::boolean));
    auto place = std::ranges::find_if(region.results, [](const Result &result) { return result.argument < 0; });
    for (size_t i = 0; i < carried.size(); i++) {
        region.arguments.push_back({.value = carried[i], .inout = true});
        const int argument = static_cast<int>(region.arguments.size()) - 1;
        place = region.results.insert(place, {.name = region.value_name(carried[i]), .value = next[i], .argument = argument}) + 1;
    }
}

} // namespace

void add_states(Program &region, Builder &builder, const std::vector<StateInRegion> &states, StateUse use) {
    std::vector<StateInRegion> own;
    for (StateInRegion state : states) {
        if (state.before < 0) state.before = add_value(region, state.state->name, state.state->type);
        region.arguments.push_back({.value = state.before});
        own.push_back(state);
    }
    std::erase_if(own, [](const StateInRegion &state) { return !state.is_own(); });
    if (use == StateUse::carried && !own.empty()) carry_states(region, builder, own);
    if (use == StateUse::passed && !own.empty()) {
        for (const StateInRegion &state : own)
            region.arguments.push_back({.value = add_value(region, state.state->name, state.state->type)});
        region.arguments.push_back({.value = add_value(region, "has_state", {Dtype::boolean, {}})});
    }
    for (const StateInRegion &state : own)
        if (use == StateUse::chosen)
            region.results.push_back(
                {.name = region.value_name(state.before) + ".next", .value = state.next < 0 ? state.before : state.next});
}

std::vector<int> captured_operands(const Node &node) {
    std::vector<int> operands = LoopView(node).operands;
    for (size_t i = 0; i < operands.size(); i++)
        if (!is_capture(node.regions.back()->arguments[i])) operands[i] = -1;
    return operands;
}

std::vector<StateInRegion> states_of_all(const std::vector<std::vector<StateInRegion>> &by_region) {
    std::vector<StateInRegion> all;
    for (const std::vector<StateInRegion> &states : by_region)
        for (const StateInRegion &state : states) {
            const auto known = std::ranges::find_if(all, [&](const StateInRegion &other) { return is_same_state(state, other); });
            if (known == all.end()) all.push_back(state);
        }
    return all;
}

std::vector<StateInRegion> as_in(const std::vector<StateInRegion> &all, const std::vector<StateInRegion> &region) {
    std::vector<StateInRegion> own = all;
    for (StateInRegion &state : own) {
        const auto found = std::ranges::find_if(region, [&](const StateInRegion &other) { return is_same_state(state, other); });
        state.before = found == region.end() ? -1 : found->before;
        state.next = found == region.end() ? -1 : found->next;
    }
    return own;
}

} // namespace scalide
