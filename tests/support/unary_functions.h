#pragma once
#include "lower/math/math.h"
#include <cmath>
#include <ostream>
#include <span>

namespace scalide::test {

/// A function of one f32 and its reference. The function must be within 2 ulp of the reference.
struct UnaryFunction {
    const char *name;
    Halide::Expr (*lower)(const Halide::Expr &);
    long double (*reference)(long double);
    double (*fast_reference)(double); ///< exact enough for all 2^32 arguments; the long double takes five times as long
    friend void PrintTo(const UnaryFunction &each, std::ostream *out) { *out << each.name; }
};

inline std::span<const UnaryFunction> unary_functions() {
    static const UnaryFunction table[] = {
        {"exp", math::exp, std::exp, std::exp},
        {"exp2", math::exp2, std::exp2, std::exp2},
        {"expm1", math::expm1, std::expm1, std::expm1},
        {"logistic", math::logistic, [](long double x) { return 1 / (1 + std::exp(-x)); }, [](double x) { return 1 / (1 + std::exp(-x)); }},
        {"tanh", math::tanh, std::tanh, std::tanh},
        {"log", math::log, std::log, std::log},
        {"log2", math::log2, std::log2, std::log2},
        {"log1p", math::log1p, std::log1p, std::log1p},
        {"erf", math::erf, std::erf, std::erf},
        {"erfc", math::erfc, std::erfc, std::erfc},
        {"sin", math::sin, std::sin, std::sin},
        {"cos", math::cos, std::cos, std::cos},
        {"tan", math::tan, std::tan, std::tan},
        {"asin", math::asin, std::asin, std::asin},
        {"acos", math::acos, std::acos, std::acos},
        {"atan", math::atan, std::atan, std::atan},
        {"sinh", math::sinh, std::sinh, std::sinh},
        {"cosh", math::cosh, std::cosh, std::cosh},
        {"asinh", math::asinh, std::asinh, std::asinh},
        {"acosh", math::acosh, std::acosh, std::acosh},
        {"atanh", math::atanh, std::atanh, std::atanh},
        {"cbrt", math::cbrt, std::cbrt, std::cbrt},
        {"sqrt", math::sqrt, std::sqrt, std::sqrt},
        {"floor", math::floor, std::floor, std::floor},
        {"ceil", math::ceil, std::ceil, std::ceil},
        {"round", math::round, std::nearbyint, std::nearbyint},
        {"rsqrt", math::rsqrt, [](long double x) { return 1 / std::sqrt(x); }, [](double x) { return 1 / std::sqrt(x); }},
    };
    return table;
}

} // namespace scalide::test
