#pragma once
#include "expr/base_operators.h"
#include "ir/dtype.h"

namespace scalide {

/// A reduction as a fold with an operator of two numbers, from what it gives for no element at all.
class Fold {
public:
    /// By the last word of the operator's name: sum, prod, max or min. Throws InternalError for others.
    Fold(std::string_view op, Dtype dtype);

    double start() const { return start_; }
    /// In f64; integers wrap around at 32 bits.
    double operator()(double a, double b) const;

private:
    double start_;
    bool wraps_;
    Evaluate step_;
};

} // namespace scalide
