#include "lower/formats/formats.h"
#include "lower/formats/integers.h"
#include "lower/halide/strict.h"
#include "lower/math/elementwise_rows.h"
#include "lower/math/math.h"

#include <algorithm>
#include <string>

namespace scalide {

using Halide::cast;
using Halide::Expr;
using Halide::select;

namespace {

using Call = ElementwiseCall;

bool is_float(const Expr &x) { return x.type().is_float(); }

Expr same(const Expr &x) { return x; }
Expr add(const Expr &a, const Expr &b) { return is_float(a) ? strict_add(a, b) : integers::add(a, b); }
Expr sub(const Expr &a, const Expr &b) { return is_float(a) ? strict_sub(a, b) : integers::sub(a, b); }
Expr mul(const Expr &a, const Expr &b) { return is_float(a) ? strict_mul(a, b) : integers::mul(a, b); }
Expr div(const Expr &a, const Expr &b) { return is_float(a) ? strict_div(a, b) : integers::div(a, b); }
Expr rem(const Expr &a, const Expr &b) { return is_float(a) ? math::rem(a, b) : integers::rem(a, b); }

Expr neg(const Expr &x) {
    if (!is_float(x)) return integers::neg(x);
    Expr bits = float_bits(x);
    return from_bits(bits ^ Halide::Internal::make_const(bits.type(), uint64_t(1) << (bits.type().bits() - 1)));
}

Expr abs(const Expr &x) { return is_float(x) ? math::abs(x) : integers::abs(x); }
Expr sign(const Expr &x) { return is_float(x) ? math::sign(x) : integers::sign(x); }
Expr max(const Expr &a, const Expr &b) {
    if (a.type().is_bool()) return a || b;
    return is_float(a) ? math::max(a, b) : Halide::max(a, b);
}
Expr min(const Expr &a, const Expr &b) {
    if (a.type().is_bool()) return a && b;
    return is_float(a) ? math::min(a, b) : Halide::min(a, b);
}

Expr is_finite(const Expr &x) { return is_float(x) ? math::is_finite(x) : Halide::Internal::const_true(); }

// Bools are compared as 0 and 1.
Expr ordered(const Expr &x) { return x.type().is_bool() ? cast<uint8_t>(x) : x; }
Expr eq(const Expr &a, const Expr &b) { return is_float(a) ? strict_eq(a, b) : ordered(a) == ordered(b); }
Expr ne(const Expr &a, const Expr &b) { return !eq(a, b); }
Expr lt(const Expr &a, const Expr &b) { return is_float(a) ? strict_lt(a, b) : ordered(a) < ordered(b); }
Expr le(const Expr &a, const Expr &b) { return is_float(a) ? strict_le(a, b) : ordered(a) <= ordered(b); }
Expr gt(const Expr &a, const Expr &b) { return lt(b, a); }
Expr ge(const Expr &a, const Expr &b) { return le(b, a); }

Expr bit_and(const Expr &a, const Expr &b) { return a.type().is_bool() ? a && b : a & b; }
Expr bit_or(const Expr &a, const Expr &b) { return a.type().is_bool() ? a || b : a | b; }
Expr bit_xor(const Expr &a, const Expr &b) { return a.type().is_bool() ? ordered(a) != ordered(b) : a ^ b; }
Expr bit_not(const Expr &x) { return x.type().is_bool() ? !x : ~x; }

Expr integer_pow(const Call &call) {
    int power = integer_attribute(call, "y");
    Expr x = call.value(0);
    if (is_float(x)) return math::integer_pow(x, power);
    return integers::integer_pow(x, power);
}

Expr divide_no_nan(const Expr &a, const Expr &b) {
    const Expr zero = Halide::Internal::make_zero(b.type());
    return select(strict_eq(b, zero), zero, strict_div(a, b));
}

Expr number_like(const Expr &x, double number) { return Halide::Internal::make_const(x.type(), number); }

Expr hold_scale(const Expr &x) { return math::min(math::max(x, number_like(x, 0x1p-126)), number_like(x, 0x1p127)); }

Expr clamp_scale(const Expr &x) { return select(strict_eq(x, number_like(x, 0)), number_like(x, 0), hold_scale(x)); }

// The division may round up to a power of two. If it did, the scale is half of it.
Expr norm_to_scale(const Call &call) {
    const Expr norm = call.value(0), to = number_like(norm, to_number(call.attributes.at("to")));
    const Expr power = math::pow2_down(strict_div(norm, to)), half = strict_mul(power, number_like(norm, 0.5));
    const Expr scale = hold_scale(select(strict_lt(norm, strict_mul(power, to)), half, power));
    return select(strict_lt(number_like(norm, 0), norm) && math::is_finite(norm), scale, number_like(norm, 1));
}

// The index is a bool or an integer. An index out of range selects the nearest case.
Expr select_n(const Call &call) {
    Expr which = call.value(0), result = call.value(call.operands.size() - 1);
    for (size_t i = call.operands.size() - 2; i >= 1; i--) {
        Expr is_below = which.type().is_bool() ? !which : which <= Halide::Internal::make_const(which.type(), static_cast<int64_t>(i) - 1);
        result = select(is_below, call.value(i), result);
    }
    return result;
}

Expr convert_element_type(const Call &call) { return convert(call.operands[0], call.result, overflow_of(call.attributes)); }

Expr mix_bits(const Call &call) {
    Expr word = call.value(0);
    word = (word ^ (word >> bits32(16))) * bits32(2246822507u);
    word = (word ^ (word >> bits32(13))) * bits32(3266489909u);
    return word ^ (word >> bits32(16));
}

/// Rounds by integer operations, so one comparison separates NaN and 0 from the numbers that are rounded.
Expr round_by_bits(const Call &call) {
    const Expr x = cast<float>(call.value(0)), bits = call.value(1), smallest = call.value(2), least = call.value(3);
    const auto places = uint32_t(23 - integer_attribute(call, "mantissa_bits"));
    const Expr own = float_bits(strict(x)), sign = own & bits32(0x80000000u), magnitude = own ^ sign;
    const Expr base = select(magnitude < float_bits(smallest), smallest, number_like(smallest, 0));
    const Expr up = ((bits ^ (bits >> bits32(16))) * bits32(739982445u)) >> bits32(32 - places);
    const Expr kept = (float_bits(strict_add(from_bits(magnitude), base)) + up) & bits32(~0u << places);
    // Numbers >= 0 have the same order as their bits.
    const Expr rounded = Halide::max(float_bits(strict_sub(from_bits(kept), base)), float_bits(least));
    return select(magnitude - bits32(1) < bits32(0x7f800000u), from_bits(rounded | sign), x);
}

Expr bitcast_convert_type(const Call &call) {
    Expr x = call.value(0);
    return Halide::reinterpret(storage_type(call.result), x.type().is_float() ? strict(x) : x);
}

} // namespace

ElementwiseRows arithmetic_rows() {
    static constexpr ElementwiseLowering rows[] = {
        {"add", two<add>},
        {"sub", two<sub>},
        {"mul", two<mul>},
        {"div", two<div>},
        {"rem", two<rem>},
        {"neg", one<neg>},
        {"abs", one<abs>},
        {"sign", one<sign>},
        {"max", two<max>},
        {"min", two<min>},
        {"integer_pow", integer_pow},
        {"divide_no_nan", two<divide_no_nan>},
        {"norm_to_scale", norm_to_scale},
        {"clamp_scale", one<clamp_scale>},
        {"is_finite", one<is_finite>},
        {"eq", two<eq>},
        {"ne", two<ne>},
        {"lt", two<lt>},
        {"le", two<le>},
        {"gt", two<gt>},
        {"ge", two<ge>},
        {"and", two<bit_and>},
        {"or", two<bit_or>},
        {"xor", two<bit_xor>},
        {"not", one<bit_not>},
        {"shift_left", two<integers::shift_left>},
        {"shift_right_arithmetic", two<integers::shift_right_arithmetic>},
        {"shift_right_logical", two<integers::shift_right_logical>},
        {"population_count", one<integers::population_count>},
        {"clz", one<integers::clz>},
        {"select_n", select_n},
        {"debug_callback", one<same>},
        {"convert_element_type", convert_element_type},
        {"bitcast_convert_type", bitcast_convert_type},
        {"mix_bits", mix_bits},
        {"round_by_bits", round_by_bits},
    };
    return rows;
}

std::span<const ElementwiseLowering> elementwise_lowerings() {
    static const std::vector<ElementwiseLowering> all = [] {
        std::vector<ElementwiseLowering> rows;
        for (const ElementwiseRows &part :
             {arithmetic_rows(), rounding_rows(), exponential_rows(), logarithm_rows(), error_function_rows(), trigonometric_rows(),
              arc_rows(), hyperbolic_rows(), gamma_rows(), zeta_rows(), incomplete_rows(), bessel_rows()})
            rows.insert(rows.end(), part.begin(), part.end());
        return rows;
    }();
    return all;
}

Expr lower_elementwise(std::string_view op, std::span<const ElementwiseOperand> operands, const Attributes &attributes, Dtype result,
                       Arithmetic arithmetic) {
    const ElementwiseCall call{operands, attributes, result, arithmetic};
    if (const Expr on_device = lower_on_device(op, call); on_device.defined()) return on_device;
    if (const Expr reduced = lower_reduced(op, call); reduced.defined()) return reduced;
    const auto row = std::ranges::find(elementwise_lowerings(), op, &ElementwiseLowering::name);
    internal_check(row != elementwise_lowerings().end(), std::string(op) + " has no elementwise lowering");
    return row->lower(call);
}

} // namespace scalide
