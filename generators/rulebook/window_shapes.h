#pragma once
#include "rulebook/static_value.h"

namespace scalide {

// Shape functions of windows and convolutions. shape_functions() has their signatures. A list has one number for each axis; [] is neutral.
// Throws UserError without location if the arguments do not fit.

Attribute windowed(std::span<const StaticValue> arguments);
Attribute windows_meet(std::span<const StaticValue> arguments);
Attribute convolved(std::span<const StaticValue> arguments);

/// The padding for `same` and `valid` before and after the spatial axes, for a window operator and for a transposed convolution.
Attribute padding_low(std::span<const StaticValue> arguments);
Attribute padding_high(std::span<const StaticValue> arguments);
Attribute transposed_padding_low(std::span<const StaticValue> arguments);
Attribute transposed_padding_high(std::span<const StaticValue> arguments);

} // namespace scalide
