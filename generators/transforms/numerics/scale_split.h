#pragma once
#include "rulebook/instance.h"
#include "transforms/simplify/facts.h"
#include <limits>

namespace scalide {

/// Gives plain values a scale when they are combined with scaled ones. This applies to rank-0 values v and broadcasts of them. The scale is
/// the power of two at or below |v|, and the data lies in +-[1, 2). Exceptions:
/// - Zero has data 0 and scale 0.
/// - Infinities and NaN keep their value as data and have scale inf.
/// - Scales below 2^-126 are not used: smaller v have data below 1.
/// - Constants have no scale above 2^64. Constants that large are masks, and f32 data next to them must stay normal.
///
/// In some operators, each element of the result is an element of an operand (`largest` in the rule's scale). There a constant gets the
/// scale 2^-6 of its own, and at most 1. The constant then fits every format, and data loses no bit that it would keep without scales.
class ScaleSplit {
public:
    explicit ScaleSplit(Builder &builder) : builder_(builder), facts_(builder.program()) {}

    /// Returns an operand of a scaled node. A plain f32 value that is one number throughout gets data and a scale in addition to its value;
    /// other values are returned unchanged. `chosen`: elements of the result are elements of operands.
    ScaledValue meet(const ScaledValue &value, bool chosen = false);
    /// Assigns each infinite constant the scale of the first operand that has one, or 1 if that scale is 0. Its own scale, infinity, would
    /// be the largest of all.
    void lend_scales(std::vector<ScaledValue> &operands);
    /// Returns data and scale of a plain float. The scale is 1 if the value is not one number throughout.
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
    std::map<std::pair<ValueId, bool>, ScaledValue> known_; ///< by rank-0 value and `chosen`
};

} // namespace scalide
