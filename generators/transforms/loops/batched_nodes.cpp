#include "transforms/loops/batched_nodes.h"
#include "expr/base_operators.h"
#include "transforms/analysis/operators.h"
#include <algorithm>
#include <map>

namespace scalide {

namespace {

std::vector<int64_t> with_steps(std::vector<int64_t> axes) {
    axes = after_steps(std::move(axes));
    axes.insert(axes.begin(), 0);
    return axes;
}

Extents with_length(Extents shape, const Extent &length) {
    shape.insert(shape.begin(), length);
    return shape;
}

/// Attributes of movement of one operand that varies.
using Move = Attributes (*)(const Node &node, const Extents &result, const Extent &length);

const std::map<std::string_view, Move> &moves() {
    static const std::map<std::string_view, Move> table{
        {"broadcast_in_dim",
         [](const Node &node, const Extents &result, const Extent &length) {
             return broadcast_attributes(with_length(result, length), with_steps(broadcast_axes(node)));
         }},
        {"reshape",
         [](const Node &, const Extents &result, const Extent &length) { return reshape_attributes(with_length(result, length)); }},
        {"transpose",
         [](const Node &node, const Extents &, const Extent &) { return transpose_attributes(with_steps(permutation(node))); }},
        {"rev",
         [](const Node &node, const Extents &, const Extent &) {
             return Attributes{{"dimensions", to_attribute(after_steps(reversed_axes(node)))}};
         }},
        {"slice",
         [](const Node &node, const Extents &, const Extent &length) {
             SliceBounds bounds = slice_bounds(node);
             bounds.strides.insert(bounds.strides.begin(), 1);
             return slice_attributes({with_length(bounds.start, 0), with_length(bounds.limit, length), bounds.strides});
         }},
    };
    return table;
}

bool is_elementwise(const Rulebook &rulebook, const Program &body, const Node &node) {
    const BaseOperator *base = find_base_operator(node.op);
    const Rule *rule = rulebook.find(node.op);
    if (base != nullptr ? base->shape != Shape::elementwise : rule == nullptr || rule->family != "elementwise") return false;
    const Extents &shape = body.type(node.results[0]).shape;
    return std::ranges::all_of(node.operands, [&](ValueId operand) {
        const Type &type = body.type(operand);
        return type.is_scalar() || type.shape == shape;
    });
}

bool folds_axes(const Node &node) {
    const BaseOperator *base = find_base_operator(node.op);
    return base != nullptr && base->shape == Shape::reduce && !base->gives_place && node.attributes.contains("axes");
}

/// Broadcasts an operand to the shape that all operands of an elementwise or joining operator have.
ValueId spread(Builder &builder, const StepsValue &operand, const Extents &own, const Extents &all) {
    if (operand.varies && own.size() + 1 == all.size()) return operand.value;
    std::vector<int64_t> axes = own.empty() ? std::vector<int64_t>{} : after_steps(count_up(std::ssize(own)));
    if (operand.varies) axes.insert(axes.begin(), 0);
    return builder.add_one("broadcast_in_dim", {operand.value}, broadcast_attributes(all, axes));
}

Attributes with_axes(const Node &dot, const DotAxes &axes) {
    Attributes attributes = dot.attributes;
    for (auto &[name, value] : dot_attributes(axes, Dtype::f32))
        if (name != "preferred") attributes[name] = value;
    return attributes;
}

/// The result of a dot_general has the free axes of lhs before those of rhs. If only rhs varies, the operands are exchanged, so that the
/// steps come first.
ValueId add_product(Builder &builder, const Program &body, const Node &dot, const std::vector<StepsValue> &operands) {
    const StepsValue &lhs = operands[0], &rhs = operands[1];
    DotAxes axes = dot_axes(dot);
    const int64_t of_rhs = body.type(dot.operands[1]).rank() - std::ssize(axes.rhs_contract) - std::ssize(axes.rhs_batch);
    if (lhs.varies) axes.lhs_contract = after_steps(axes.lhs_contract);
    if (rhs.varies) axes.rhs_contract = after_steps(axes.rhs_contract);
    if (lhs.varies && rhs.varies) {
        axes.lhs_batch = with_steps(axes.lhs_batch);
        axes.rhs_batch = with_steps(axes.rhs_batch);
    }
    if (lhs.varies) return builder.add_one("dot_general", {lhs.value, rhs.value}, with_axes(dot, axes));
    std::swap(axes.lhs_contract, axes.rhs_contract);
    const ValueId exchanged = builder.add_one("dot_general", {rhs.value, lhs.value}, with_axes(dot, axes));
    std::vector<int64_t> order = count_up(builder.type(exchanged).rank());
    std::rotate(order.begin() + 1, order.begin() + 1 + of_rhs, order.end());
    return std::ranges::is_sorted(order) ? exchanged : builder.add_one("transpose", {exchanged}, transpose_attributes(order));
}

} // namespace

std::vector<int64_t> after_steps(std::vector<int64_t> axes) {
    for (int64_t &axis : axes) axis++;
    return axes;
}

bool can_batch(const Rulebook &rulebook, const Program &body, const Node &node, const std::vector<bool> &varies) {
    if (node.results.size() != 1 || !node.regions.empty()) return false;
    if (node.op == "dot_general") return dot_axes(node).lhs_batch.empty() || (varies[0] && varies[1]);
    return moves().contains(node.op) || node.op == "concatenate" || folds_axes(node) || is_elementwise(rulebook, body, node);
}

ValueId add_batched(Builder &builder, const Program &body, const Node &node, const Extent &length, std::vector<StepsValue> operands) {
    builder.stamp_like(node);
    const Extents &shape = body.type(node.results[0]).shape;
    if (node.op == "dot_general") return add_product(builder, body, node, operands);
    if (const auto move = moves().find(node.op); move != moves().end())
        return builder.add_one(node.op, {operands[0].value}, move->second(node, shape, length));
    Attributes attributes = node.attributes;
    if (folds_axes(node)) {
        attributes["axes"] = to_attribute(after_steps(to_integers(attributes.at("axes"))));
        return builder.add_one(node.op, {operands[0].value}, attributes);
    }
    const bool joins = node.op == "concatenate";
    if (joins) attributes["dimension"] = attributes.at("dimension").integer.value() + 1;
    std::vector<ValueId> spreads;
    for (size_t i = 0; i < operands.size(); i++) {
        const Extents &own = body.type(node.operands[i]).shape;
        spreads.push_back(spread(builder, operands[i], own, with_length(joins ? own : shape, length)));
    }
    return builder.add_one(node.op, spreads, attributes);
}

ValueId add_sum_of_products(Builder &builder, const Node &dot, Dtype preferred, ValueId lhs, ValueId rhs) {
    builder.stamp_like(dot);
    DotAxes axes = dot_axes(dot);
    axes = {with_steps(axes.lhs_contract), with_steps(axes.rhs_contract), after_steps(axes.lhs_batch), after_steps(axes.rhs_batch)};
    Attributes attributes = with_axes(dot, axes);
    attributes["preferred"] = std::string(to_string(preferred));
    return builder.add_one("dot_general", {lhs, rhs}, attributes);
}

} // namespace scalide
