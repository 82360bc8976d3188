#include "expr/reduced_functions.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace scalide {

namespace {

// The coefficients are weighted least squares of the relative error at Chebyshev nodes, reweighted by the error until it is even (Lawson
// 1961). The relative error of each fit is at the end of its line.

constexpr double exp2_8[] = {0.05517166173, 0.2426111216, 0.6932609868, 0.9999280736};                              // 2^-13.7
constexpr double erfcx_8[] = {-0.1350439508, 0.2896870701, 0.09251693865, 0.2467468301, 0.2521607946, 0.253923182}; // 2^-16.7
constexpr double tanh_upper_8[] = {-2.84543867e-06, 0.00105483804, 0.11027053, 0.999993147};
constexpr double tanh_lower_8[] = {0.0156333421, 0.443554654, 1}; // 2^-17.1
constexpr double erf_upper_8[] = {0.0298731156, 0.200169802, 1.12830383};
constexpr double erf_lower_8[] = {0.00335938535, 0.0989165485, 0.50969974, 1}; // 2^-13.9

constexpr double exp2_11[] = {0.009570101064, 0.05591786025, 0.2402474485, 0.6931218147, 0.9999992614}; // 2^-18.6
constexpr double erfcx_11[] = {0.08767093956, -0.3548647468, 0.3866098997, 0.03973445433,
                               0.2808156932,  0.2777101073,  0.282322197}; // 2^-19.4
constexpr double tanh_upper_11[] = {4.27604018e-06, 0.00234917798, 0.123829855, 0.999999418};
constexpr double tanh_lower_11[] = {0.000150236506, 0.021408174, 0.457158591, 1}; // 2^-20.7
constexpr double erf_upper_11[] = {0.000728692033, 0.0428535092, 0.155982434, 1.12837521};
constexpr double erf_lower_11[] = {0.00912794495, 0.0951342144, 0.471551419, 1}; // 2^-18.1

constexpr ReducedForm form_of_8_bits{.exp2 = exp2_8,
                                     .erfcx_slope = 0.45,
                                     .erfcx = erfcx_8,
                                     .tanh_end = 5.5,
                                     .tanh_upper = tanh_upper_8,
                                     .tanh_lower = tanh_lower_8,
                                     .erf_end = 3.1,
                                     .erf_upper = erf_upper_8,
                                     .erf_lower = erf_lower_8};

constexpr ReducedForm form_of_11_bits{.exp2 = exp2_11,
                                      .erfcx_slope = 0.5,
                                      .erfcx = erfcx_11,
                                      .tanh_end = 6.5,
                                      .tanh_upper = tanh_upper_11,
                                      .tanh_lower = tanh_lower_11,
                                      .erf_end = 3.4,
                                      .erf_upper = erf_upper_11,
                                      .erf_lower = erf_lower_11};

/// The arithmetic of ReducedFunctions on numbers.
struct FloatArithmetic {
    using Number = float;
    static float number(double value) { return static_cast<float>(value); }
    static float add(float a, float b) { return a + b; }
    static float sub(float a, float b) { return a - b; }
    static float mul(float a, float b) { return a * b; }
    static float div(float a, float b) { return a / b; }
    static float min(float a, float b) { return std::isnan(a) ? b : std::min(a, b); }
    static float clamp(float x, float low, float high) { return std::isnan(x) ? low : std::clamp(x, low, high); }
    static float magnitude(float x) { return std::fabs(x); }
    static bool is_negative(float x) { return std::signbit(x); }
    static bool is_nan(float x) { return std::isnan(x); }
    static float select(bool condition, float a, float b) { return condition ? a : b; }
    static int32_t bits(float x) { return std::bit_cast<int32_t>(x); }
    static float from_bits(int32_t bits) { return std::bit_cast<float>(bits); }
    static float polynomial(float x, Coefficients coefficients) {
        float sum = number(coefficients[0]);
        for (const double coefficient : coefficients.subspan(1)) sum = std::fma(sum, x, number(coefficient));
        return sum;
    }
};

using Functions = ReducedFunctions<FloatArithmetic>;

double apply(float (Functions::*function)(const float &) const, std::span<const double> arguments) {
    const Functions functions(reduced_form(static_cast<int>(arguments[1])));
    return static_cast<double>((functions.*function)(static_cast<float>(arguments[0])));
}

} // namespace

const ReducedForm &reduced_form(int bits) { return bits <= 8 ? form_of_8_bits : form_of_11_bits; }

double reduced_exp(std::span<const double> arguments) { return apply(&Functions::exp, arguments); }
double reduced_exp2(std::span<const double> arguments) { return apply(&Functions::exp2, arguments); }
double reduced_logistic(std::span<const double> arguments) { return apply(&Functions::logistic, arguments); }
double reduced_tanh(std::span<const double> arguments) { return apply(&Functions::tanh, arguments); }
double reduced_erf(std::span<const double> arguments) { return apply(&Functions::erf, arguments); }
double reduced_erfc(std::span<const double> arguments) { return apply(&Functions::erfc, arguments); }

} // namespace scalide
