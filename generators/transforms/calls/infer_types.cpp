#include "expr/base_operators.h"
#include "ir/regions.h"
#include "ir/rewrite.h"
#include "ir/text.h"
#include "ir/words.h"
#include "transforms/analysis/operators.h"
#include "transforms/analysis/passes.h"
#include "transforms/calls/calls.h"
#include <algorithm>
#include <cmath>

namespace scalide {

namespace {

/// Infers the types of one program. Its sub-programs and the sub-programs before it already have types.
class Typing {
public:
    Typing(const Program &source, const std::vector<Program> &callees, const Rulebook &rulebook)
        : rewriter_(source), callees_(callees), builder_(rulebook, rewriter_.result()) {}

    Program run();

private:
    void place(const Node &node);
    void place_call(const Node &node, const CallKind &kind);
    void place_regions(const Node &node);
    std::vector<ValueId> adapted_to_regions(const Node &node);
    void add(const Node &node, std::vector<ValueId> operands, Attributes attributes, const std::vector<Type> &types);
    void complete_constant(const Node &node, Attributes &attributes) const;
    std::vector<Type> types_of(const std::vector<ValueId> &values) const;
    std::vector<std::string> names_of(const std::vector<ValueId> &values);
    void check_declared(const Node &node, const std::vector<Type> &types) const;
    void adapt_constants(const Rule &rule, std::vector<ValueId> &operands);
    void broadcast_scalars(const std::string &op, std::vector<ValueId> &operands);
    std::optional<Dtype> dtype_of_letter(const Rule &rule, const std::vector<ValueId> &operands, const std::string &letter) const;
    const Node *weak_constant(ValueId value) const;

