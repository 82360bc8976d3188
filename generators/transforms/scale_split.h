#pragma once
#include "rulebook/instance.h"
#include "transforms/facts.h"

namespace scalide {

/// Gives plain values a scale where they meet scaled ones (features.md S6): a rank-0 value v, and broadcasts of one, get the power of two
/// at or below |v| as their scale and data in +-[1, 2). Zero: data 0, scale 0. Infinities and NaN: themselves, scale inf. Scales below
/// 2^-126 are not formed: smaller v keep data below 1.
class ScaleSplit {
public:
    explicit ScaleSplit(Builder &builder) : builder_(builder), facts_(builder.program()) {}

    /// An operand of a scaled node: a plain float that is a number throughout gets its parts beside its value; others stay.
    ScaledValue meet(const ScaledValue &value);
    /// Data and scale of a plain float, scale 1 when it is no number throughout.
    ScaledValue parts(ValueId value);

private:
    ScaledValue split(ValueId scalar);
    ScaledValue split_constant(double value);
    ScaledValue split_computed(ValueId value);

    Builder &builder_;
    Facts facts_;
    std::map<ValueId, ScaledValue> known_; ///< by rank-0 value
};

} // namespace scalide
