#include "ir/words.h"
#include "rulebook/instance.h"
#include "transforms/analysis/operators.h"
#include "transforms/analysis/passes.h"
#include "transforms/analysis/splice.h"
#include "transforms/calls/calls.h"
#include "transforms/differentiate/activity.h"
#include "transforms/differentiate/regions.h"
#include "transforms/differentiate/transpose_rules.h"
#include "transforms/differentiate/vjp.h"
#include <algorithm>

namespace scalide {

namespace {

/// Reverse accumulation over the nodes of a program. A cotangent has the type of its value. Contributions to a cotangent are collected in a
/// list. They are summed when the accumulation reaches the node that computes the value.
class Differentiation {
public:
    Differentiation(Program &program, const Rulebook &rulebook) : program_(program), builder_(rulebook, program) {}

    Vjp run(std::vector<ValueId> outputs, const std::vector<ValueId> &cotangents, const std::vector<ValueId> &wrt);

private:
    void find_active(const std::vector<ValueId> &wrt, const std::vector<ValueId> &outputs);
    bool expand_first(std::vector<ValueId> &outputs);
    bool has_gradient_of_its_value(const Node &node) const;
    bool is_on_path(const Node &node) const;
    void visit(size_t index, const Node &node);
    void visit_expressions(const Node &node, const Rule &rule, const std::vector<ValueId> &cts);
    void visit_derived(const Node &node, const std::vector<ValueId> &cts);
    void visit_program(const Node &node, ValueId ct);
    void visit_regions(size_t index, const Node &node, const std::vector<ValueId> &cts);
    void check_has_gradient(const Node &node, const Rule &rule) const;
    ValueId cotangent(ValueId value);
    void accumulate(ValueId value, ValueId ct);

