#pragma once
#include "frontend/tensor.h"

namespace scalide {

/// Returns the first value of a state, a tensor of this type. `key`, u32[2], is a random key that no other state has.
using Initializer = std::function<Tensor(const Tensor &key, const Type &type)>;

/// First values of states, as in jax.nn.initializers: `State<Tensor> w{"w", f32, {64, 10}, initializers::lecun_normal()}`. A function
/// `[](const Tensor &key, const Type &type) { ... }` is an initializer, too. Random numbers are drawn in f32 and converted to the dtype.
namespace initializers {

/// Sets all elements to 0.
Initializer zeros();
/// Sets all elements to 1.
Initializer ones();
/// Sets all elements to this value.
Initializer constant(double value);
/// Draws from the normal distribution with mean 0 and this standard deviation.
Initializer normal(double stddev = 0.01);
/// Draws from the standard normal distribution truncated to (-2, 2), and multiplies by `stddev`.
Initializer truncated_normal(double stddev = 0.01);
/// Draws from the uniform distribution on [0, scale).
Initializer uniform(double scale = 0.01);

/// Draws numbers with mean 0 and variance scale / n. `mode` defines n: "fan_in", "fan_out" or "fan_avg", their mean. The last two axes are
/// inputs and outputs; fan_in and fan_out are their extents times the extents of other axes, without the first `batch_axes` axes.
/// `distribution` is "truncated_normal", "normal" or "uniform". Throws UserError for another word, for fewer than two axes and for extents
/// that are symbols.
Initializer variance_scaling(double scale, const std::string &mode, const std::string &distribution, int64_t batch_axes = 0);

/// Is variance_scaling(1, "fan_in", "truncated_normal").
Initializer lecun_normal(int64_t batch_axes = 0);
/// Is variance_scaling(1, "fan_in", "uniform").
Initializer lecun_uniform(int64_t batch_axes = 0);
/// Is variance_scaling(2, "fan_in", "truncated_normal").
Initializer he_normal(int64_t batch_axes = 0);
/// Is variance_scaling(2, "fan_in", "uniform").
Initializer he_uniform(int64_t batch_axes = 0);
/// Is variance_scaling(1, "fan_avg", "truncated_normal").
Initializer glorot_normal(int64_t batch_axes = 0);
/// Is variance_scaling(1, "fan_avg", "uniform").
Initializer glorot_uniform(int64_t batch_axes = 0);

} // namespace initializers

} // namespace scalide
