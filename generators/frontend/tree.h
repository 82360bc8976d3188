#pragma once
#include "frontend/tensor.h"
#include <array>
#include <map>
#include <numeric>

/// Trees of tensors: a tensor, or a vector, array or map by name of trees; parameters of a model, say. The functions of Scalify on whole
/// trees, and what its `tree` module has; a scaled array is one leaf.
namespace scalide::tree {

inline Tensor map(const auto &function, const Tensor &leaf) { return function(leaf); }

template<typename T>
std::vector<T> map(const auto &function, const std::vector<T> &tree);
template<typename T, size_t n>
std::array<T, n> map(const auto &function, const std::array<T, n> &tree);
/// The tree with function(leaf) in the place of each leaf. Maps are walked in the order of their names.
template<typename T>
std::map<std::string, T> map(const auto &function, const std::map<std::string, T> &tree);

template<typename T>
std::vector<T> map(const auto &function, const std::vector<T> &tree) {
    std::vector<T> result;
    for (const T &part : tree) result.push_back(tree::map(function, part));
    return result;
}

template<typename T, size_t n>
std::array<T, n> map(const auto &function, const std::array<T, n> &tree) {
    std::array<T, n> result;
    for (size_t i = 0; i < n; i++) result[i] = tree::map(function, tree[i]);
    return result;
}

template<typename T>
std::map<std::string, T> map(const auto &function, const std::map<std::string, T> &tree) {
    std::map<std::string, T> result;
    for (const auto &[name, part] : tree) result[name] = tree::map(function, part);
    return result;
}

/// The leaves in the order in which map() meets them.
std::vector<Tensor> leaves(const auto &tree) {
    std::vector<Tensor> found;
    map([&](const Tensor &leaf) { return found.emplace_back(leaf); }, tree);
    return found;
}

/// A tree like `tree` with other leaves. Throws UserError when their number differs.
template<typename Tree>
Tree unflatten(const Tree &tree, const std::vector<Tensor> &leaves) {
    const size_t wanted = tree::leaves(tree).size();
    if (leaves.size() != wanted)
        throw UserError({{},
                         "tree.unflatten",
                         "the number of tensors must be the number of leaves, " + std::to_string(wanted),
                         std::to_string(leaves.size()),
                         ""});
    size_t next = 0;
    return tree::map([&](const Tensor &) { return leaves[next++]; }, tree);
}

/// Any operator of one operand and result on every float leaf; other leaves stay. `further`: operands after the first.
template<typename Tree>
Tree apply(const std::string &op, const Tree &tree, const std::vector<Operand> &further = {}, const Attributes &attributes = {}) {
    return tree::map(
        [&](const Tensor &leaf) {
            if (!is_float(leaf.dtype())) return leaf;
            std::vector<Operand> operands{leaf};
            operands.insert(operands.end(), further.begin(), further.end());
            return scalide::apply(op, operands, attributes);
        },
        tree);
}

/// Rank-0 bool: true when all elements of all leaves, bools, are.
Tensor all(const auto &tree) {
    Tensor result = scalide::apply("full", {}, {{"shape", to_attribute(Extents())}, {"fill_value", 1.0}, {"dtype", std::string("bool")}});
    for (const Tensor &leaf : leaves(tree)) {
        std::vector<int64_t> axes(leaf.rank());
        std::iota(axes.begin(), axes.end(), 0);
        result = scalide::apply("and", {result, scalide::apply("reduce_and", {leaf}, {{"axes", to_attribute(axes)}})});
    }
    return result;
}

/// Float leaves in another dtype.
template<typename Tree>
Tree astype(const Tree &tree, Dtype dtype) {
    return tree::apply("convert_element_type", tree, {}, {{"dtype", std::string(to_string(dtype))}});
}

/// Float leaves stored with this scale.
template<typename Tree>
Tree set_scaling(const Tree &tree, const Operand &scale) {
    return tree::apply("set_scaling", tree, {scale});
}
/// Float leaves as plain arrays.
template<typename Tree>
Tree stop_scaling(const Tree &tree) {
    return tree::apply("stop_scaling", tree);
}
/// `factor` moved from data to scale.
template<typename Tree>
Tree rebalance(const Tree &tree, const Operand &factor) {
    return tree::apply("rebalance", tree, {factor});
}
/// Each float leaf rescaled by its own norm: max, l1 or l2.
template<typename Tree>
Tree dynamic_rescale(const Tree &tree, const std::string &norm, double to = 1) {
    return tree::apply("dynamic_rescale", tree, {}, {{"norm", norm}, {"to", to}});
}
/// The same of the cotangents of the leaves.
template<typename Tree>
Tree dynamic_rescale_grad(const Tree &tree, const std::string &norm, double to = 1) {
    return tree::apply("dynamic_rescale_grad", tree, {}, {{"norm", norm}, {"to", to}});
}
/// Float leaves rounded through a dtype on the forward pass, or their cotangents on the way back.
template<typename Tree>
Tree cast_on_forward(const Tree &tree, Dtype dtype) {
    return tree::apply("cast_on_forward", tree, {}, {{"dtype", std::string(to_string(dtype))}});
}
template<typename Tree>
Tree cast_on_backward(const Tree &tree, Dtype dtype) {
    return tree::apply("cast_on_backward", tree, {}, {{"dtype", std::string(to_string(dtype))}});
}
/// The same by exponent and mantissa bits.
template<typename Tree>
Tree reduce_precision_on_forward(const Tree &tree, int64_t exponent_bits, int64_t mantissa_bits) {
    return tree::apply("reduce_precision_on_forward", tree, {}, {{"exponent_bits", exponent_bits}, {"mantissa_bits", mantissa_bits}});
}
template<typename Tree>
Tree reduce_precision_on_backward(const Tree &tree, int64_t exponent_bits, int64_t mantissa_bits) {
    return tree::apply("reduce_precision_on_backward", tree, {}, {{"exponent_bits", exponent_bits}, {"mantissa_bits", mantissa_bits}});
}

} // namespace scalide::tree
