#include "interpret/fold.h"
#include "expr/error.h"
#include <algorithm>
#include <array>
#include <limits>

namespace scalide {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double i32_min = std::numeric_limits<int32_t>::min(), i32_max = std::numeric_limits<int32_t>::max();

struct Row {
    std::string_view word, step;
    double start, integer_start;
};

constexpr std::array<Row, 4> rows{{
    {"sum", "add", 0, 0},
    {"prod", "mul", 1, 1},
    {"max", "max", -infinity, i32_min},
    {"min", "min", infinity, i32_max},
}};

} // namespace

Fold::Fold(std::string_view op, Dtype dtype) : wraps_(dtype == Dtype::i32) {
    const auto row = std::ranges::find(rows, op.substr(op.rfind('_') + 1), &Row::word);
    internal_check(row != rows.end(), "no fold of " + std::string(op));
    const BaseOperator &step = *find_base_operator(row->step);
    start_ = wraps_ ? row->integer_start : row->start;
    step_ = wraps_ && step.evaluate_integer != nullptr ? step.evaluate_integer : step.evaluate;
}

double Fold::operator()(double a, double b) const {
    const double value = step_(std::array{a, b});
    return wraps_ ? static_cast<int32_t>(static_cast<uint32_t>(static_cast<int64_t>(value))) : value;
}

} // namespace scalide
