#include "transforms/numerics/policy_states.h"
#include "rulebook/check_policy.h"
#include "transforms/analysis/operators.h"
#include <algorithm>

namespace scalide {

PolicyStates::PolicyStates(Rewriter &rewriter, Builder &builder, const Policy &policy, const std::vector<int> &producers,
                           PolicyDecisions *decisions)
    : rewriter_(rewriter), builder_(builder), policy_(policy), producers_(producers), decisions_(decisions) {
    if (policy.state.empty()) return;
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
    return argument_value(added(*policy_.find_state(name), tensor, stored));
}

/// Returns the tensor that names a state. The state of a scope belongs to the tensors for which rules match at one place of it, such as the
/// microbatches that a layer reads. A tensor that is read at several places belongs to the first.
ValueId PolicyStates::owner_of(const PolicyState &state, const PolicyTensor &tensor) {
    if (state.per == PolicyState::Per::program) return -1;
    const ValueId array = root(tensor.source);
    if (state.per == PolicyState::Per::tensor) return array;
    if (const auto known = owners_.find(array); known != owners_.end()) return known->second;
    if (tensor.scope.empty())
        throw UserError(statement(state.location,
                                  "each scope has a '" + state.name + "', but the operator that uses '" +
                                      rewriter_.source().value_name(tensor.source) + "' has no scope",
                                  "Give it a scope in the program, or write 'per: tensor'"));
    return owners_[array] = places_.try_emplace(tensor.scope + "\n" + tensor.place, array).first->second;
}

PolicyStates::Added &PolicyStates::added(const PolicyState &state, const PolicyTensor &tensor, std::optional<Dtype> stored) {
    const bool is_of_tensors = state.per != PolicyState::Per::program;
    const ValueId owner = owner_of(state, tensor), array = is_of_tensors ? root(tensor.source) : -1;
    const std::optional<Dtype> format = is_of_tensors ? stored : std::nullopt;
    const Rule &rule = builder_.rulebook().rule(state.next.op, state.location);
    for (const PolicyState *other : next_state(policy_, state, rule, format).others)
        if (other != nullptr) added(*other, tensor, stored);
    for (Added &known : states_) {
        if (known.state != &state || known.owner != owner || known.stored != format) continue;
        if (std::ranges::find(known.tensors, array, &PolicyTensor::source) == known.tensors.end())
            known.tensors.push_back({array, tensor.value});
        return known;
    }
    Program &program = rewriter_.result();
    const std::string prefix = is_of_tensors ? rewriter_.source().value_name(owner) + "." : "";
    const ValueId value = add_value(program, free_name(prefix + state.name), state.type);
    states_.push_back({&state, owner, format, static_cast<int>(program.arguments.size()), {{array, tensor.value}}});
    program.arguments.push_back({value, false, true, {}, state.location, state.initial});
    if (decisions_ != nullptr) {
        decisions_->sites.push_back({PolicyRule::Place::argument, program.value_name(value), state_of_policy, "", {}, {}, value});
        decisions_->sites.back().row = state.location;
    }
    return states_.back();
}

/// If several tensors share the state, its next value is the largest of the values that each of them gives.
ValueId PolicyStates::next_of(Added &state) {
    if (state.next >= 0) return state.next;
    const PolicyState &declared = *state.state;
    const Rule &rule = builder_.rulebook().rule(declared.next.op, declared.location);
    const NextState next = next_state(policy_, declared, rule, state.stored);
    const ValueId before = argument_value(state);
    const std::string name = rewriter_.result().value_name(before) + ".next";
    const bool reads_tensors = std::ranges::find(next.others, nullptr) != next.others.end();
    for (const PolicyTensor &tensor : std::vector(state.tensors.begin(), reads_tensors ? state.tensors.end() : state.tensors.begin() + 1)) {
        std::vector<ValueId> operands{before};
        for (const PolicyState *other : next.others)
            operands.push_back(other == nullptr ? tensor.value : next_of(added(*other, tensor, state.stored)));
        Node of_policy{};
        of_policy.location = declared.location;
        builder_.stamp_like(of_policy);
        const ValueId value = naming_line(declared.location, "updates state '" + rewriter_.result().value_name(before) + "'",
                                          [&] { return builder_.add_one(declared.next.op, operands, next.attributes, name); });
        state.next = state.next < 0 ? value : builder_.add_one("max", {state.next, value}, {}, name);
    }
    return state.next;
}

void PolicyStates::place_next() {
    for (Added &state : states_) {
        const ValueId next = next_of(state);
        rewriter_.result().results.push_back({rewriter_.result().value_name(argument_value(state)), next, false, state.argument});
    }
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
