#include "transforms/numerics/scale_split.h"
#include "transforms/analysis/operators.h"
#include <algorithm>
#include <cmath>

namespace scalide {

namespace {

constexpr double smallest_scale = 0x1p-126, largest_scale = 0x1p64, room = 0x1p-6;

} // namespace

ScaledValue ScaleSplit::meet(const ScaledValue &value, bool chosen) {
    if (value.is_scaled() || builder_.type(value.value).dtype != Dtype::f32) return value;
    const ValueId scalar = facts_.scalar_source(value.value);
    if (scalar < 0) return value;
    ScaledValue parts = split(scalar, chosen);
    if (scalar != value.value) {
        parts.data = builder_.add_one("broadcast_in_dim", {parts.data}, broadcast_attributes(builder_.type(value.value).shape, {}));
    }
    parts.value = value.value;
    return parts;
}

ValueId ScaleSplit::positive(ValueId scale) {
    if (const auto number = facts_.splat(scale)) return *number == 0 ? builder_.constant(1) : scale;
    const ValueId is_zero = builder_.add_one("eq", {scale, builder_.constant(0)});
    return builder_.add_one("select_n", {is_zero, scale, builder_.constant(1)});
}

void ScaleSplit::lend_scales(std::vector<ScaledValue> &operands) {
    if (std::ranges::none_of(operands, [this](const ScaledValue &value) { return is_infinite(value); })) return;
    const auto lender =
        std::ranges::find_if(operands, [this](const ScaledValue &value) { return value.is_scaled() && !is_infinite(value); });
    const ValueId scale = lender == operands.end() ? builder_.constant(1) : positive(lender->scale);
    for (ScaledValue &value : operands)
        if (is_infinite(value)) value.scale = scale;
}

ScaledValue ScaleSplit::parts(ValueId value) {
    const ScaledValue whole = {value, value, builder_.constant(1)};
    const Dtype dtype = builder_.type(value).dtype;
    if (!is_float(dtype)) return whole;
    ScaledValue met = meet({builder_.convert(value, Dtype::f32)});
    if (!met.is_scaled()) return whole;
    met.data = builder_.convert(met.data, dtype);
    return met;
}

ScaledValue ScaleSplit::split(ValueId scalar, bool chosen) {
    const auto [entry, is_new] = known_.try_emplace({scalar, chosen});
    if (!is_new) return entry->second;
    const auto number = facts_.splat(scalar);
    return entry->second = number ? split_constant(*number, chosen) : split_computed(scalar);
}

ScaledValue ScaleSplit::split_constant(double value, bool chosen) {
    int exponent = 0;
    std::frexp(value, &exponent);
    const double own = std::ldexp(1.0, exponent - 1);
    const double power = std::max(chosen ? std::min(own * room, 1.0) : std::min(own, largest_scale), smallest_scale);
    const double scale = value == 0 ? 0 : std::isfinite(value) ? power : infinity;
    const double data = value == 0 || !std::isfinite(value) ? value : value / scale;
    return {-1, builder_.constant(data), builder_.constant(scale)};
}

ScaledValue ScaleSplit::split_computed(ValueId value) {
    const std::vector<ValueId> parts = builder_.add("pow2_decompose", {value});
    return {-1, parts[1], parts[0]};
}

} // namespace scalide
