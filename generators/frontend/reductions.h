#pragma once
#include "frontend/tensor.h"
#include <functional>
#include <optional>

/// Reductions with a function of your own. Scalide calls the function once, with scalars, and records its operators. The function must be
/// associative, and it may use only its arguments and numbers. The program contains ordinary operators, so gradients and scales follow
/// their rules. Reduced extents must be numbers, not symbols.
namespace scalide {

/// A function that combines two scalars, such as [](auto a, auto b) { return hypot(a, b); }.
using Combine = std::function<Tensor(const Tensor &, const Tensor &)>;

/// A function that combines several arrays at once. It gets one scalar of each array for both sides, and returns one scalar for each array.
using CombineAll = std::function<std::vector<Tensor>(const std::vector<Tensor> &, const std::vector<Tensor> &)>;

/// A window for reduce_window, with one number for each axis. `window` is the size. Empty lists mean: strides and dilations of 1, no
/// padding.
struct Windows {
    std::vector<int64_t> window, strides = {}, low = {}, high = {}, base_dilation = {}, window_dilation = {};
};

/// Reduces x over `axes` (lax.reduce). Without axes it reduces all axes. `init` is the initial value, and the result for no elements.
/// Throws UserError if an axis does not exist or a reduced extent is a symbol: `reduce(x, 0, [](auto a, auto b) { return hypot(a, b); },
/// {{1}})`.
Tensor reduce(const Tensor &x, const Operand &init, const Combine &combine, const std::optional<std::vector<int64_t>> &axes = {},
              const std::source_location &where = std::source_location::current());
/// Reduces several arrays of the same shape at once, such as values and their indices. `inits` has one initial value for each array.
std::vector<Tensor> reduce(const std::vector<Tensor> &arrays, const std::vector<Operand> &inits, const CombineAll &combine,
                           const std::optional<std::vector<int64_t>> &axes = {},
                           const std::source_location &where = std::source_location::current());

/// Reduces the elements under each window (lax.reduce_window). `init` is the initial value. Padding has this value, too.
Tensor reduce_window(const Tensor &x, const Operand &init, const Combine &combine, const Windows &windows,
                     const std::source_location &where = std::source_location::current());

/// Reduces the elements of several arrays of the same shape under each window.
std::vector<Tensor> reduce_window(const std::vector<Tensor> &arrays, const std::vector<Operand> &inits, const CombineAll &combine,
                                  const Windows &windows, const std::source_location &where = std::source_location::current());

} // namespace scalide
