#pragma once
#include "ir/evaluation.h"

namespace scalide {

/// A reduction as repeated application of an operator with two operands, with an initial value.
class Fold {
public:
    /// `step` is an operator that reductions can use (BaseOperator::fold_start).
    Fold(std::string_view step, Dtype dtype);

    double start() const { return start_; }
    /// Computes in f64. Integers wrap around.
    double operator()(double a, double b) const;

private:
    double start_;
    Dtype dtype_;
    Evaluation step_;
};

} // namespace scalide
