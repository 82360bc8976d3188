#include "expr/base_operators.h"
#include "ir/regions.h"
#include "ir/rewrite.h"
#include "rulebook/builder.h"
#include "transforms/analysis/operators.h"
#include "transforms/analysis/passes.h"
#include "transforms/simplify/constant_folding.h"
#include "transforms/simplify/moved_arithmetic.h"
#include "transforms/simplify/movement_chains.h"
#include "transforms/simplify/narrow_choices.h"
#include "transforms/simplify/rewrite_rules.h"
#include "transforms/simplify/simplify_regions.h"
#include "transforms/simplify/trivial_sums.h"
#include "transforms/simplify/turned_products.h"
#include <algorithm>

namespace scalide {

namespace {

/// True for conversions to low precision. They are not folded, nor computed in rank 0 before a broadcast; only their readers are.
bool narrows(const Node &node, const Type &type) { return node.op == "convert_element_type" && is_narrow(type.dtype); }

/// True for reductions, matmuls and similar nodes whose results have no elements. They are replaced, so that no kernel has to handle them.
bool makes_nothing(const Node &node, const std::vector<Value> &results) {
    constexpr Shape walks[] = {Shape::reduce, Shape::scan, Shape::sort, Shape::scatter, Shape::contract, Shape::window};
    const BaseOperator *op = find_base_operator(node.op);
    return op != nullptr && std::ranges::find(walks, op->shape) != std::end(walks) &&
           std::ranges::all_of(results, [](const Value &result) { return element_count(result.type.shape) == Extent(0); });
}

/// Builds the simplified program node by node. A node is simplified when it is added; its operands are simplified already.
class Simplifier {
public:
    Simplifier(const Program &source, const Rulebook &rulebook) : rewriter_(source), rulebook_(rulebook), facts_(rewriter_.result()) {}

    Program run();

private:
    std::vector<ValueId> place(Node node, const std::vector<Value> &results);
    std::vector<ValueId> place_once(Node node, const std::vector<Value> &results);
    std::vector<ValueId> append(Node node, const std::vector<Value> &results);
    std::optional<ValueId> simpler(const Node &node, const Type &type);
    std::optional<ValueId> fold(const Node &node, const Type &type);
    bool is_moved_rounding(ValueId value);
    std::optional<ValueId> hoist(const Node &node, const Type &type);
    std::optional<ValueId> rewrite(const Node &node, const Type &type);

    ValueId emit(const std::string &op, const std::vector<ValueId> &operands, const Attributes &attributes);
    ValueId replacement(const Expression &expression, const Bindings &bound, const Type &type);
    ValueId splat(double value, const Type &type);
    ValueId spread(ValueId scalar, const Extents &shape);

