#pragma once
#include "rulebook/static_value.h"

namespace scalide {

// Shape functions of windows and convolutions (rules/README.md says what each means). Arguments in the order of their signatures; lists by
// axis, [] for neutral ones. UserError without a place where they do not fit.

Attribute windowed(std::span<const StaticValue> arguments);
Attribute windows_meet(std::span<const StaticValue> arguments);
Attribute convolved(std::span<const StaticValue> arguments);

/// The padding for `same` and `valid` before and after the spatial axes, for a window operator and for a transposed convolution.
Attribute padding_low(std::span<const StaticValue> arguments);
Attribute padding_high(std::span<const StaticValue> arguments);
Attribute transposed_padding_low(std::span<const StaticValue> arguments);
Attribute transposed_padding_high(std::span<const StaticValue> arguments);

} // namespace scalide
