#pragma once
#include "ir/attribute.h"
#include <nlohmann/json.hpp>

namespace scalide::test {

/// Converts the params that LAX gives reduce_window_* and conv_general_dilated to attributes. `padding` is pairs of numbers.
/// `dimension_numbers` are words ("NHWC", "HWIO", "NHWC") or specs.
Attributes of_reduce_window(const nlohmann::json &params);
Attributes of_convolution(const nlohmann::json &params);

/// Returns the params with the padding "SAME" or "VALID" replaced by pairs of numbers. `shape` has the shapes of the operands.
nlohmann::json with_padding_of_window(nlohmann::json params, const nlohmann::json &shape);
nlohmann::json with_padding_of_convolution(nlohmann::json params, const nlohmann::json &lhs, const nlohmann::json &rhs);

} // namespace scalide::test
