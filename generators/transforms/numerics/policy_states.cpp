#include "transforms/numerics/policy_states.h"
#include "rulebook/check_policy.h"
#include "transforms/operators.h"

namespace scalide {

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

PolicyStates::Added &PolicyStates::added(const PolicyState &state, const PolicyTensor &tensor, std::optional<Dtype> stored) {
    const ValueId of = state.per_tensor ? root(tensor.source) : -1;
    const std::optional<Dtype> format = state.per_tensor ? stored : std::nullopt;
    for (Added &known : states_)
        if (known.state == &state && known.tensor == of && known.stored == format) return known;
    const Rule &rule = builder_.rulebook().rule(state.next.op, state.location);
    for (const PolicyState *other : next_state(policy_, state, rule, format).others)
        if (other != nullptr) added(*other, tensor, stored);
    Program &program = rewriter_.result();
    const std::string owner = state.per_tensor ? rewriter_.source().value_name(of) + "." : "";
    const ValueId value = add_value(program, owner + state.name, state.type);
    states_.push_back({&state, of, format, static_cast<int>(program.arguments.size()), tensor.value});
    program.arguments.push_back({value, false, true, {}, state.location, state.initial});
    if (decisions_ != nullptr) {
        decisions_->push_back({PolicyRule::Place::argument, program.value_name(value), "state of the policy", "", {}, {}, value});
        decisions_->back().row = state.location;
    }
    return states_.back();
}

ValueId PolicyStates::next_of(Added &state) {
    if (state.next >= 0) return state.next;
    const PolicyState &declared = *state.state;
    const Rule &rule = builder_.rulebook().rule(declared.next.op, declared.location);
    const NextState next = next_state(policy_, declared, rule, state.stored);
    std::vector<ValueId> operands{argument_value(state)};
    for (const PolicyState *other : next.others)
        operands.push_back(other == nullptr ? state.value : next_of(added(*other, {state.tensor, state.value}, state.stored)));
    builder_.set_role(Role::primal);
    const std::string &name = rewriter_.result().value_name(operands[0]);
    state.next = builder_.add_one(declared.next.op, operands, next.attributes, name + ".next");
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
        throw UserError(relation_of(rule.location, "scale: {by: calibration}", "needs a", "calibration",
                                    "Run 'scalide calibrate PROGRAM -i DATA.safetensors -o FILE.yaml', and write a policy with 'extends: " +
                                        policy_.name + "' and 'calibration: FILE.yaml'"));
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
