#pragma once
#include "ir/attribute.h"
#include <nlohmann/json.hpp>

namespace scalide::test {

/// The attributes of reduce_window_* and of conv_general_dilated by the params of LAX, whose `padding` is pairs of numbers;
/// `dimension_numbers` are words ("NHWC", "HWIO", "NHWC") or specs.
Attributes of_reduce_window(const nlohmann::json &params);
Attributes of_convolution(const nlohmann::json &params);

/// The params with pairs of numbers for the padding "SAME" or "VALID". Shapes are those of the operands.
nlohmann::json with_padding_of_window(nlohmann::json params, const nlohmann::json &shape);
nlohmann::json with_padding_of_convolution(nlohmann::json params, const nlohmann::json &lhs, const nlohmann::json &rhs);

} // namespace scalide::test
