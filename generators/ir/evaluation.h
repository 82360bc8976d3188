#pragma once
#include "expr/base_operators.h"
#include "ir/attribute.h"
#include "ir/dtype.h"

namespace scalide {

/// What an elementwise base operator makes of elements of one dtype.
class Evaluation {
public:
    /// `operands`: the dtype of the last operand. Not for the conversions, whose row has no function.
    Evaluation(const BaseOperator &row, Dtype operands, const Attributes &attributes);

    /// Arguments that follow the operands: the parameter, the width.
    const std::vector<double> &further_arguments() const { return further_; }
    /// The f64 value of operands and further arguments; of integers, right in the low 32 bits.
    double operator()(std::span<const double> arguments) const { return evaluate_(arguments); }

private:
    Evaluate evaluate_;
    std::vector<double> further_;
};

/// The number that a fold starts from, as an element: infinity is the end of an integer's range, -1 has all bits set.
double fold_start(Dtype dtype, double value);

/// What a constant of a dtype says of a number: an integer where the dtype has no others.
Attribute constant_number(Dtype dtype, double value);

} // namespace scalide
