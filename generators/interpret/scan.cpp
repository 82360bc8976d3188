#include "expr/base_operators.h"
#include "interpret/operation.h"
#include "interpret/strided.h"
#include <algorithm>
#include <array>
#include <cmath>

namespace scalide {

namespace {

/// Returns log(exp(a) + exp(b)) without intermediate overflow. If both are -inf, the result is -inf.
double log_add_exp(std::span<const double> v) {
    const double top = std::max(v[0], v[1]);
    if (std::isnan(v[0]) || std::isnan(v[1])) return v[0] + v[1];
    return std::isinf(top) ? top : top + std::log1p(std::exp(std::min(v[0], v[1]) - top));
}

Evaluate step_of(const Operation &operation) {
    const std::string_view fold = base_operator(operation.op).fold;
    if (fold.empty()) return log_add_exp;
    const BaseOperator &base = base_operator(fold);
    return is_integer(operation.operand(0).dtype) && base.evaluate_integer != nullptr ? base.evaluate_integer : base.evaluate;
}

} // namespace

void run_scan(Operation &operation) {
    const Array &operand = operation.operand(0);
    Array &result = operation.result();
    const Evaluate step = step_of(operation);
    const auto axis = static_cast<size_t>(to_number(operation.attributes.at("axis")));
    const bool reverse = operation.attributes.at("reverse").word == "true";
    std::vector<int64_t> lines = operand.shape;
    lines[axis] = std::min<int64_t>(lines[axis], 1);
    const View view = dense(operand.shape);
    const int64_t extent = operand.shape[axis], stride = reverse ? -view.strides[axis] : view.strides[axis];
    result.data = operand.data;
    if (base_operator(operation.op).signs.never_negative_zero == From::no_operand) // reductions start from +0, or from log(0)
        for (double &value : result.data) value += 0.0;
    for (int64_t place : places(lines, view)) {
        if (reverse) place += (extent - 1) * view.strides[axis];
        for (int64_t i = 1; i < extent; i++) {
            const std::array<double, 2> pair{result.data[place], operand.data[place + stride]};
            result.data[place += stride] = step(pair);
            if (is_integer(operand.dtype)) result.data[place] = wrap_integer(operand.dtype, result.data[place]);
        }
    }
    store(result, operation.mode);
}

} // namespace scalide
