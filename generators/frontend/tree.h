#pragma once
#include "frontend/tensor.h"
#include <array>
#include <map>
#include <numeric>

/// Functions on trees of tensors, such as the parameters of a model. A tree is a tensor, or a std::vector, std::array or std::map of trees.
/// A scaled array is one leaf. These functions match jax_scalify.tree and the functions of jax_scalify on pytrees.
namespace scalide::tree {

/// Returns function(leaf).
inline Tensor map(const auto &function, const Tensor &leaf) { return function(leaf); }

/// Returns the tree with function(leaf) instead of each leaf (jax.tree.map).
template<typename T>
std::vector<T> map(const auto &function, const std::vector<T> &tree);

/// The same for an array.
template<typename T, size_t n>
std::array<T, n> map(const auto &function, const std::array<T, n> &tree);

/// The same for a map, in the order of its keys.
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

/// Returns the leaves in the order of map() (jax.tree.leaves).
std::vector<Tensor> leaves(const auto &tree) {
    std::vector<Tensor> found;
    map([&](const Tensor &leaf) { return found.emplace_back(leaf); }, tree);
    return found;
}

/// Returns a tree with the structure of `tree` and other leaves (jax.tree.unflatten). Throws UserError if the number of leaves differs.
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

/// Applies an operator with one result to every float leaf. Other leaves do not change. `further` has the operands after the first.
template<typename Tree>
Tree apply(const std::string &op, const Tree &tree, const std::vector<Operand> &further = {}, const Attributes &attributes = {},
           const std::source_location &where = std::source_location::current()) {
    return tree::map(
        [&](const Tensor &leaf) {
            if (!is_float(leaf.dtype(where))) return leaf;
            std::vector<Operand> operands{leaf};
            operands.insert(operands.end(), further.begin(), further.end());
            return scalide::apply(op, operands, attributes, where);
        },
        tree);
}

/// Returns a bool scalar: true if all elements of all leaves are true. The leaves must be bool.
Tensor all(const auto &tree, const std::source_location &where = std::source_location::current()) {
    Tensor result = scalide::apply("full", {}, {{"shape", to_attribute(Extents())}, {"fill_value", 1.0}, {"dtype", "bool"}}, where);
    for (const Tensor &leaf : leaves(tree)) {
        std::vector<int64_t> axes(leaf.rank(where));
        std::iota(axes.begin(), axes.end(), 0);
        result = scalide::apply("and", {result, scalide::apply("reduce_and", {leaf}, {{"axes", to_attribute(axes)}}, where)}, {}, where);
    }
    return result;
}

/// Casts float leaves to another dtype.
template<typename Tree>
Tree astype(const Tree &tree, Dtype dtype, const std::source_location &where = std::source_location::current()) {
    return tree::apply("convert_element_type", tree, {}, {{"dtype", std::string(to_string(dtype))}}, where);
}

/// Stores float leaves with this scale (jax_scalify.lax.set_scaling).
template<typename Tree>
Tree set_scaling(const Tree &tree, const Operand &scale, const std::source_location &where = std::source_location::current()) {
    return tree::apply("set_scaling", tree, {scale}, {}, where);
}

/// Returns float leaves as plain arrays (jax_scalify.lax.stop_scaling).
template<typename Tree>
Tree stop_scaling(const Tree &tree, const std::source_location &where = std::source_location::current()) {
    return tree::apply("stop_scaling", tree, {}, {}, where);
}

/// Moves `factor` from the data to the scale of float leaves (jax_scalify.lax.rebalance).
template<typename Tree>
Tree rebalance(const Tree &tree, const Operand &factor, const std::source_location &where = std::source_location::current()) {
    return tree::apply("rebalance", tree, {factor}, {}, where);
}

/// Moves a power of two from the data to the scale of each float leaf, so that the norm of the data is in [to, 2 * to). `norm` is "max",
/// "l1" or "l2".
template<typename Tree>
Tree dynamic_rescale(const Tree &tree, const std::string &norm, double to = 1,
                     const std::source_location &where = std::source_location::current()) {
    return tree::apply("dynamic_rescale", tree, {}, {{"norm", norm}, {"to", to}}, where);
}

/// Rescales the gradients of float leaves in the same way.
template<typename Tree>
Tree dynamic_rescale_grad(const Tree &tree, const std::string &norm, double to = 1,
                          const std::source_location &where = std::source_location::current()) {
    return tree::apply("dynamic_rescale_grad", tree, {}, {{"norm", norm}, {"to", to}}, where);
}

/// Rounds float leaves to a dtype on the forward pass. Gradients pass unchanged.
template<typename Tree>
Tree cast_on_forward(const Tree &tree, Dtype dtype, const std::source_location &where = std::source_location::current()) {
    return tree::apply("cast_on_forward", tree, {}, {{"dtype", std::string(to_string(dtype))}}, where);
}

/// Rounds the gradients of float leaves to a dtype. The leaves do not change.
template<typename Tree>
Tree cast_on_backward(const Tree &tree, Dtype dtype, const std::source_location &where = std::source_location::current()) {
    return tree::apply("cast_on_backward", tree, {}, {{"dtype", std::string(to_string(dtype))}}, where);
}

/// Rounds float leaves to this number of exponent and mantissa bits on the forward pass (lax.reduce_precision).
template<typename Tree>
Tree reduce_precision_on_forward(const Tree &tree, int64_t exponent_bits, int64_t mantissa_bits,
                                 const std::source_location &where = std::source_location::current()) {
    return tree::apply("reduce_precision_on_forward", tree, {}, {{"exponent_bits", exponent_bits}, {"mantissa_bits", mantissa_bits}},
                       where);
}

/// Rounds the gradients of float leaves to this number of exponent and mantissa bits.
template<typename Tree>
Tree reduce_precision_on_backward(const Tree &tree, int64_t exponent_bits, int64_t mantissa_bits,
                                  const std::source_location &where = std::source_location::current()) {
    return tree::apply("reduce_precision_on_backward", tree, {}, {{"exponent_bits", exponent_bits}, {"mantissa_bits", mantissa_bits}},
                       where);
}

} // namespace scalide::tree
