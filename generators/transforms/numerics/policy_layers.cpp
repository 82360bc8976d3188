#include "transforms/numerics/policy_layers.h"
#include "rulebook/policy.h"
#include "transforms/analysis/operators.h"
#include <algorithm>

namespace scalide {

namespace {

Extent extent_of(const Extents &shape, const std::vector<int64_t> &axes) {
    Extents extents;
    for (const int64_t axis : axes) extents.push_back(shape[axis]);
    return element_count(extents);
}

/// The extents of a matmul in which each group of axes is one axis.
struct MatrixExtents {
    Extent rows, contracted, columns;
};

MatrixExtents matrix_extents(const Node &dot, const Extents &lhs, const Extents &rhs) {
    const DotAxes axes = dot_axes(dot);
    const auto rank = [](const Extents &shape) { return static_cast<int64_t>(shape.size()); };
    return {extent_of(lhs, other_axes(rank(lhs), axes.lhs_contract, axes.lhs_batch)), extent_of(lhs, axes.lhs_contract),
            extent_of(rhs, other_axes(rank(rhs), axes.rhs_contract, axes.rhs_batch))};
}

} // namespace

PolicyLayers::PolicyLayers(const Program &program, const PolicyRoles &roles)
    : program_(program), roles_(roles), producers_(producers(program)), depends_(program.values.size()),
      from_gradient_(program.values.size()) {
    for (const Argument &argument : program.arguments) depends_[argument.value] = true;
    find_layers();
    find_last();
    find_cotangents();
    for (size_t i = 0; i < program.nodes.size(); i++)
        if (roles.is_contraction(program.nodes[i])) facts_.emplace(static_cast<int>(i), facts(program.nodes[i]));
}

const LayerFacts *PolicyLayers::find(const Node &node) const {
    const auto found = facts_.find(producers_[node.results[0]]);
    return found == facts_.end() ? nullptr : &found->second;
}

bool PolicyLayers::is_forward(const Node &node) const {
    return roles_.is_contraction(node) && !from_gradient_[node.results[0]] && depends_[node.operands[0]] && depends_[node.operands[1]];
}

void PolicyLayers::find_layers() {
    std::vector<bool> follows(program_.values.size()); // by value: a layer comes before it
    for (size_t i = 0; i < program_.nodes.size(); i++) {
        const Node &node = program_.nodes[i];
        const auto any_operand = [&](const std::vector<bool> &flags) {
            return std::ranges::any_of(node.operands, [&](ValueId operand) { return flags[operand]; });
        };
        for (const ValueId result : node.results) {
            depends_[result] = any_operand(depends_);
            from_gradient_[result] = node.role == Role::cotangent || any_operand(from_gradient_);
        }
        const bool is_layer = is_forward(node), is_first = !any_operand(follows);
        for (const ValueId result : node.results) follows[result] = is_layer || !is_first;
        if (!is_layer) continue;
        Layer layer{{roles_.root(node.operands[0]), roles_.root(node.operands[1])},
                    {},
                    roles_.is_weight(node.operands[0]) || roles_.is_weight(node.operands[1])};
        if (is_first) layer.words.push_back(layer_words()[0]);
        layers_.emplace(static_cast<int>(i), std::move(layer));
    }
    for (const auto &[node, layer] : layers_)
        for (const ValueId operand : std::set<ValueId>{layer.operands[0], layer.operands[1]}) by_operand_[operand].push_back(&layer);
}

void PolicyLayers::find_last() {
    std::vector<bool> leads(program_.values.size()); // by value: a layer comes after it
    for (size_t i = program_.nodes.size(); i-- > 0;) {
        const Node &node = program_.nodes[i];
        if (from_gradient_[node.results[0]]) continue;
        const auto layer = layers_.find(static_cast<int>(i));
        const bool is_last = std::ranges::none_of(node.results, [&](ValueId result) { return leads[result]; });
        if (layer != layers_.end() && is_last) layer->second.words.push_back(layer_words()[1]);
        if (layer != layers_.end() || !is_last)
            for (const ValueId operand : node.operands) leads[operand] = true;
    }
}

void PolicyLayers::find_cotangents() {
    for (const Node &node : program_.nodes) {
        if (!roles_.is_contraction(node)) continue;
        const ValueId lhs = node.operands[0], rhs = node.operands[1];
        if (from_gradient_[rhs]) cotangents_[roles_.root(lhs)].insert(roles_.root(rhs));
        if (from_gradient_[lhs]) cotangents_[roles_.root(rhs)].insert(roles_.root(lhs));
    }
}

/// Returns the layers with this operand to whose gradient the cotangent belongs.
PolicyLayers::Layers PolicyLayers::chosen(const Layers &layers, ValueId operand, ValueId cotangent) const {
    Layers confirmed, alone;
    for (const Layer *layer : layers) {
        const ValueId other = layer->operands[layer->operands[0] == operand ? 1 : 0];
        const auto cotangents = cotangents_.find(other);
        if (cotangents == cotangents_.end()) {
            alone.push_back(layer);
        } else if (cotangents->second.contains(cotangent)) {
            confirmed.push_back(layer);
        }
    }
    if (!confirmed.empty()) return confirmed;
    return alone.empty() ? layers : alone;
}

PolicyLayers::Layers PolicyLayers::layers_of(const Node &gradient) const {
    Layers layers;
    for (size_t i = 0; i < 2; i++) {
        const ValueId operand = roles_.root(gradient.operands[i]), cotangent = gradient.operands[1 - i];
        const auto found = by_operand_.find(operand);
        if (found == by_operand_.end() || !from_gradient_[cotangent]) continue;
        const Layers its = chosen(found->second, operand, roles_.root(cotangent));
        layers.insert(layers.end(), its.begin(), its.end());
    }
    return layers;
}

LayerFacts PolicyLayers::facts(const Node &node) const {
    LayerFacts facts;
    const int index = producers_[node.results[0]];
    const Layers layers = layers_.contains(index) ? Layers{&layers_.at(index)} : layers_of(node);
    for (const std::string &word : layer_words())
        if (std::ranges::any_of(layers, [&](const Layer *layer) { return std::ranges::count(layer->words, word) > 0; }))
            facts.layers.push_back(word);
    const Extents &lhs = program_.type(node.operands[0]).shape, &rhs = program_.type(node.operands[1]).shape;
    const bool weights[2] = {roles_.is_weight(node.operands[0]), roles_.is_weight(node.operands[1])};
    const bool makes_weight = !weights[0] && !weights[1] && std::ranges::any_of(layers, &Layer::has_weight);
    const bool has_weight = weights[0] || weights[1] || makes_weight;
    if (makes_weight) facts.arrays = {program_.type(node.results[0]).shape};
    if (weights[0] || !has_weight) facts.arrays.push_back(lhs);
    if (weights[1] || !has_weight) facts.arrays.push_back(rhs);
    if (node.op != "dot_general") return facts;
    const auto [rows, contracted, columns] = matrix_extents(node, lhs, rhs);
    facts.contracted = contracted;
    if (!weights[1] || weights[0]) facts.extents.push_back(rows);
    if (!makes_weight) facts.extents.push_back(contracted);
    if (!weights[0] || weights[1]) facts.extents.push_back(columns);
    return facts;
}

} // namespace scalide
