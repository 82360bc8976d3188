#pragma once
#include "rulebook/instance.h"
#include "transforms/simplify/facts.h"
#include <limits>

namespace scalide {

/// Gives plain values a scale where they meet scaled ones: a rank-0 value v, and broadcasts of one, get the power of two
/// at or below |v| as their scale and data in +-[1, 2). Zero: data 0, scale 0. Infinities and NaN: themselves, scale inf. Scales below
/// 2^-126 are not formed: smaller v keep data below 1. Nor are those of constants above 2^64: what is that large is meant as a mask, and
/// f32 data beside it shall stay normal.
///
/// Where results are elements of operands (`largest` in the rule's scale) no data reaches a constant: it gets the scale that leaves it room
/// in every format, 2^-6 of its own, and 1 at most, where no data loses a bit that it has without scales.
class ScaleSplit {
public:
    explicit ScaleSplit(Builder &builder) : builder_(builder), facts_(builder.program()) {}

    /// An operand of a scaled node: a plain float that is a number throughout gets its parts beside its value; others stay.
    /// `chosen`: elements of the result are elements of operands.
    ScaledValue meet(const ScaledValue &value, bool chosen = false);
    /// What scaled operands of one node lend each other: an infinite constant has no scale of its own, and would be the largest beside any
    /// other. It takes that of the first operand that has one, 1 where that is 0.
    void lend_scales(std::vector<ScaledValue> &operands);
    /// Data and scale of a plain float, scale 1 when it is no number throughout.
    ScaledValue parts(ValueId value);

private:
    bool is_infinite(const ScaledValue &value) { return value.is_scaled() && facts_.splat(value.scale) == infinity; }
    ValueId positive(ValueId scale);
    ScaledValue split(ValueId scalar, bool chosen);
    ScaledValue split_constant(double value, bool chosen);
    ScaledValue split_computed(ValueId value);

    static constexpr double infinity = std::numeric_limits<double>::infinity();

    Builder &builder_;
    Facts facts_;
    std::map<std::pair<ValueId, bool>, ScaledValue> known_; ///< by rank-0 value, and whether it is chosen
};

} // namespace scalide
