#include "lower/formats/formats.h"
#include "lower/halide/strict.h"
#include "lower/math/math.h"
#include "support/golden.h"
#include <cmath>
#include <gtest/gtest.h>

// Conversions between formats, case by case, by the software codec and by the Exprs. All bits must agree, but those of a NaN: ours are
// canonical, upstream's carry the sign and, in f16 alone, the payload of what they came from.

namespace scalide::test {
namespace {

using Codes = std::vector<uint32_t>;

// Formats that only the data knows: the same table serves them. Their dtype field means nothing.
const std::map<std::string, FormatSpec> other_formats{
    {"f6_e2m3fn", {Dtype::f32, 2, 3, 1, true, false, true, true, 0x20, 0x1f}},
    {"f6_e3m2fn", {Dtype::f32, 3, 2, 3, true, false, true, true, 0x20, 0x1f}},
    {"f4_e2m1fn", {Dtype::f32, 2, 1, 1, true, false, true, true, 0x08, 0x07}},
};

FormatSpec format_named(const std::string &name) {
    auto found = other_formats.find(name);
    return found == other_formats.end() ? format_of(*parse_dtype(name)) : found->second;
}

struct Cast {
    FormatSpec from, to;
    Overflow overflow;
};

Codes cast_in_software(const Cast &cast, const Codes &codes) {
    Codes result;
    for (uint32_t code : codes) result.push_back(encode(cast.to, decode(cast.from, code), cast.overflow));
    return result;
}

template<typename Word>
Halide::Buffer<Word> to_buffer(const Codes &codes) {
    Halide::Buffer<Word> buffer(static_cast<int>(codes.size()));
    std::copy(codes.begin(), codes.end(), buffer.begin());
    return buffer;
}

// Runs a pointwise Expr over codes, which it gets as UInt(32).
Codes run(const Codes &codes, const std::function<Halide::Expr(Halide::Expr)> &body) {
    Halide::Var x("x");
    Halide::Func f("f");
    Halide::Buffer<uint32_t> in = to_buffer<uint32_t>(codes);
    f(x) = Halide::cast<uint32_t>(body(in(x)));
    f.vectorize(x, 16, Halide::TailStrategy::GuardWithIf);
    Halide::Buffer<uint32_t> out = f.realize({static_cast<int>(codes.size())});
    return {out.begin(), out.end()};
}

Halide::Expr words_to_float(const FormatSpec &format, const Halide::Expr &word) {
    return format.bits() == 32 ? from_bits(word) : decode(format, word);
}

Halide::Expr float_to_words(const FormatSpec &format, const Halide::Expr &value, Overflow overflow) {
    return format.bits() == 32 ? float_bits(value) : encode(format, value, overflow);
}

Codes cast_by_exprs(const Cast &cast, const Codes &codes) {
    return run(codes, [&](const Halide::Expr &word) { return float_to_words(cast.to, words_to_float(cast.from, word), cast.overflow); });
}

bool has_nan(const FormatSpec &format) { return std::isnan(decode(format, format.nan_code)); }

// Formats without NaN leave the result of a NaN open (upstream: zero of the opposite sign).
void expect_codes(const Cast &cast, const Codes &inputs, const Codes &got, const Codes &expected) {
    ASSERT_EQ(got.size(), expected.size());
    int shown = 0;
    for (size_t i = 0; i < got.size() && shown < 5; i++) {
        bool nan_input = std::isnan(decode(cast.from, inputs[i]));
        bool same = got[i] == expected[i] || (nan_input && !has_nan(cast.to)) ||
                    (std::isnan(decode(cast.to, got[i])) && std::isnan(decode(cast.to, expected[i])));
        if (same) continue;
        shown++;
        ADD_FAILURE() << std::hex << "code 0x" << inputs[i] << ": got 0x" << got[i] << ", expected 0x" << expected[i];
    }
}

// Where upstream is wrong, the index names the right values.
Codes expected_codes(const GoldenSuite &suite, const nlohmann::json &entry) {
    const char *field = entry.contains("upstream_bug") ? "correct" : "outputs";
    return to_words(suite.arrays.read(entry[field][0]["key"]));
}

void check_cast(const GoldenSuite &suite, const nlohmann::json &entry, Ties ties) {
    SCOPED_TRACE(entry["name"].get<std::string>());
    const nlohmann::json &attributes = entry["attrs"];
    // `clip_then_cast`: upstream's references clip infinities too.
    Overflow overflow = attributes.value("overflow", "") == "saturate" ? Overflow::clip : Overflow::format;
    Cast cast{format_named(attributes["from"]), format_named(attributes["to"]), overflow};
    if (!cast.to.has_sign) cast.to.ties = ties;
    Codes inputs = to_words(suite.arrays.read(entry["inputs"][0]["key"]));
    Codes expected = expected_codes(suite, entry);
    expect_codes(cast, inputs, cast_in_software(cast, inputs), expected);
    expect_codes(cast, inputs, cast_by_exprs(cast, inputs), expected);
}

void check_reduce_precision(const GoldenSuite &suite, const nlohmann::json &entry) {
    SCOPED_TRACE(entry["name"].get<std::string>());
    Codes inputs = to_words(suite.arrays.read(entry["inputs"][0]["key"])), expected = expected_codes(suite, entry), got;
    const FormatSpec &f32 = format_of(Dtype::f32);
    int exponent_bits = entry["attrs"]["exponent_bits"], mantissa_bits = entry["attrs"]["mantissa_bits"];
    for (uint32_t code : inputs) {
        double value = reduce_precision(decode(f32, code), exponent_bits, mantissa_bits);
        got.push_back(encode(f32, value, Overflow::format));
    }
    expect_codes({f32, f32, Overflow::format}, inputs, got, expected);
    Codes by_expr = run(inputs, [&](const Halide::Expr &word) {
        return float_bits(math::reduce_precision(from_bits(word), exponent_bits, mantissa_bits));
    });
    expect_codes({f32, f32, Overflow::format}, inputs, by_expr, expected);
}

TEST(casts, all_cases) {
    auto suite = load_golden("casts");
    int count = 0;
    for (const nlohmann::json &entry : suite.index["cases"]) {
        count++;
        if (entry["op"] == "cast") {
            check_cast(suite, entry, Ties::even);
        } else {
            ASSERT_EQ(entry["op"], "reduce_precision");
            check_reduce_precision(suite, entry);
        }
    }
    EXPECT_EQ(count, suite.index["count"]);
}

TEST(casts_e8m0, all_cases) {
    auto suite = load_golden("casts_e8m0");
    for (const nlohmann::json &entry : suite.index["cases"]) check_cast(suite, entry, format_of(Dtype::f8_e8m0fnu).ties);
}

} // namespace
} // namespace scalide::test
