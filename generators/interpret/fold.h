#pragma once
#include "ir/evaluation.h"

namespace scalide {

/// A reduction as a fold with an operator of two numbers, from what it gives for no element at all.
class Fold {
public:
    /// By the last word of the operator's name: sum, prod, max, min, and, or, xor. Throws InternalError for others.
    Fold(std::string_view op, Dtype dtype);

    double start() const { return start_; }
    /// In f64; integers wrap around.
    double operator()(double a, double b) const;

private:
    double start_;
    Dtype dtype_;
    Evaluation step_;
};

} // namespace scalide
