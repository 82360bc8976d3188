#include "emit/device_functions.h"
#include <vector>

// Functions of f32 by the instructions of a GPU. NVIDIA documents their errors (PTX ISA): ex2.approx 2^-22.5 (relative), rcp.approx 1 ulp,
// rsqrt.approx 2^-22.9, sqrt.approx 2^-23, tanh.approx 2^-11. Coefficients are weighted least-squares fits; the error of each polynomial is
// below 2^-25 of the result. Measured errors in ulp, with exact instructions and with instructions that have their documented error, are
// in tests/device/device_functions.cpp.
//
// `.ftz` is used only where an operand or result cannot be subnormal, or where a subnormal one has no effect. There the instruction is one
// instruction of the GPU; otherwise it is four.

namespace scalide {

namespace {

/// An 8-bit format. The numbers are bit patterns of f32.
struct ShortFormat {
    std::string largest;
    int shift;          ///< 23 - the bits of its significand
    std::string rebias; ///< the difference of the exponent biases
    std::string smallest_normal;
    std::string magic; ///< its addition rounds a number below the smallest normal one
    std::string nan;   ///< a code of the format
};

// Implements the arithmetic of lower/formats/formats.cpp. Magnitudes are clamped to the largest number and rounded to even at bit `shift`.
std::string encode_by_bits(const ShortFormat &format) {
    const std::string s = std::to_string(format.shift), half = std::to_string((1 << (format.shift - 1)) - 1);
    const std::string &magic = format.magic;
    return "{ .reg .b32 %m, %n, %t, %s; .reg .f32 %f, %g; .reg .pred %p, %q;\n"
           "\tand.b32 %m, $a, 0x7fffffff; shr.u32 %s, $a, 24; and.b32 %s, %s, 0x80;\n"
           "\tsetp.gt.u32 %p, %m, 0x7f800000; min.u32 %m, %m, " +
           format.largest +
           ";\n"
           "\tshr.u32 %t, %m, " +
           s + "; and.b32 %t, %t, 1; add.u32 %n, %m, " + half +
           "; add.u32 %n, %n, %t;\n"
           "\tshr.u32 %n, %n, " +
           s + "; sub.u32 %n, %n, " + format.rebias +
           ";\n"
           "\tmov.b32 %f, %m; mov.b32 %g, " +
           magic + "; add.rn.f32 %f, %f, %g; mov.b32 %t, %f; sub.u32 %t, %t, " + magic +
           ";\n"
           "\tsetp.lt.u32 %q, %m, " +
           format.smallest_normal + "; selp.b32 %n, %t, %n, %q; or.b32 %n, %n, %s; selp.b32 $d, " + format.nan + ", %n, %p; }";
}

/// Decodes by way of a finite f16 with a different exponent bias. In E4M3, 0x7f is NaN.
const std::string e4m3_by_half = "{ .reg .b16 %h; .reg .b32 %m, %s; .reg .f32 %f; .reg .pred %p;\n"
                                 "\tand.b32 %m, $a, 0x7f; shl.b32 %s, %m, 7; cvt.u16.u32 %h, %s; cvt.f32.f16 %f, %h;\n"
                                 "\tmul.rn.f32 %f, %f, 0f43800000; mov.b32 %s, %f; setp.eq.u32 %p, %m, 0x7f;\n"
                                 "\tselp.b32 %s, 0x7ff00000, %s, %p; shl.b32 %m, $a, 24; and.b32 %m, %m, 0x80000000; or.b32 $d, %s, %m; }";

std::string encode_by_instruction(const std::string &format) {
    return "{ .reg .b16 %h; .reg .f32 %f, %z; mov.b32 %f, $a; mov.b32 %z, 0; cvt.rn.satfinite." + format +
           "x2.f32 %h, %z, %f; cvt.u32.u16 $d, %h; }";
}

/// A conversion of two numbers has twice the speed of one of one number. The other one is 0.
std::string convert_half(const std::string &format) {
    return "{ .reg .f32 %f, %z; mov.b32 %f, $a; mov.b32 %z, 0; cvt.rn." + format + "x2.f32 $d, %z, %f; }";
}

/// Horner's rule: the coefficients are the bits of f32, of the highest power first.
std::string polynomial(const std::string &result, const std::string &x, const std::vector<std::string> &coefficients) {
    std::string text = "\tfma.rn.f32 " + result + ", " + x + ", 0f" + coefficients[0] + ", 0f" + coefficients[1] + ";\n";
    for (size_t i = 2; i < coefficients.size(); i++)
        text += "\tfma.rn.f32 " + result + ", " + result + ", " + x + ", 0f" + coefficients[i] + ";\n";
    return text;
}

/// One instruction from f32 to f32.
std::string one(const std::string &instruction) { return "{ .reg .f32 %f; mov.b32 %f, $a; " + instruction + " %f, %f; mov.b32 $d, %f; }"; }

/// %f = e^(factor %x) * 2^-shift, with %t, %s and %n as scratch. e^x = 2^n * 2^f; n - shift is limited to -126 ... 126, so its power of two
/// is a normal number. Beyond, f takes the rest, and 2^f becomes 0 or infinity. NaN reaches f. The constants are log2(e) / 252 and log2(e)
/// in two parts, each with the sign of the factor; (126 - shift) / 252; and minus (1.5 * 2^23 + 127 - shift).
std::string power_of_e(const std::string &scaled, const std::string &offset, const std::string &magic, const std::string &log2_e,
                       const std::string &rest) {
    return "\tfma.rn.sat.f32 %t, %x, " + scaled + ", " + offset + "; fma.rn.f32 %t, %t, 0f437C0000, 0f4B400001;\n" +
           "\tmov.b32 %n, %t; shl.b32 %n, %n, 23; mov.b32 %s, %n; add.rn.f32 %t, %t, " + magic + "; neg.f32 %t, %t;\n" +
           "\tfma.rn.f32 %f, %x, " + log2_e + ", %t; fma.rn.f32 %f, %x, " + rest +
           ", %f; ex2.approx.ftz.f32 %f, %f; mul.rn.f32 %f, %s, %f;\n";
}

std::string plain_power_of_e() { return power_of_e("0f3BBB989E", "0f3F000000", "0fCB40007F", "0f3FB8AA3B", "0f32A57060"); }

std::string exponential() {
    return "{ .reg .f32 %x, %t, %f, %s; .reg .b32 %n; mov.b32 %x, $a;\n" + plain_power_of_e() + "\tmov.b32 $d, %f; }";
}

/// A relative error of 2^-18, from the argument of ex2.
std::string rounded_exponential() {
    return "{ .reg .f32 %f; mov.b32 %f, $a; mul.rn.f32 %f, %f, 0f3FB8AA3B; ex2.approx.f32 %f, %f; mov.b32 $d, %f; }";
}

/// 2^-24 / (2^-24 + 2^-24 e^-x). The factor keeps the reciprocal a normal number down to the smallest result.
const std::string from_scaled_power =
    "\tadd.rn.f32 %f, %f, 0f33800000; rcp.approx.ftz.f32 %f, %f; mul.rn.f32 %f, %f, 0f33800000; mov.b32 $d, %f; }";

std::string logistic() {
    return "{ .reg .f32 %x, %t, %f, %s; .reg .b32 %n; mov.b32 %x, $a;\n" +
           power_of_e("0fBBBB989E", "0f3ECF3CF4", "0fCB400067", "0fBFB8AA3B", "0fB2A57060") + from_scaled_power;
}

/// The same with a relative error of 2^-18, from the argument of ex2.
std::string rounded_logistic() {
    return "{ .reg .f32 %f; mov.b32 %f, $a; fma.rn.f32 %f, %f, 0fBFB8AA3B, 0fC1C00000; ex2.approx.ftz.f32 %f, %f;\n" + from_scaled_power;
}

/// |x| + |x|^3 p(x^2) below 0.6, 1 - 2 / (e^2|x| + 1) above.
std::string hyperbolic_tangent() {
    return "{ .reg .f32 %x, %m, %z, %p, %b; .reg .pred %q; mov.b32 %x, $a; abs.f32 %m, %x;\n"
           "\tmul.rn.f32 %b, %m, 0f4038AA3B; ex2.approx.ftz.f32 %b, %b; add.rn.f32 %b, %b, 0f3F800000; rcp.approx.ftz.f32 %b, %b;\n"
           "\tfma.rn.f32 %b, %b, 0fC0000000, 0f3F800000; mul.rn.f32 %z, %x, %x;\n" +
           polynomial("%p", "%z", {"BBC185DE", "3CAA7005", "BD5C4F6C", "3E0884EE", "BEAAAA9F"}) +
           "\tmul.rn.f32 %p, %p, %z; fma.rn.f32 %p, %p, %m, %m;\n"
           "\tsetp.lt.f32 %q, %m, 0f3F19999A; selp.f32 %p, %p, %b, %q; copysign.f32 %p, %x, %p; mov.b32 $d, %p; }";
}

/// erf |x| up to 1: %p = %m + %m p(%x^2).
std::string small_error_function(const std::string &last) {
    return "\tmul.rn.f32 %z, %x, %x;\n" +
           polynomial("%p", "%z", {"38A5725D", "BA5242F2", "3BAA0CFA", "BCDBFDDA", "3DE71690", "BEC0939F", "3E0375D4"}) + last;
}

/// 1 - 2^(|x| p(|x|)) above 1; beyond 4 it is 1. NaN takes the first form.
std::string error_function() {
    return "{ .reg .f32 %x, %m, %c, %z, %p, %b; .reg .pred %q; mov.b32 %x, $a; abs.f32 %m, %x; min.f32 %c, %m, 0f40800000;\n" +
           polynomial("%b", "%c", {"B7A8FA9D", "3A0497B3", "BBB1A1DB", "3D0DE1DE", "BE1D6153", "BF6A8364", "BFD06E28"}) +
           "\tmul.rn.f32 %b, %b, %c; ex2.approx.ftz.f32 %b, %b; neg.f32 %b, %b; add.rn.f32 %b, %b, 0f3F800000;\n" +
           small_error_function("\tfma.rn.f32 %p, %p, %m, %m;\n") +
           "\tsetp.ge.f32 %q, %m, 0f3F800000; selp.f32 %p, %b, %p, %q; copysign.f32 %p, %x, %p; mov.b32 $d, %p; }";
}

/// e^(-x^2) g(s) / (1 + 2 |x|), as erfc_f64 of lower/math/erf.cpp; for x < 0, 2 minus that. Below 0.6, and for NaN, 1 - erf(x). %e is the
/// rounding error of x^2; one step of Newton corrects s and the quotient.
std::string complementary_error_function() {
    return "{ .reg .f32 %v, %m, %c, %d, %r, %g, %e, %x, %t, %f, %s, %z, %p; .reg .b32 %n; .reg .pred %q; mov.b32 %v, $a; abs.f32 %m, %v;\n"
           "\tmin.f32 %c, %m, 0f41280000; add.rn.f32 %d, %c, 0f40400000; rcp.approx.ftz.f32 %r, %d; add.rn.f32 %e, %c, 0fC0400000;\n"
           "\tmul.rn.f32 %s, %e, %r; neg.f32 %t, %s; fma.rn.f32 %t, %t, %d, %e; fma.rn.f32 %s, %t, %r, %s;\n" +
           polynomial(
               "%g", "%s",
               {"BA0B6868", "3AF014CB", "3B1CC03A", "BCC2A732", "3D8BF4DC", "BDF445F4", "3E04C106", "BD42D0AF", "BE0AE03E", "3FA06291"}) +
           "\tmul.rn.f32 %x, %c, %c; neg.f32 %x, %x; fma.rn.f32 %e, %c, %c, %x; neg.f32 %e, %e; fma.rn.f32 %g, %g, %e, %g;\n" +
           plain_power_of_e() +
           "\tfma.rn.f32 %d, %c, 0f40000000, 0f3F800000; rcp.approx.ftz.f32 %r, %d; mul.rn.f32 %s, %g, %r;\n"
           "\tneg.f32 %t, %s; fma.rn.f32 %t, %t, %d, %g; fma.rn.f32 %s, %t, %r, %s; mul.rn.f32 %f, %f, %s;\n"
           "\tneg.f32 %t, %f; add.rn.f32 %t, %t, 0f40000000; setp.lt.f32 %q, %v, 0f00000000; selp.f32 %f, %t, %f, %q; mov.f32 %x, %v;\n" +
           small_error_function("\tfma.rn.f32 %p, %p, %v, %v; neg.f32 %p, %p; add.rn.f32 %p, %p, 0f3F800000;\n") +
           "\tsetp.ltu.f32 %q, %m, 0f3F19999A; selp.f32 %f, %p, %f, %q; mov.b32 $d, %f; }";
}

/// 2 (2^(n - 1) (e^f - 1) + 2^(n - 1) - 1/2) with x = n ln2 + f. Below 2^-24, and for NaN, it is x.
std::string exponential_minus_1() {
    return "{ .reg .f32 %x, %m, %c, %j, %f, %p, %s; .reg .b32 %n; .reg .pred %q; mov.b32 %x, $a; abs.f32 %m, %x;\n"
           "\tmin.f32 %c, %x, 0f42B20000; max.f32 %c, %c, 0fC1C80000; fma.rn.f32 %j, %c, 0f3FB8AA3B, 0f4B40007E;\n" // 1.5 * 2^23 + n + 126
           "\tmov.b32 %n, %j; shl.b32 %n, %n, 23; mov.b32 %s, %n; add.rn.f32 %j, %j, 0fCB40007E;\n"
           "\tfma.rn.f32 %f, %j, 0fBF317200, %c; fma.rn.f32 %f, %j, 0fB5BFBE8E, %f;\n" + // ln2 in two parts
           polynomial("%p", "%f", {"3950CCBF", "3AB6BA60", "3C08884B", "3D2AAA57", "3E2AAAAB", "3F000000"}) +
           "\tmul.rn.f32 %j, %f, %f; fma.rn.f32 %p, %p, %j, %f;\n"
           "\tadd.rn.f32 %j, %s, 0fBF000000; fma.rn.f32 %p, %s, %p, %j; add.rn.f32 %p, %p, %p;\n"
           "\tsetp.ltu.f32 %q, %m, 0f33800000; selp.f32 %p, %x, %p, %q; mov.b32 $d, %p; }";
}

/// x = 2^k (1 + f) with 2/3 <= 1 + f < 4/3, and t = log(1 + f) = f + f^2 p(f). `last` makes the result %p of %k and %t. Subnormal x are
/// multiplied by 2^23. x * infinity + infinity is right for infinity, NaN and x < 0.
std::string logarithm(const std::string &last) {
    return "{ .reg .f32 %x, %u, %k, %f, %p, %t; .reg .b32 %b, %e, %w; .reg .pred %q; mov.b32 %w, $a; mov.b32 %x, %w;\n"
           "\tsetp.lt.f32 %q, %x, 0f00800000; mul.rn.f32 %u, %x, 0f4B000000; selp.f32 %u, %u, %x, %q;\n"
           "\tselp.f32 %k, 0fC1B80000, 0f00000000, %q; mov.b32 %b, %u; sub.u32 %e, %b, 0x3f2aaaab; and.b32 %e, %e, 0xff800000;\n"
           "\tsub.u32 %b, %b, %e; mov.b32 %f, %b; cvt.rn.f32.s32 %t, %e; fma.rn.f32 %k, %t, 0f34000000, %k; add.rn.f32 %f, %f, "
           "0fBF800000;\n" +
           polynomial("%p", "%f",
                      {"BE084F1D", "3E0F6C8B", "BDF75CAD", "3E0F5E4F", "BE2AE684", "3E4CE90A", "BE7FFEB5", "3EAAAA81", "BF000000"}) +
           "\tmul.rn.f32 %p, %p, %f; fma.rn.f32 %t, %p, %f, %f; " + last +
           "\n\tfma.rn.f32 %u, %x, 0f7F800000, 0f7F800000; setp.ge.u32 %q, %w, 0x7f800000; selp.f32 %p, %u, %p, %q;\n"
           "\tsetp.eq.f32 %q, %x, 0f00000000; selp.f32 %p, 0fFF800000, %p, %q; mov.b32 $d, %p; }";
}

/// 2^-24 for large numbers and 2^24 for small ones.
const std::string scale_of_divisor =
    "{ .reg .f32 %m, %s; .reg .pred %p; mov.b32 %m, $a; abs.f32 %m, %m; setp.gt.f32 %p, %m, 0f7E000000;\n"
    "\tselp.f32 %s, 0f33800000, 0f3F800000, %p; setp.lt.f32 %p, %m, 0f01000000; selp.f32 %s, 0f4B800000, %s, %p; mov.b32 $d, %s; }";

} // namespace

std::span<const DeviceFunction> device_functions() {
    using Op = DeviceOp;
    const auto on_all = [](Op op, const std::string &text) { return DeviceFunction{op, text, text}; };
    static const std::vector<DeviceFunction> all = {
        {Op::e4m3_to_f32, e4m3_by_half,
         "{ .reg .b16 %h, %g; .reg .b32 %p; .reg .f32 %f; cvt.u16.u32 %h, $a; cvt.rn.f16x2.e4m3x2 %p, %h; mov.b32 {%h, %g}, %p;"
         " cvt.f32.f16 %f, %h; mov.b32 $d, %f; }"},
        {Op::f32_to_e4m3, encode_by_bits({"0x43e00000", 20, "0x3c0", "0x3c800000", "0x46800000", "0x7f"}), encode_by_instruction("e4m3")},
        {Op::f32_to_e5m2, encode_by_bits({"0x47600000", 21, "0x1c0", "0x38800000", "0x43000000", "0x7f"}), encode_by_instruction("e5m2")},
        on_all(Op::f16_to_f32, "{ .reg .b16 %h; .reg .f32 %f; cvt.u16.u32 %h, $a; cvt.f32.f16 %f, %h; mov.b32 $d, %f; }"),
        on_all(Op::f32_to_bf16, convert_half("bf16")),
        on_all(Op::f32_to_f16, convert_half("f16")),
        on_all(Op::exp, exponential()),
        on_all(Op::exp_rounded, rounded_exponential()),
        on_all(Op::exp2, one("ex2.approx.f32")),
        on_all(Op::expm1, exponential_minus_1()),
        on_all(Op::logistic, logistic()),
        on_all(Op::logistic_rounded, rounded_logistic()),
        on_all(Op::tanh, hyperbolic_tangent()),
        on_all(Op::tanh_stored, one("tanh.approx.f32")),
        on_all(Op::erf, error_function()),
        on_all(Op::erfc, complementary_error_function()),
        on_all(Op::log, logarithm("fma.rn.f32 %p, %k, 0f3F317218, %t;")),
        // A power of two has t = 0, and its logarithm is exact.
        on_all(Op::log2, logarithm("fma.rn.f32 %p, %t, 0f32A57060, %k; fma.rn.f32 %p, %t, 0f3FB8AA3B, %p;")),
        on_all(Op::sqrt, one("sqrt.approx.f32")),
        on_all(Op::rsqrt, one("rsqrt.approx.f32")),
        on_all(Op::divisor_scale, scale_of_divisor),
        on_all(Op::reciprocal, one("rcp.approx.ftz.f32")),
    };
    return all;
}

std::string with_registers(std::string text, const std::string &result, const std::string &operand) {
    for (const auto &[key, value] : {std::pair<std::string, std::string>{"$d", result}, {"$a", operand}}) {
        for (size_t at = text.find(key); at != std::string::npos; at = text.find(key, at + value.size())) text.replace(at, 2, value);
    }
    return text;
}

} // namespace scalide
