#pragma once
#include "frontend/tensor.h"
#include <functional>
#include <optional>

/// Reductions by a function of the user. It is called once, on tensors of rank 0, and must be associative; it may use its arguments and
/// numbers alone. What is written down are ordinary operators, so gradients and scales are theirs; reduced extents must be static.
namespace scalide {

using Combine = std::function<Tensor(const Tensor &, const Tensor &)>;
/// (a..., b...) -> (c...): as many tensors as arrays are reduced together.
using CombineAll = std::function<std::vector<Tensor>(const std::vector<Tensor> &, const std::vector<Tensor> &)>;

/// Windows over all axes of an array, as in reduce_window_sum; what is left out is neutral.
struct Windows {
    std::vector<int64_t> window, strides = {}, low = {}, high = {}, base_dilation = {}, window_dilation = {};
};

/// `x` folded over `axes` (all when left out), from `init` on: reduce(x, 0, [](auto a, auto b) { return hypot(a, b); }, {1}).
Tensor reduce(const Tensor &x, const Operand &init, const Combine &combine, const std::optional<std::vector<int64_t>> &axes = {});
/// Several arrays of one shape at once: the largest value and its place.
std::vector<Tensor> reduce(const std::vector<Tensor> &arrays, const std::vector<Operand> &inits, const CombineAll &combine,
                           const std::optional<std::vector<int64_t>> &axes = {});

/// What lies under each window folded, from `init` on; places without an element hold it.
Tensor reduce_window(const Tensor &x, const Operand &init, const Combine &combine, const Windows &windows);
std::vector<Tensor> reduce_window(const std::vector<Tensor> &arrays, const std::vector<Operand> &inits, const CombineAll &combine,
                                  const Windows &windows);

} // namespace scalide
