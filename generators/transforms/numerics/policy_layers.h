#pragma once
#include "transforms/numerics/policy_roles.h"

namespace scalide {

/// What conditions of policies compare at a matmul or convolution.
struct LayerFacts {
    std::vector<std::string> layers; ///< of layer_words(); empty: neither the first nor the last
    std::vector<Extents> arrays;     ///< the shape of the weight; without a weight, the shapes of both operands
    Extents extents; ///< of a matmul: rows and columns of the weight; without a weight, of both operands. Products of several axes
    std::optional<Extent> contracted; ///< of a matmul: the number of terms of each sum
};

/// Finds the first and the last layer of a program, and the weight of each layer. Only the data flow decides, not names.
///
/// A *layer* is a contraction (PolicyRoles) of the forward pass together with the contractions of its gradient. A contraction belongs to
/// the forward pass if both operands depend on arguments and neither depends on a gradient.
/// - A layer is the first if no other layer comes before it on the way from the arguments.
/// - A layer is the last if no other layer comes after it on the way to the results.
/// A program can have several first and last layers, for example the three projections of an attention.
///
/// A contraction of a gradient combines a cotangent with an operand of its layer. Several layers may have that operand. Then the layer is
/// the one whose other operand is also combined with the cotangent, or whose other operand is combined with no cotangent.
class PolicyLayers {
public:
    PolicyLayers(const Program &program, const PolicyRoles &roles);

    /// Returns the facts about a contraction, or nullptr for another node.
    const LayerFacts *find(const Node &node) const;

private:
    struct Layer {
        ValueId operands[2];
        std::vector<std::string> words;
        bool has_weight;
    };
    using Layers = std::vector<const Layer *>;
    bool is_forward(const Node &node) const;
    void find_layers();
    void find_last();
    void find_cotangents();
    Layers layers_of(const Node &gradient) const;
    Layers chosen(const Layers &layers, ValueId operand, ValueId cotangent) const;
    LayerFacts facts(const Node &node) const;

    const Program &program_;
    const PolicyRoles &roles_;
    const std::vector<int> producers_;
    std::vector<bool> depends_;                       ///< by value: it depends on an argument
    std::vector<bool> from_gradient_;                 ///< by value: it depends on a node of a gradient
    std::map<int, Layer> layers_;                     ///< by node of the forward pass
    std::map<ValueId, Layers> by_operand_;            ///< by root
    std::map<ValueId, std::set<ValueId>> cotangents_; ///< by root of an operand: the roots of cotangents that are combined with it
    std::map<int, LayerFacts> facts_;                 ///< by node
};

} // namespace scalide
