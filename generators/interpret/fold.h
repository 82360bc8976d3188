#pragma once
#include "ir/evaluation.h"

namespace scalide {

/// A reduction as a fold with an operator of two numbers, from what it gives for no element at all.
class Fold {
public:
    /// With `step`, one of the operators that folds are made of (BaseOperator::fold_start).
    Fold(std::string_view step, Dtype dtype);

    double start() const { return start_; }
    /// In f64; integers wrap around.
    double operator()(double a, double b) const;

private:
    double start_;
    Dtype dtype_;
    Evaluation step_;
};

} // namespace scalide