    Rewriter rewriter_;
    const Rulebook &rulebook_;
    Facts facts_;
    const Node *at_ = nullptr; ///< the source node in progress: new nodes get its scope, role and location
    std::map<std::string, std::vector<ValueId>> placed_;
    const Emit emit_ = [this](const std::string &op, const std::vector<ValueId> &operands, const Attributes &attributes) {
        return emit(op, operands, attributes);
    };
};

Program Simplifier::run() {
    rewriter_.copy_arguments();
    for (const Node &node : rewriter_.source().nodes) {
        at_ = &node;
        Node fresh = node;
        fresh.operands = rewriter_(node.operands);
        std::vector<Value> made;
        for (const ValueId result : node.results) made.push_back(rewriter_.source().values[result]);
        const std::vector<ValueId> results = place(std::move(fresh), made);
        for (size_t i = 0; i < results.size(); i++) rewriter_.map(node.results[i], results[i]);
    }
    rewriter_.copy_results();
    return remove_dead_nodes(rewriter_.take());
}

std::vector<ValueId> Simplifier::place(Node node, const std::vector<Value> &results) {
    if (!node.regions.empty()) return append(std::move(node), results);
    if (makes_nothing(node, results)) {
        std::vector<ValueId> none;
        for (const Value &result : results) none.push_back(splat(0, result.type));
        return none;
    }
    if (results.size() == 1) {
        if (const auto value = simpler(node, results[0].type)) return {*value};
    }
    return place_once(std::move(node), results);
}

/// Adds equal sub-expressions once. Roles and scopes do not distinguish values: a value that a gradient computes again without reading a
/// cotangent equals the primal value.
std::vector<ValueId> Simplifier::place_once(Node node, const std::vector<Value> &results) {
    std::string key = node.op + to_string(node.attributes);
    for (const ValueId operand : node.operands) key += " " + std::to_string(operand);
    for (const Value &result : results) key += " " + to_string(result.type);
    const auto found = placed_.find(key);
    return found != placed_.end() ? found->second : placed_[key] = append(std::move(node), results);
}

std::vector<ValueId> Simplifier::append(Node node, const std::vector<Value> &results) {
    node.results.clear();
    for (const Value &result : results) node.results.push_back(add_value(rewriter_.result(), result.name, result.type, result.part));
    rewriter_.result().nodes.push_back(std::move(node));
    return rewriter_.result().nodes.back().results;
}

std::optional<ValueId> Simplifier::simpler(const Node &node, const Type &type) {
    if (const auto value = fold(node, type)) return value;
    if (const auto value = hoist(node, type)) return value;
    if (const auto value = merge_movement({node, type, facts_, emit_})) return value;
    if (const auto value = move_later({node, type, facts_, emit_})) return value;
    if (const auto value = choose_in_f32({node, type, facts_, emit_})) return value;
    if (const auto value = update_in_format({node, type, facts_, emit_})) return value;
    if (const auto value = round_windows({node, type, facts_, emit_})) return value;
    return rewrite(node, type);
}

std::optional<ValueId> Simplifier::fold(const Node &node, const Type &type) {
    // A form for values of symbols has numbers in extents that had symbols before.
    if (node.op == "size" && node.attributes.at("extent").integer.is_static())
        return splat(static_cast<double>(node.attributes.at("extent").integer.value()), type);
    const bool is_folded = node.op == "broadcast_in_dim" && facts_.scalar_source(node.operands[0]) == node.operands[0];
    if (node.operands.empty() || is_folded || narrows(node, type)) return {};
    std::vector<double> operands;
    for (const ValueId operand : node.operands) {
        const auto number = facts_.splat(operand);
        if (!number || (is_narrow(type.dtype) && is_moved_rounding(operand))) return {};
        operands.push_back(*number);
    }
    const auto value = fold_constants(facts_.program(), node, type, operands);
    return value ? std::optional(splat(*value, type)) : std::nullopt;
}

/// True for the result of a conversion to low precision, also if it was moved. Kernels make no constants of such dtypes.
bool Simplifier::is_moved_rounding(ValueId value) {
    const Node *node = facts_.producer(value);
    while (node != nullptr && moves_one_array(*node)) node = facts_.producer(node->operands[0]);
    return node != nullptr && narrows(*node, facts_.program().type(node->results[0]));
}

/// Computes elementwise operators on broadcast scalars once, in rank 0.
std::optional<ValueId> Simplifier::hoist(const Node &node, const Type &type) {
    const BaseOperator *op = find_base_operator(node.op);
    if (op == nullptr || op->shape != Shape::elementwise || type.is_scalar() || narrows(node, type)) return {};
    std::vector<ValueId> scalars;
    for (const ValueId operand : node.operands) {
        scalars.push_back(facts_.scalar_source(operand));
        if (scalars.back() < 0) return {};
    }
    Node fresh = node;
    fresh.operands = scalars;
    return spread(place(std::move(fresh), {{node.op, {type.dtype, {}}}})[0], type.shape);
}

std::optional<ValueId> Simplifier::rewrite(const Node &node, const Type &type) {
    for (const RewriteRule &rule : rewrite_rules()) {
        const auto bound = match(rule.pattern, node, facts_);
        if (bound && rule.holds(facts_, *bound)) return replacement(rule.replacement, *bound, type);
    }
    return {};
}

ValueId Simplifier::emit(const std::string &op, const std::vector<ValueId> &operands, const Attributes &attributes) {
    Node node{op, operands, attributes, {}, at_->scope, at_->role, at_->location};
    std::vector<Type> types;
    for (const ValueId operand : operands) types.push_back(facts_.program().type(operand));
    types = infer_result_types(rulebook_.rule(op, at_->location), types, node.attributes, at_->location);
    return place(std::move(node), {{op, types[0]}})[0];
}

/// Numbers in a replacement have the type of the replaced value.
ValueId Simplifier::replacement(const Expression &expression, const Bindings &bound, const Type &type) {
    if (expression->kind == ExpressionNode::Kind::name) return bound.at(expression->text);
    if (expression->kind == ExpressionNode::Kind::number) return splat(expression->number, type);
    std::vector<ValueId> operands;
    for (const Expression &operand : expression->operands) operands.push_back(replacement(operand, bound, type));
    return emit(expression->text, operands, {});
}

ValueId Simplifier::splat(double value, const Type &type) {
    return spread(emit("constant", {}, constant_attributes(value, type.dtype)), type.shape);
}

ValueId Simplifier::spread(ValueId scalar, const Extents &shape) {
    return shape.empty() ? scalar : emit("broadcast_in_dim", {scalar}, broadcast_attributes(shape, {}));
}

} // namespace

Program simplify(const Program &program, const Rulebook &rulebook) {
    Program made = simplify_regions(program, rulebook);
    for (Node &node : made.nodes) rewrite_regions(node, made, [&](const Program &region) { return simplify(region, rulebook); });
    made = simplify_regions(std::move(made), rulebook);
    return Simplifier(remove_trivial_sums(turn_products(made), rulebook), rulebook).run();
}

} // namespace scalide
