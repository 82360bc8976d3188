#include "interpret/fold.h"
#include "expr/error.h"
#include <algorithm>
#include <array>
#include <limits>

namespace scalide {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Row {
    std::string_view word, step;
    double start; ///< see fold_start
};

constexpr std::array<Row, 7> rows{{
    {"sum", "add", 0},
    {"prod", "mul", 1},
    {"max", "max", -infinity},
    {"min", "min", infinity},
    {"and", "and", -1},
    {"or", "or", 0},
    {"xor", "xor", 0},
}};

const Row &row_of(std::string_view op) {
    const auto row = std::ranges::find(rows, op.substr(op.rfind('_') + 1), &Row::word);
    internal_check(row != rows.end(), "no fold of " + std::string(op));
    return *row;
}

} // namespace

Fold::Fold(std::string_view op, Dtype dtype)
    : start_(fold_start(dtype, row_of(op).start)), dtype_(dtype), step_(*find_base_operator(row_of(op).step), dtype, {}) {}

double Fold::operator()(double a, double b) const {
    const double value = step_(std::array{a, b});
    return is_integer(dtype_) ? wrap_integer(dtype_, value) : value;
}

} // namespace scalide
