#include "expr/base_operators.h"
#include "interpret/operation.h"
#include "interpret/strided.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace scalide {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double i32_min = std::numeric_limits<int32_t>::min(), i32_max = std::numeric_limits<int32_t>::max();

/// A reduction is a fold with an operator of two numbers, from what it gives for no element at all.
struct Fold {
    std::string_view op, step;
    double start, integer_start;
};

constexpr std::array<Fold, 4> folds{{
    {"reduce_sum", "add", 0, 0},
    {"reduce_prod", "mul", 1, 1},
    {"reduce_max", "max", -infinity, i32_min},
    {"reduce_min", "min", infinity, i32_max},
}};

/// Where the elements of a reduction lie: element j of row i is at rows[i] + elements[j].
struct Layout {
    std::vector<int64_t> rows, elements;
};

Layout layout_of(const std::vector<int64_t> &shape, const std::vector<int64_t> &axes) {
    const std::vector<int64_t> strides = dense(shape).strides, kept = other_axes(static_cast<int64_t>(shape.size()), axes);
    return {places(pick(shape, kept), {0, pick(strides, kept)}), places(pick(shape, axes), {0, pick(strides, axes)})};
}

int32_t wrap(double value) { return static_cast<int32_t>(static_cast<uint32_t>(static_cast<int64_t>(value))); }

} // namespace

// In f64, one element after the other in row-major order.
void run_reduce(Operation &operation) {
    const Fold &fold = *std::ranges::find(folds, operation.op, &Fold::op);
    const BaseOperator &step = *find_base_operator(fold.step);
    const Array &operand = operation.operand(0);
    const bool integers = operand.dtype == Dtype::i32;
    const Evaluate evaluate = integers && step.evaluate_integer != nullptr ? step.evaluate_integer : step.evaluate;
    std::vector<int64_t> axes = operation.integers("axes");
    std::ranges::sort(axes);
    const Layout layout = layout_of(operand.shape, axes);
    for (int64_t row : layout.rows) {
        std::array<double, 2> pair{integers ? fold.integer_start : fold.start, 0};
        for (int64_t element : layout.elements) {
            pair[1] = operand.data[row + element];
            pair[0] = integers ? wrap(evaluate(pair)) : evaluate(pair);
        }
        operation.result().data.push_back(pair[0]);
    }
    store(operation.result(), operation.mode);
}

// The first index of the winner; a NaN wins.
void run_arg_reduce(Operation &operation) {
    const double sign = operation.op == "argmax" ? 1 : -1;
    const Array &operand = operation.operand(0);
    const Layout layout = layout_of(operand.shape, {static_cast<int64_t>(to_number(operation.attributes.at("axis")))});
    for (int64_t row : layout.rows) {
        size_t winner = 0;
        for (size_t j = 1; j < layout.elements.size(); j++) {
            const double best = sign * operand.data[row + layout.elements[winner]], value = sign * operand.data[row + layout.elements[j]];
            if (value > best || (std::isnan(value) && !std::isnan(best))) winner = j;
        }
        operation.result().data.push_back(static_cast<double>(winner));
    }
    store(operation.result(), operation.mode);
}

} // namespace scalide