    Program &program_;
    Builder builder_;
    std::vector<bool> active_; ///< depends on a value of `wrt` through floats, and an output depends on it
    std::vector<std::vector<ValueId>> parts_;
};

Vjp Differentiation::run(std::vector<ValueId> outputs, const std::vector<ValueId> &cotangents, const std::vector<ValueId> &wrt) {
    do find_active(wrt, outputs);
    while (expand_first(outputs));
    builder_.set_role(Role::cotangent);
    parts_.resize(program_.values.size());
    const size_t count = program_.nodes.size();
    for (size_t i = 0; i < outputs.size(); i++) accumulate(outputs[i], cotangents[i]);
    for (size_t i = count; i-- > 0;) {
        const Node node = program_.nodes[i]; // a copy, because the vector grows
        if (is_on_path(node)) visit(i, node);
    }
    Vjp vjp{{}, count};
    for (const ValueId value : wrt) vjp.gradients.push_back(cotangent(value));
    return vjp;
}

void Differentiation::find_active(const std::vector<ValueId> &wrt, const std::vector<ValueId> &outputs) {
    std::vector<bool> reached(program_.values.size(), false), needed(program_.values.size(), false);
    for (const ValueId value : wrt) reached[value] = true;
    for (const ValueId value : outputs) needed[value] = true;
    mark_reached(program_, builder_.rulebook(), reached);
    mark_needed(program_, needed);
    active_.assign(program_.values.size(), false);
    for (size_t i = 0; i < active_.size(); i++) active_[i] = reached[i] && needed[i];
}

/// True if a result and an operand carry a derivative.
bool Differentiation::is_on_path(const Node &node) const {
    const auto is_active = [&](ValueId value) { return active_[value]; };
    return std::ranges::any_of(node.results, is_active) && std::ranges::any_of(node.operands, is_active);
}

bool Differentiation::has_gradient_of_its_value(const Node &node) const {
    if (!node.regions.empty()) return false;
    const Rule &rule = builder_.rulebook().rule(node.op, node.location);
    return rule.gradient_kind == GradientKind::derived && !rule.is_base;
}

/// Replaces the first composite that is differentiated through its `value` by that value. Returns false if there is none.
bool Differentiation::expand_first(std::vector<ValueId> &outputs) {
    const auto found =
        std::ranges::find_if(program_.nodes, [&](const Node &node) { return is_on_path(node) && has_gradient_of_its_value(node); });
    if (found == program_.nodes.end()) return false;
    const auto index = static_cast<size_t>(found - program_.nodes.begin());
    const auto aliases = replace_node(program_, builder_.rulebook(), index, expand_value);
    for (ValueId &output : outputs) {
        if (aliases.contains(output)) output = aliases.at(output);
    }
    return true;
}

void Differentiation::visit(size_t index, const Node &node) {
    builder_.stamp_like(node);
    builder_.set_role(Role::cotangent);
    std::vector<ValueId> cts;
    for (const ValueId result : node.results) cts.push_back(cotangent(result));
    if (std::ranges::all_of(cts, [](ValueId ct) { return ct < 0; })) return;
    if (!node.regions.empty()) return visit_regions(index, node, cts);
    const Rule &rule = builder_.rulebook().rule(node.op, node.location);
    check_has_gradient(node, rule);
    if (rule.gradient_kind == GradientKind::expressions) visit_expressions(node, rule, cts);
    if (rule.gradient_kind == GradientKind::derived) visit_derived(node, cts);
    if (rule.gradient_kind == GradientKind::program) visit_program(node, cts[0]);
}

void Differentiation::check_has_gradient(const Node &node, const Rule &rule) const {
    if (rule.gradient_kind != GradientKind::none) return;
    throw UserError(statement(node.location,
                              "operator '" + node.op + "' has no gradient, but the loss depends on its result '" +
                                  program_.value_name(node.results[0]) + "'",
                              "Add 'grad' to its rule, or apply stop_gradient to the result"));
}

void Differentiation::visit_expressions(const Node &node, const Rule &rule, const std::vector<ValueId> &cts) {
    std::vector<ScaledValue> operands;
    for (const ValueId operand : node.operands) operands.push_back({operand});
    Instance instance(builder_, rule, std::move(operands), node.attributes);
    for (size_t i = 0; i < node.operands.size(); i++) {
        if (active_[node.operands[i]]) accumulate(node.operands[i], instance.gradient(static_cast<int>(i), node.results, cts));
    }
}

void Differentiation::visit_derived(const Node &node, const std::vector<ValueId> &cts) {
    for (size_t i = 0; i < node.operands.size(); i++) {
        if (active_[node.operands[i]]) accumulate(node.operands[i], transpose_operator(builder_, node, static_cast<int>(i), cts[0]));
    }
}

void Differentiation::visit_program(const Node &node, ValueId ct) {
    const Type type = program_.type(ct);
    Node call{"call", {ct}, node.attributes, {}, node.scope, Role::cotangent, node.location};
    const Program callee = callee_of(*find_call_kind("call"), {call, {type}, program_.symbols, builder_.rulebook()}, program_.programs);
    const bool fits = callee.results.size() == 1 && callee.type(callee.results[0].value) == type;
    if (!fits) throw UserError({node.location, node.op + ".program", "must return one value of type " + to_string(type), callee.name, ""});
    accumulate(node.operands[0], append_body(program_, callee, call)[0]);
}

void Differentiation::visit_regions(size_t index, const Node &node, const std::vector<ValueId> &cts) {
    std::vector<bool> active;
    for (const ValueId operand : node.operands) active.push_back(active_[operand]);
    const std::vector<ValueId> made = append_region_vjp(builder_, index, cts, active);
    for (size_t i = 0; i < made.size(); i++) accumulate(node.operands[i], made[i]);
}

/// Returns the sum of the contributions; -1 if there are none.
ValueId Differentiation::cotangent(ValueId value) {
    std::vector<ValueId> &parts = parts_[value];
    if (parts.empty()) return -1;
    ValueId sum = parts[0];
    for (size_t i = 1; i < parts.size(); i++) sum = builder_.add_one("add", {sum, parts[i]});
    parts = {sum};
    return sum;
}

void Differentiation::accumulate(ValueId value, ValueId ct) {
    if (ct < 0) return;
    const Type type = program_.type(value);
    parts_[value].push_back(builder_.broadcast(builder_.convert(ct, type.dtype), type.shape));
}

} // namespace

void refuse_gradient_of_constants(const Program &program, const std::vector<ValueId> &wrt, const Location &location) {
    for (const Argument &argument : program.arguments) {
        if (argument.supply != Supply::constant || std::ranges::find(wrt, argument.value) == wrt.end()) continue;
        throw UserError(statement(location,
                                  "cannot compute the gradient with respect to " +
                                      subject_of(program.name, program.value_name(argument.value)) + ": it is constant",
                                  "Declare it without 'constant' (in the DSL as Input or State)"));
    }
}

Vjp append_partial_vjp(Program &program, const Rulebook &rulebook, const std::vector<ValueId> &outputs,
                       const std::vector<ValueId> &cotangents, const std::vector<ValueId> &wrt) {
    return Differentiation(program, rulebook).run(outputs, cotangents, wrt);
}

std::vector<ValueId> append_vjp(Program &program, const Rulebook &rulebook, const std::vector<ValueId> &outputs,
                                const std::vector<ValueId> &cotangents, const std::vector<ValueId> &wrt) {
    refuse_gradient_of_constants(program, wrt);
    std::vector<ValueId> gradients = append_partial_vjp(program, rulebook, outputs, cotangents, wrt).gradients;
    Builder builder(rulebook, program);
    builder.set_role(Role::cotangent);
    for (size_t i = 0; i < wrt.size(); i++) {
        const Type type = program.type(wrt[i]);
        if (gradients[i] < 0) gradients[i] = builder.broadcast(builder.constant(0, type.dtype), type.shape);
    }
    return gradients;
}

std::vector<ValueId> append_gradient(Program &program, const Rulebook &rulebook, ValueId loss, const std::vector<ValueId> &wrt) {
    const Type &type = program.type(loss);
    if (!type.is_scalar() || !is_float(type.dtype)) {
        throw UserError({Location(), "grad.of", "the loss must be a float scalar", program.value_name(loss) + " of type " + to_string(type),
                         "Reduce it with reduce_sum or mean first"});
    }
    Builder builder(rulebook, program);
    builder.set_role(Role::cotangent);
    return append_vjp(program, rulebook, {loss}, {builder.constant(1, type.dtype)}, wrt);
}

} // namespace scalide
