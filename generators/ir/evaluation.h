#pragma once
#include "expr/base_operators.h"
#include "ir/attribute.h"
#include "ir/dtype.h"

namespace scalide {

/// The attribute with which a function needs no more significant bits than a format has. choose_accuracy() sets it.
inline constexpr const char *accuracy_attribute = "accuracy";

/// Returns the number of these bits, or nothing if the attribute is absent: the function then has the accuracy of f32.
std::optional<int> bits_of_accuracy(const Attributes &attributes);

/// Evaluates an elementwise base operator for elements of one dtype.
class Evaluation {
public:
    /// `operands` is the dtype of the last operand. Not for conversions: their rows have no function. A function with the attribute
    /// `accuracy` is computed as kernels do it, or in f64 if `is_exact`.
    Evaluation(const BaseOperator &row, Dtype operands, const Attributes &attributes, bool is_exact = false);

    /// Returns the arguments after the operands: the parameter, the width.
    const std::vector<double> &further_arguments() const { return further_; }
    /// Returns the result in f64. For integers, the low 32 bits are exact.
    double operator()(std::span<const double> arguments) const { return evaluate_(arguments); }

private:
    Evaluate evaluate_;
    std::vector<double> further_;
};

/// Converts the neutral element of a reduction to a dtype: infinity becomes the end of an integer range, and -1 sets all bits.
double fold_start(Dtype dtype, double value);

/// Returns the attribute of a constant: an integer if the dtype is an integer dtype.
Attribute constant_number(Dtype dtype, double value);

} // namespace scalide
