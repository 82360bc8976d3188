#pragma once
#include <span>

// Functions for values that are only stored in bf16 or f8 (8 significant bits), or in f16 (11 bits). A result within 2^-13 of its value is
// within .53 units of bf16, and one within 2^-16 is within .53 units of f16. Everything is in f32, and has the same bits in kernels and in
// the interpreter if the CPU has FMAs. Nanoseconds for one element in L2, full form and bf16 form: exp 0.31 and 0.21, logistic 0.52 and
// 0.29, tanh 0.81 and 0.20, erf 0.91 and 0.19, erfc 1.60 and 0.46 (one core of an AMD EPYC, Zen 4, 2026-11-29). f16 forms take at most 9 %
// more than bf16 forms.

namespace scalide {

using Coefficients = std::span<const double>; ///< of a polynomial, from the highest power on

/// What the functions need for one format.
struct ReducedForm {
    Coefficients exp2;                   ///< of 2^f for |f| <= 1/2
    double erfcx_slope;                  ///< t = 1 / (1 + slope z)
    Coefficients erfcx;                  ///< of e^(z^2) erfc(z) / t over t, for z from 0 to 10.3
    double tanh_end;                     ///< tanh is 1 beyond
    Coefficients tanh_upper, tanh_lower; ///< tanh(x) / x is their quotient over x^2
    double erf_end;                      ///< erf is 1 beyond
    Coefficients erf_upper, erf_lower;   ///< erf(x) / x is their quotient over x^2
};

/// Returns the form for results that are rounded to 8 or to 11 bits.
const ReducedForm &reduced_form(int bits);

/// `Arithmetic` has the types Number (f32) and Truth, and strict operations as static functions. Only its polynomial has FMAs.
template<typename Arithmetic>
class ReducedFunctions {
    using A = Arithmetic;
    using Number = typename A::Number;

public:
    explicit ReducedFunctions(const ReducedForm &form) : form_(form) {}

    Number exp(const Number &x) const { return keep_nan(x, power_of_two(A::mul(x, A::number(log2_e)))); }

    Number exp2(const Number &x) const { return keep_nan(x, power_of_two(x)); }

    /// With e = e^-|x|, the result is 1 / (1 + e) or e / (1 + e). Both keep the relative error of e.
    Number logistic(const Number &x) const {
        const Number one = A::number(1), e = power_of_two(A::mul(A::magnitude(x), A::number(-log2_e)));
        return keep_nan(x, A::div(A::select(A::is_negative(x), e, one), A::add(one, e)));
    }

    Number tanh(const Number &x) const { return odd_quotient(x, form_.tanh_end, form_.tanh_upper, form_.tanh_lower); }

    Number erf(const Number &x) const { return odd_quotient(x, form_.erf_end, form_.erf_upper, form_.erf_lower); }

    /// e^(-z^2) t p(t) for z = |x|. Its relative error does not grow with z, so gelu may multiply it by x. It is 0 in f32 beyond 10.3. The
    /// square is rounded once, which costs 2^-17 there. For x < 0 the result is 2 minus the tail.
    Number erfc(const Number &x) const {
        const Number z = A::min(A::magnitude(x), A::number(10.3));
        const Number t = A::div(A::number(1), A::add(A::number(1), A::mul(z, A::number(form_.erfcx_slope))));
        const Number power = power_of_two(A::mul(A::mul(z, z), A::number(-log2_e)));
        const Number tail = A::mul(power, A::mul(t, A::polynomial(t, form_.erfcx)));
        return keep_nan(x, A::select(A::is_negative(x), A::sub(A::number(2), tail), tail));
    }

private:
    static constexpr double log2_e = 1.4426950408889634;

    static Number keep_nan(const Number &x, const Number &result) { return A::select(A::is_nan(x), x, result); }

    /// n is split into two factors, because it ranges from -151 to 128. The first one is added to the exponent of the polynomial.
    Number power_of_two(const Number &y) const {
        const Number magic = A::number(12582912), bounded = A::clamp(y, A::number(-151), A::number(128.5)), sum = A::add(bounded, magic);
        const Number power = A::polynomial(A::sub(bounded, A::sub(sum, magic)), form_.exp2);
        const auto n = A::bits(sum) - A::bits(magic), half = n >> 1;
        return A::mul(A::from_bits(A::bits(power) + (half << 23)), A::from_bits((n - half + 127) << 23));
    }

    static Number odd_quotient(const Number &x, double end, Coefficients upper, Coefficients lower) {
        const Number bounded = A::clamp(x, A::number(-end), A::number(end)), z = A::mul(bounded, bounded);
        return keep_nan(x, A::div(A::mul(bounded, A::polynomial(z, upper)), A::polynomial(z, lower)));
    }

    const ReducedForm &form_;
};

/// Returns the reduced result as kernels compute it. `arguments` are x and the number of bits.
double reduced_exp(std::span<const double> arguments);
double reduced_exp2(std::span<const double> arguments);
double reduced_logistic(std::span<const double> arguments);
double reduced_tanh(std::span<const double> arguments);
double reduced_erf(std::span<const double> arguments);
double reduced_erfc(std::span<const double> arguments);

} // namespace scalide
