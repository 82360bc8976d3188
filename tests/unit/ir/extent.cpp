#include "ir/extent.h"

#include "expr/error.h"
#include "ir/text.h"
#include "ir/type.h"

#include <gtest/gtest.h>
#include <random>

namespace scalide {

namespace {

const Extent b = Extent::symbol("b"), s = Extent::symbol("s");

std::string error_of(const Extent &extent, const Extent::Bindings &bindings) {
    try {
        extent.evaluate(bindings);
    } catch (const UserError &error) {
        return error.what();
    }
    return "no error";
}

Extent random_extent(std::mt19937 &random) {
    const Extent symbols[] = {b, s, Extent::symbol("t")};
    Extent extent;
    for (int terms = static_cast<int>(random() % 4); terms > 0; terms--) {
        Extent term = static_cast<int64_t>(random() % 19) - 9;
        for (int factors = static_cast<int>(random() % 3); factors > 0; factors--) term = term * symbols[random() % 3];
        extent = extent + term;
    }
    return extent;
}

// Exact also where Extent::evaluate refuses a negative value.
int64_t evaluate(const Extent &extent, const Extent::Bindings &bindings) {
    int64_t sum = 0;
    for (const auto &[monomial, coefficient] : extent.terms()) {
        int64_t product = coefficient;
        for (const std::string &symbol : monomial) product *= bindings.at(symbol);
        sum += product;
    }
    return sum;
}

} // namespace

TEST(ir, extents_are_canonical) {
    EXPECT_EQ(b * s, s * b);
    EXPECT_EQ(b + s, s + b);
    EXPECT_EQ((b + s) * (b + s), b * b + b * s * 2 + s * s);
    EXPECT_EQ(b - b, 0);
    EXPECT_TRUE((b - b + 3).is_static());
    EXPECT_EQ((b - b + 3).value(), 3);
    EXPECT_NE(b, s);
    EXPECT_FALSE(b.is_static());
    EXPECT_THROW(b.value(), InternalError);
    EXPECT_EQ((b * s + b).symbols(), (std::vector<std::string>{"b", "s"}));
}

TEST(ir, extents_print) {
    EXPECT_EQ(to_string(Extent(0)), "0");
    EXPECT_EQ(to_string(Extent(-7)), "-7");
    EXPECT_EQ(to_string(b * 4 + 1), "4*b + 1");
    EXPECT_EQ(to_string(b * s - 1), "b*s - 1");
    EXPECT_EQ(to_string(s - b * 2), "-2*b + s");
    EXPECT_EQ(to_string(Extent(INT64_MIN)), "-9223372036854775808");
    EXPECT_EQ(to_string(Type{Dtype::f16, {b, 64}}), "f16[b, 64]");
    EXPECT_EQ(to_string(Type{Dtype::boolean, {}}), "bool[]");
    EXPECT_EQ(element_count({b, 4, s}), b * s * 4);
    EXPECT_EQ(element_count({}), 1);
}

TEST(ir, extents_divide) {
    EXPECT_EQ((b * s * 4).divide(b * 2), s * 2);
    EXPECT_EQ((b * 4 + b * s * 2).divide(b * 2), s + 2);
    EXPECT_EQ(Extent(0).divide(b), Extent(0));
    EXPECT_EQ(Extent(INT64_MIN + 1).divide(-1), Extent(INT64_MAX));
    EXPECT_EQ((b * 3).divide(2), std::nullopt);
    EXPECT_EQ((b * b).divide(s), std::nullopt);
    EXPECT_EQ((b + 1).divide(b), std::nullopt);
    EXPECT_EQ(b.divide(0), std::nullopt);
    EXPECT_EQ((b + s).divide(b + s), std::nullopt); // one-term divisors only
}

TEST(ir, extents_evaluate) {
    EXPECT_EQ((b * s * 4 + 1).evaluate({{"b", 3}, {"s", 5}}), 61);
    EXPECT_EQ(b.evaluate({{"b", 2147483647}}), 2147483647);
    EXPECT_EQ(error_of(b * s, {{"b", 3}}), "extent b*s: needs a value of symbol 's'");
    EXPECT_EQ(error_of(b - 4, {{"b", 3}}), "extent b - 4: must be from 0 to 2147483647, got -1");
    EXPECT_EQ(error_of(b, {{"b", 2147483648}}), "extent b: must be from 0 to 2147483647, got 2147483648");
    const Extent::Bindings huge{{"b", INT64_MAX}};
    EXPECT_EQ(error_of(b * b * b, huge), "extent b*b*b: must be from 0 to 2147483647, got a number beyond 64 bits");
    EXPECT_EQ(error_of(b * b * b + s, huge), "extent b*b*b + s: needs a value of symbol 's'");
}

TEST(ir, extents_refuse_coefficients_beyond_64_bits) {
    EXPECT_THROW(Extent(INT64_MAX) + 1, UserError);
    EXPECT_THROW(Extent(INT64_MAX) * 2, UserError);
    EXPECT_THROW(Extent(-INT64_MAX) - 1, UserError);
}

TEST(ir, random_extents_are_a_ring) {
    const unsigned seed = std::random_device()();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    for (int i = 0; i < 300; i++) {
        const Extent p = random_extent(random), q = random_extent(random), r = random_extent(random);
        EXPECT_EQ((p + q) * r, r * p + r * q);
        EXPECT_EQ(p - (q - r), p - q + r);
        EXPECT_EQ(parse_extent(to_string(p * q), {}), p * q) << to_string(p * q);
        const Extent::Bindings at{{"b", random() % 7}, {"s", random() % 7}, {"t", random() % 7}};
        EXPECT_EQ(evaluate(p * q - r, at), evaluate(p, at) * evaluate(q, at) - evaluate(r, at));
        if (q.terms().size() == 1) EXPECT_EQ((p * q).divide(q), p);
    }
}

} // namespace scalide
