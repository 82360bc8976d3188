#include "exhaustive/references.h"
#include <algorithm>
#include <cmath>
#include <iterator>

// Compiled with -ffast-math, without which GCC calls no vector functions: nothing but calls stands here.
namespace scalide::test {
namespace {

template<typename Function>
void compute_all(const float *xs, double *ys, size_t size) {
    for (size_t i = 0; i < size; i++) ys[i] = Function()(double(xs[i]));
}

#define REFERENCE(name, expression)                                                                                                        \
    {                                                                                                                                      \
#name, compute_all < decltype([](double x) { return expression; })>                                                                \
    }

constexpr ArrayReference references[] = {
    REFERENCE(exp, std::exp(x)),     REFERENCE(exp2, std::exp2(x)),
    REFERENCE(expm1, std::expm1(x)), REFERENCE(tanh, std::tanh(x)),
    REFERENCE(log, std::log(x)),     REFERENCE(log1p, std::log1p(x)),
    REFERENCE(log2, std::log2(x)),   REFERENCE(erf, std::erf(x)),
    REFERENCE(erfc, std::erfc(x)),   REFERENCE(sin, std::sin(x)),
    REFERENCE(cos, std::cos(x)),     REFERENCE(tan, std::tan(x)),
    REFERENCE(asin, std::asin(x)),   REFERENCE(acos, std::acos(x)),
    REFERENCE(atan, std::atan(x)),   REFERENCE(sinh, std::sinh(x)),
    REFERENCE(cosh, std::cosh(x)),   REFERENCE(asinh, std::asinh(x)),
    REFERENCE(acosh, std::acosh(x)), REFERENCE(atanh, std::atanh(x)),
    REFERENCE(cbrt, std::cbrt(x)),   REFERENCE(logistic, 1 / (1 + std::exp(-x))),
};

} // namespace

const ArrayReference *find_array_reference(std::string_view name) {
    const auto *found = std::ranges::find(references, name, &ArrayReference::name);
    return found == std::end(references) ? nullptr : found;
}

} // namespace scalide::test
