#include "transforms/numerics/policy_states.h"
#include "rulebook/check_policy.h"
#include "transforms/analysis/operators.h"
#include <algorithm>

namespace scalide {

namespace {

/// The prefix of the key of an owner that is a place of a scope.
constexpr std::string_view place_prefix = "place ";

bool is_of_place(const std::string &owner) { return owner.starts_with(place_prefix); }

} // namespace

PolicyStates::PolicyStates(Rewriter &rewriter, Builder &builder, const Policy &policy, const std::vector<int> &producers,
                           PolicyDecisions *decisions, std::optional<AroundRegion> around)
    : rewriter_(rewriter), builder_(builder), policy_(policy), producers_(producers), decisions_(decisions), around_(std::move(around)) {
    if (policy_.state.empty()) return;
    for (const Value &value : rewriter.source().values) names_.insert(value.name);
    for (const Result &result : rewriter.source().results) names_.insert(result.name);
}

/// Returns the name, with a number if the program has an array or a result of this name. So they keep their names.
std::string PolicyStates::free_name(const std::string &name) const {
    std::string free = name;
    for (int number = 1; names_.contains(free); number++) free = name + std::to_string(number);
    return free;
}

/// Returns the array of which the tensor is a moved form with all its elements, and so with its amax.
ValueId PolicyStates::root(ValueId tensor) const {
    const Program &source = rewriter_.source();
    while (producers_[tensor] >= 0) {
        const Node &node = source.nodes[producers_[tensor]];
        if (!moves_one_array(node) || element_count(source.type(node.operands[0]).shape) != element_count(source.type(tensor).shape)) break;
        tensor = node.operands[0];
    }
    return tensor;
}

ValueId PolicyStates::state(const std::string &name, const PolicyTensor &tensor, std::optional<Dtype> stored) {
    return added(*policy_.find_state(name), tensor, stored).value;
}

/// Returns the owner of a state. The state of a scope belongs to the tensors for which rules match at one place of it, such as the
/// microbatches that a layer reads. A tensor that is read at several places belongs to the first.
PolicyStates::Owner PolicyStates::owner_of(const PolicyState &state, const PolicyTensor &tensor) {
    if (state.per == PolicyState::Per::program) return {};
    const ValueId array = root(tensor.source);
    const std::string &name = rewriter_.source().value_name(array);
    if (state.per == PolicyState::Per::tensor) return {"array " + std::to_string(array), name};
    if (const auto known = owners_.find(array); known != owners_.end()) return known->second;
    if (tensor.scope.empty())
        throw UserError(statement(state.location,
                                  "each scope has a '" + state.name + "', but the operator that uses '" +
                                      rewriter_.source().value_name(tensor.source) + "' has no scope",
                                  "Give it a scope in the program, or write 'per: tensor'"));
    const std::string place = tensor.scope + "\n" + tensor.place;
    const ValueId first = places_.try_emplace(place, array).first->second;
    return owners_[array] = {std::string(place_prefix) + place, rewriter_.source().value_name(first)};
}

PolicyStates::Added *PolicyStates::find(const PolicyState &state, const std::string &owner, std::optional<Dtype> stored) {
    const auto is_same = [&](const Added &known) { return known.state == &state && known.owner == owner && known.stored == stored; };
    const auto found = std::ranges::find_if(states_, is_same);
    return found == states_.end() ? nullptr : &*found;
}

/// Adds a state and its argument: state of the main program, or a capture of a region.
PolicyStates::Added &PolicyStates::add(const PolicyState &state, const Owner &owner, std::optional<Dtype> stored) {
    Program &program = rewriter_.result();
    const std::string name = owner.name.empty() ? state.name : owner.name + "." + state.name;
    const ValueId value = add_value(program, free_name(name), state.type);
    states_.push_back({&state, owner.key, owner.name, stored, value});
    if (around_) {
        program.arguments.push_back({.value = value});
        return states_.back();
    }
    program.arguments.push_back({value, false, true, {}, state.location, state.initial});
    if (decisions_ != nullptr) {
        decisions_->sites.push_back(
            {PolicyRule::Place::argument, program.value_name(value), state_of_policy, "", Direction::none, {}, {}, value});
        decisions_->sites.back().row = state.location;
    }
    return states_.back();
}

/// Returns the state in the program around, if the region only captures what the state belongs to.
std::optional<ValueId> PolicyStates::lent(const PolicyState &state, ValueId array, const PolicyTensor &tensor,
                                          std::optional<Dtype> stored) {
    if (!around_) return {};
    PolicyStates &outer = around_->states;
    if (array < 0) return outer.added(state, {-1, -1, tensor.scope, tensor.place}, stored).value;
    const std::vector<Argument> &arguments = rewriter_.source().arguments;
    const auto argument = std::ranges::find(arguments, array, &Argument::value);
    const int operand = argument == arguments.end() ? -1 : around_->operands[static_cast<size_t>(argument - arguments.begin())];
    if (operand < 0) return {};
    const ValueId source = around_->node.operands[static_cast<size_t>(operand)];
    return outer.added(state, {source, outer.rewriter_(source), tensor.scope, tensor.place}, stored).value;
}

PolicyStates::Added &PolicyStates::added(const PolicyState &state, const PolicyTensor &tensor, std::optional<Dtype> stored) {
    const bool is_of_tensors = state.per != PolicyState::Per::program;
    const ValueId array = is_of_tensors ? root(tensor.source) : -1;
    const std::optional<Dtype> format = is_of_tensors ? stored : std::nullopt;
    if (const auto outer = lent(state, array, tensor, stored)) {
        const std::string key = "lent " + std::to_string(*outer);
        Added *known = find(state, key, format);
        Added &mine = known != nullptr ? *known : add(state, {key, is_of_tensors ? rewriter_.source().value_name(array) : ""}, format);
        mine.lent = *outer;
        return mine;
    }
    const Owner owner = owner_of(state, tensor);
    const Rule &rule = builder_.rulebook().rule(state.next.op, state.location);
    for (const PolicyState *other : next_state(policy_, state, rule, format).others)
        if (other != nullptr) added(*other, tensor, stored);
    Added *known = find(state, owner.key, format);
    Added &mine = known != nullptr ? *known : add(state, owner, format);
    if (std::ranges::find(mine.tensors, array, &PolicyTensor::source) == mine.tensors.end()) mine.tensors.push_back({array, tensor.value});
    return mine;
}

/// If several tensors share the state, its next value is the largest of the values that each of them gives.
ValueId PolicyStates::next_of(Added &state) {
    if (state.next >= 0) return state.next;
    if (state.lent >= 0) return state.value;
    const PolicyState &declared = *state.state;
    const Rule &rule = builder_.rulebook().rule(declared.next.op, declared.location);
    const NextState next = next_state(policy_, declared, rule, state.stored);
    const std::string name = rewriter_.result().value_name(state.value) + ".next";
    Node of_policy{};
    of_policy.location = declared.location;
    const auto merge = [&](ValueId value) {
        builder_.stamp_like(of_policy);
        state.next = state.next < 0 ? value : builder_.add_one("max", {state.next, value}, {}, name);
    };
    const auto update = [&](const auto &next_of_other) {
        std::vector<ValueId> operands{state.value};
        for (const PolicyState *other : next.others) operands.push_back(next_of_other(other));
        builder_.stamp_like(of_policy);
        merge(naming_line(declared.location, "updates state '" + rewriter_.result().value_name(state.value) + "'",
                          [&] { return builder_.add_one(declared.next.op, operands, next.attributes, name); }));
    };
    const size_t count = reads_tensors(state) ? state.tensors.size() : std::min<size_t>(state.tensors.size(), 1);
    for (size_t i = 0; i < count; i++) {
        const PolicyTensor tensor = state.tensors[i];
        update([&](const PolicyState *other) { return other == nullptr ? tensor.value : next_of(added(*other, tensor, state.stored)); });
    }
    if (state.tensors.empty() && state.given.empty())
        update([&](const PolicyState *other) { return next_of(*find(*other, state.owner, state.stored)); });
    for (const ValueId given : state.given) merge(given);
    return state.next;
}

bool PolicyStates::reads_tensors(const Added &state) const {
    const Rule &rule = builder_.rulebook().rule(state.state->next.op, state.state->location);
    const NextState next = next_state(policy_, *state.state, rule, state.stored);
    return std::ranges::find(next.others, nullptr) != next.others.end();
}

void PolicyStates::place_next() {
    for (Added &state : states_) {
        const ValueId next = next_of(state);
        const std::vector<Argument> &arguments = rewriter_.result().arguments;
        const auto argument = std::ranges::find(arguments, state.value, &Argument::value) - arguments.begin();
        rewriter_.result().results.push_back({rewriter_.result().value_name(state.value), next, false, static_cast<int>(argument)});
    }
}

std::vector<StateInRegion> PolicyStates::take_from_region(size_t number) {
    std::vector<StateInRegion> found;
    for (Added &state : states_) {
        const bool is_local = state.lent < 0 && !is_of_place(state.owner);
        const std::string owner = is_local ? std::to_string(number) + "/" + state.owner : state.owner;
        const bool follows = state.lent < 0 && !reads_tensors(state);
        const ValueId next = state.lent >= 0 || follows ? -1 : next_of(state);
        found.push_back({state.state, owner, state.name, state.stored, state.value, next, state.lent, follows});
    }
    std::erase_if(rewriter_.result().arguments, [&](const Argument &argument) {
        return std::ranges::any_of(states_, [&](const Added &state) { return state.value == argument.value; });
    });
    return found;
}

/// An array of a region is no array of the program around. A place of a scope is the same in both.
std::string PolicyStates::owner_in(const StateInRegion &inner, const std::string &where) {
    return is_of_place(inner.owner) ? inner.owner : where + "/" + inner.owner;
}

ValueId PolicyStates::enter(const StateInRegion &inner, const std::string &where) {
    if (inner.lent >= 0) return inner.lent;
    const std::string key = owner_in(inner, where);
    const Added *known = find(*inner.state, key, inner.stored);
    return known != nullptr ? known->value : add(*inner.state, {key, inner.name}, inner.stored).value;
}

void PolicyStates::give(const StateInRegion &inner, const std::string &where, ValueId next) {
    find(*inner.state, owner_in(inner, where), inner.stored)->given.push_back(next);
}

/// The formula is that of delayed scaling, with a history of one constant.
ValueId PolicyStates::calibrated(const PolicyTensor &tensor, const PolicyRule &rule) {
    const std::string &name = rewriter_.source().value_name(root(tensor.source)), &program = rewriter_.source().name;
    if (!policy_.calibration)
        throw UserError(
            relation_of(rule.location, "scale: {by: calibration}", "needs a", "calibration",
                        "Run 'scalide calibrate PROGRAM -i DATA.safetensors -o FILE.yaml', and write 'calibration: FILE.yaml' in a "
                        "policy of your own that extends this one"));
    const Calibration &calibration = *policy_.calibration;
    const std::string way_out = "Run 'scalide calibrate' for this program";
    if (calibration.program != program)
        throw UserError({calibration.location, "calibration.program", "must be the program that is compiled, '" + program + "'",
                         "'" + calibration.program + "'", way_out});
    const auto amax = calibration.amax.find(name);
    if (amax == calibration.amax.end())
        throw UserError({calibration.location, "calibration.amax", "must have tensor '" + name + "'", "", way_out});
    Attributes attributes = rule.calibrated;
    add_stored_dtype(builder_.rulebook().rule(calibrated_scale, rule.location), rule.stored_dtype(), attributes);
    const ValueId history = builder_.broadcast(builder_.constant(amax->second), {1});
    return builder_.add_one(calibrated_scale, {builder_.constant(1), history}, attributes, name + ".scale");
}

} // namespace scalide