    Rewriter rewriter_;
    const std::vector<Program> &callees_;
    Builder builder_;
    std::map<ValueId, Node> constants_; ///< rank-0 constants of the result, by value
};

/// The operand spec for operand number `i`. A variadic operand covers all that follow.
const OperandSpec &spec_of(const Rule &rule, size_t i) { return rule.operands[std::min(i, rule.operands.size() - 1)]; }

Program Typing::run() {
    rewriter_.copy_arguments();
    for (const Node &node : rewriter_.source().nodes) place(node);
    rewriter_.copy_results();
    return rewriter_.take();
}

void Typing::place(const Node &node) {
    builder_.stamp_like(node);
    if (const CallKind *kind = find_call_kind(node.op)) return place_call(node, *kind);
    if (find_region_kind(node.op) != nullptr) return place_regions(node);
    const Rule &rule = builder_.rulebook().rule(node.op, node.location);
    std::vector<ValueId> operands = rewriter_(node.operands);
    if (!rule.operands.empty()) adapt_constants(rule, operands);
    if (rule.family == "elementwise") broadcast_scalars(node.op, operands);
    const std::vector<std::string> names = names_of(operands);
    operands = builder_.narrowed(rule, std::move(operands));
    Attributes attributes = node.attributes;
    if (node.op == "constant") complete_constant(node, attributes);
    const std::vector<Type> types = infer_result_types(rule, types_of(operands), attributes, node.location, names);
    add(node, std::move(operands), std::move(attributes), types);
}

/// Completes a constant: a number in the text gets the dtype that the parser chose. A whole number becomes a float number if the dtype is a
/// float.
void Typing::complete_constant(const Node &node, Attributes &attributes) const {
    const Type &type = rewriter_.source().type(node.results[0]);
    if (!is_unknown(type)) attributes.try_emplace("dtype", std::string(to_string(type.dtype)));
    const auto value = attributes.find("value"), dtype = attributes.find("dtype");
    const bool is_number = value != attributes.end() && value->second.kind == Attribute::Kind::integer && value->second.integer.is_static();
    const bool is_whole = dtype != attributes.end() && !is_float(parse_dtype(dtype->second.word).value_or(Dtype::f32));
    if (is_number && !is_whole) attributes["value"] = to_number(value->second);
}

void Typing::place_call(const Node &node, const CallKind &kind) {
    const std::vector<ValueId> operands = rewriter_(node.operands);
    const Program callee = callee_of(kind, {node, types_of(operands), rewriter_.source().symbols, builder_.rulebook()}, callees_);
    add(node, operands, node.attributes, kind.result_types(node, callee));
}

void Typing::place_regions(const Node &node) {
    Node fresh = node;
    rewrite_regions(fresh, rewriter_.source(), [&](const Program &region) { return Typing(region, callees_, builder_.rulebook()).run(); });
    fresh.operands = adapted_to_regions(fresh);
    add(fresh, fresh.operands, fresh.attributes, region_result_types(rewriter_.result(), fresh));
}

/// Gives a number in the text the type of the argument that takes it.
std::vector<ValueId> Typing::adapted_to_regions(const Node &node) {
    std::vector<ValueId> operands = rewriter_(node.operands);
    if (node.regions.empty()) return operands;
    const Program &body = *node.regions.back();
    const std::vector<int> places = LoopView(node).operands;
    for (size_t i = 0; i < places.size(); i++) {
        const Argument &argument = body.arguments[i];
        if (argument.supply != Supply::run || places[i] >= static_cast<int>(operands.size())) continue;
        ValueId &operand = operands[static_cast<size_t>(places[i])];
        const Type &type = body.type(argument.value);
        if (const Node *constant = weak_constant(operand))
            operand = builder_.broadcast(builder_.constant(to_number(constant->attributes.at("value")), type.dtype), type.shape);
    }
    return operands;
}

void Typing::add(const Node &node, std::vector<ValueId> operands, Attributes attributes, const std::vector<Type> &types) {
    check_declared(node, types);
    Node fresh = node;
    fresh.operands = std::move(operands);
    fresh.attributes = std::move(attributes);
    fresh.results.clear();
    for (size_t i = 0; i < types.size(); i++) {
        const Value &source = rewriter_.source().values[node.results[i]];
        fresh.results.push_back(add_value(rewriter_.result(), source.name, types[i], source.part));
        rewriter_.map(node.results[i], fresh.results[i]);
    }
    if (fresh.op == "constant") constants_[fresh.results[0]] = fresh;
    rewriter_.result().nodes.push_back(std::move(fresh));
}

std::vector<Type> Typing::types_of(const std::vector<ValueId> &values) const {
    std::vector<Type> types;
    for (const ValueId value : values) types.push_back(builder_.type(value));
    return types;
}

std::vector<std::string> Typing::names_of(const std::vector<ValueId> &values) {
    std::vector<std::string> names;
    for (const ValueId value : values) names.push_back(rewriter_.result().value_name(value));
    return names;
}

void Typing::check_declared(const Node &node, const std::vector<Type> &types) const {
    const Program &source = rewriter_.source();
    const std::string count = std::to_string(types.size());
    if (types.size() != node.results.size()) {
        throw UserError(
            {node.location, node.op + ".results", "the number of results must be " + count, std::to_string(node.results.size()), ""});
    }
    for (size_t i = 0; i < types.size(); i++) {
        const Value &declared = source.values[node.results[i]];
        if (is_unknown(declared.type) || declared.type == types[i]) continue;
        throw UserError({node.location, subject_of(node.op, declared.name),
                         "must have the type that follows from the operands, " + to_string(types[i]), to_string(declared.type),
                         "Remove the type, or convert the value with convert_element_type"});
    }
}

/// A number in the text gets the dtype of the operands with the same dtype letter.
void Typing::adapt_constants(const Rule &rule, std::vector<ValueId> &operands) {
    for (size_t i = 0; i < operands.size(); i++) {
        const Node *constant = weak_constant(operands[i]);
        const std::string &letter = spec_of(rule, i).letter;
        if (constant == nullptr || letter.empty()) continue;
        const auto dtype = dtype_of_letter(rule, operands, letter);
        const double value = to_number(constant->attributes.at("value"));
        const bool differs = dtype && *dtype != Dtype::f32;
        if (differs && (is_float(*dtype) || value == std::trunc(value))) operands[i] = builder_.constant(value, *dtype);
    }
}

std::optional<Dtype> Typing::dtype_of_letter(const Rule &rule, const std::vector<ValueId> &operands, const std::string &letter) const {
    for (size_t i = 0; i < operands.size(); i++) {
        if (spec_of(rule, i).letter == letter && weak_constant(operands[i]) == nullptr) return builder_.type(operands[i]).dtype;
    }
    return {};
}

const Node *Typing::weak_constant(ValueId value) const {
    const auto found = constants_.find(value);
    return found != constants_.end() && builder_.type(value).dtype == Dtype::f32 ? &found->second : nullptr;
}

/// Broadcasts rank-0 operands. A rank-0 `which` of select_n stays, because it selects for all elements.
void Typing::broadcast_scalars(const std::string &op, std::vector<ValueId> &operands) {
    const BaseOperator *base = find_base_operator(op);
    const bool is_single = base && base->arity < 0 && !operands.empty() && builder_.type(operands[0]).is_scalar();
    Extents shape;
    for (const ValueId operand : operands) {
        if (builder_.type(operand).rank() > static_cast<int>(shape.size())) shape = builder_.type(operand).shape;
    }
    for (size_t i = is_single; i < operands.size(); i++) {
        if (builder_.type(operands[i]).is_scalar()) operands[i] = builder_.broadcast(operands[i], shape);
    }
}

} // namespace

Program infer_types(const Program &program, const Rulebook &rulebook) {
    std::vector<Program> callees;
    for (const Program &callee : program.programs) callees.push_back(Typing(callee, callees, rulebook).run());
    Program typed = Typing(program, callees, rulebook).run();
    typed.programs = std::move(callees);
    return typed;
}

} // namespace scalide
