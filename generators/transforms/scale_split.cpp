#include "transforms/scale_split.h"
#include "transforms/operators.h"
#include <cmath>
#include <limits>

namespace scalide {

namespace {

constexpr double smallest_scale = 0x1p-126;
constexpr double infinity = std::numeric_limits<double>::infinity();

} // namespace

ScaledValue ScaleSplit::meet(const ScaledValue &value) {
    if (value.is_scaled() || builder_.type(value.value).dtype != Dtype::f32) return value;
    const ValueId scalar = facts_.scalar_source(value.value);
    if (scalar < 0) return value;
    ScaledValue parts = split(scalar);
    if (scalar != value.value) {
        parts.data = builder_.add_one("broadcast_in_dim", {parts.data}, broadcast_attributes(builder_.type(value.value).shape, {}));
    }
    parts.value = value.value;
    return parts;
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

ScaledValue ScaleSplit::split(ValueId scalar) {
    const auto [entry, is_new] = known_.try_emplace(scalar);
    if (!is_new) return entry->second;
    const auto number = facts_.splat(scalar);
    return entry->second = number ? split_constant(*number) : split_computed(scalar);
}

ScaledValue ScaleSplit::split_constant(double value) {
    int exponent = 0;
    std::frexp(value, &exponent);
    const double power = std::max(std::ldexp(1.0, exponent - 1), smallest_scale);
    const double scale = value == 0 ? 0 : std::isfinite(value) ? power : infinity;
    const double data = value == 0 || !std::isfinite(value) ? value : value / scale;
    return {-1, builder_.constant(data), builder_.constant(scale)};
}

/// The same by nodes: scale = 0 at 0, inf at infinities and NaN, else max(pow2_down(|v|), 2^-126); data = v / scale where that is finite.
ScaledValue ScaleSplit::split_computed(ValueId value) {
    const auto choose = [&](ValueId which, ValueId yes, ValueId no) { return builder_.add_one("select_n", {which, no, yes}); };
    const ValueId zero = builder_.constant(0), one = builder_.constant(1);
    const ValueId is_zero = builder_.add_one("eq", {value, zero});
    const ValueId is_finite = builder_.add_one("is_finite", {value});
    const ValueId power = builder_.add_one("pow2_down", {builder_.add_one("abs", {value})});
    const ValueId bounded = builder_.add_one("max", {power, builder_.constant(smallest_scale)});
    const ValueId finite_scale = choose(is_zero, zero, bounded);
    const ValueId divisor = choose(is_finite, choose(is_zero, one, bounded), one);
    return {-1, builder_.add_one("div", {value, divisor}), choose(is_finite, finite_scale, builder_.constant(infinity))};
}

} // namespace scalide
