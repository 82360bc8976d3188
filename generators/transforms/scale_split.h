#pragma once
#include "rulebook/instance.h"
#include "transforms/facts.h"
#include <limits>

namespace scalide {

/// Gives plain values a scale where they meet scaled ones (features.md S6): a rank-0 value v, and broadcasts of one, get the power of two
/// at or below |v| as their scale and data in +-[1, 2). Zero: data 0, scale 0. Infinities and NaN: themselves, scale inf. Scales below
/// 2^-126 are not formed: smaller v keep data below 1.
class ScaleSplit {
public:
    explicit ScaleSplit(Builder &builder) : builder_(builder), facts_(builder.program()) {}

    /// An operand of a scaled node: a plain float that is a number throughout gets its parts beside its value; others stay.
    ScaledValue meet(const ScaledValue &value);
    /// What scaled operands of one node lend each other: an infinite constant has no scale of its own, and would be the largest beside any
    /// other. It takes that of the first operand that has one, 1 where that is 0.
    void lend_scales(std::vector<ScaledValue> &operands);
    /// Data and scale of a plain float, scale 1 when it is no number throughout.
    ScaledValue parts(ValueId value);

private:
    bool is_infinite(const ScaledValue &value) { return value.is_scaled() && facts_.splat(value.scale) == infinity; }
    ValueId positive(ValueId scale);
    ScaledValue split(ValueId scalar);
    ScaledValue split_constant(double value);
    ScaledValue split_computed(ValueId value);

    static constexpr double infinity = std::numeric_limits<double>::infinity();

    Builder &builder_;
    Facts facts_;
    std::map<ValueId, ScaledValue> known_; ///< by rank-0 value
};

} // namespace scalide
