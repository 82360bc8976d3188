#include "expr/base_operators.h"
#include <algorithm>
#include <iterator>

namespace scalide {

namespace {

struct CostRow {
    std::string_view op;
    int cost;
};

/// Instructions of the forms in lower/math, rounded, for one f32 of a vector; those that compute in f64 count double.
constexpr CostRow costs[] = {
    {"div", 4},
    {"rem", 40},
    {"exp", 12},
    {"exp2", 10},
    {"expm1", 16},
    {"log", 14},
    {"log1p", 16},
    {"tanh", 16},
    {"logistic", 14},
    {"erf", 16},
    {"erfc", 40},
    {"sqrt", 5},
    {"rsqrt", 5},
    {"cbrt", 30},
    {"sin", 20},
    {"cos", 20},
    {"tan", 24},
    {"asin", 24},
    {"acos", 24},
    {"atan", 20},
    {"atan2", 22},
    {"sinh", 20},
    {"cosh", 20},
    {"asinh", 24},
    {"acosh", 20},
    {"atanh", 20},
    {"divide_no_nan", 5},
    {"norm_to_scale", 9}, // of a rank-0 number: kernels repeat it
    {"clamp_scale", 4},
    {"nextafter", 6},
    {"erf_inv", 60},
    {"lgamma", 120},
    {"digamma", 100},
    {"zeta", 400},
    {"igamma", 900},
    {"igammac", 900},
    {"regularized_incomplete_beta", 900},
    {"bessel_i0e", 50},
    {"bessel_i1e", 50},
    {"pow", 30},
    {"integer_pow", 3},
    {"reduce_precision", 6},
};

} // namespace

int operator_cost(std::string_view op) {
    const auto *row = std::ranges::find(costs, op, &CostRow::op);
    return row == std::end(costs) ? 1 : row->cost;
}

} // namespace scalide
