#include "transforms/expand/least_extents.h"
#include "support.h"
#include "transforms/analysis/passes.h"
#include <gtest/gtest.h>

// Operators that need elements: an error where an extent is too small, a larger minimum of its symbols where a binding decides.
namespace scalide {

namespace {

/// Returns the symbols of a program after `expand`, as its text lists them, or the error.
std::string symbols_of(const std::string &text) {
    std::string symbols;
    const std::string error = error_of([&] {
        for (const Symbol &symbol : expand(typed(text), rules()).symbols)
            symbols += symbol.name + " in " + std::to_string(symbol.minimum) + ".." + std::to_string(symbol.maximum) + " ";
    });
    return error == "no error" ? symbols : error;
}

std::string requirements_of(const std::string &text) {
    std::string words;
    for (const Requirement &requirement : open_requirements(expand(typed(text), rules())))
        words += requirement.name + ": " + to_string(requirement) + "\n";
    return words;
}

constexpr const char *place = "(x: f32[%]) -> (r: i32[]) {\n r = argmax(x) {axis: 0}\n}";

std::string with(std::string text, const std::string &extent) { return text.replace(text.find('%'), 1, extent); }

} // namespace

TEST(transforms, places_of_nothing_are_refused) {
    EXPECT_NE(symbols_of(with(place, "0")).find("argmax.axis: the axis must have at least 1 element, got 0"), std::string::npos);
    EXPECT_EQ(symbols_of(with(place, "1")), "");
    EXPECT_EQ(symbols_of("(x: f32[0, 3]) -> (r: i32[0]) {\n r = argmax(x) {axis: 1}\n}"), "");
}

TEST(transforms, symbols_are_as_large_as_operators_need) {
    EXPECT_EQ(symbols_of(with(place, "n")), "n in 1..2147483647 ");
    EXPECT_EQ(symbols_of("(x: f32[n]) -> (r: i32[]) {\n c = pad(x, 0) {low: [1], high: [0]}\n r = argmax(c) {axis: 0}\n}"),
              "n in 0..2147483647 ");
    EXPECT_EQ(symbols_of("(x: f32[n, m]) -> (r: i32[]) {\n c = reshape(x) {shape: [n*m]}\n r = argmin(c) {axis: 0}\n}"),
              "n in 1..2147483647 m in 1..2147483647 ");
    EXPECT_EQ(symbols_of("(x: f32[2*n], i: i32[]) -> (r: f32[5]) {\n r = dynamic_slice(x, i) {sizes: [5]}\n}"), "n in 3..2147483647 ");
    EXPECT_EQ(symbols_of("[n step 4] (x: f32[n], i: i32[]) -> (r: f32[5]) {\n r = dynamic_slice(x, i) {sizes: [5]}\n}"),
              "n in 8..2147483647 ");
    EXPECT_EQ(symbols_of("(x: f32[n]) -> (r: f32[4]) {\n r = slice(x) {start: [1], limit: [5]}\n}"), "n in 5..2147483647 ");
    EXPECT_EQ(symbols_of("(x: f32[b, n]) -> (r: f32[b, 4]) {\n r, i = top_k(x) {k: 4}\n}"), "b in 0..2147483647 n in 4..2147483647 ");
}

TEST(transforms, symbols_are_as_small_as_operators_need) {
    const std::string update = "(x: f32[7], u: f32[%], i: i32[]) -> (r: f32[7]) {\n r = dynamic_update_slice(x, u, i)\n}";
    EXPECT_EQ(symbols_of(with(update, "n")), "n in 0..7 ");
    EXPECT_EQ(symbols_of(with(update, "2*n")), "n in 0..3 ");
    EXPECT_EQ(symbols_of("[n step 4] " + with(update, "n")), "n in 0..4 ");
    EXPECT_EQ(symbols_of("[n in 2..5] " + with(update, "n")), "n in 2..5 ");
    EXPECT_NE(symbols_of("[n in 8..9] " + with(update, "n")).find("the axis must have at least n elements, got 7"), std::string::npos);
}

TEST(transforms, bind_checks_what_two_symbols_must_hold) {
    const std::string update = "(x: f32[m], u: f32[n], i: i32[]) -> (r: f32[m], s: f32[m]) {\n"
                               " r = dynamic_update_slice(x, u, i)\n s = dynamic_update_slice(r, u, i)\n}";
    EXPECT_EQ(symbols_of(update), "m in 0..2147483647 n in 0..2147483647 ");
    EXPECT_EQ(requirements_of(update), "dynamic_update_slice.update: m must be at least n\n");
    EXPECT_EQ(requirements_of("[m in 5..9, n in 0..5] " + update), "");
    EXPECT_EQ(requirements_of("(x: f32[7], a: f32[n], b: f32[m], i: i32[]) -> (r: f32[7]) {\n u = concatenate(a, b) {dimension: 0}\n"
                              " r = dynamic_update_slice(x, u, i)\n}"),
              "dynamic_update_slice.update: 7 must be at least m + n\n");
    EXPECT_EQ(requirements_of(with(place, "n")), "");
    EXPECT_EQ(requirements_of("(x: f32[3, m], i: i32[k, 1], u: f32[k, n]) -> (r: f32[3, m]) {\n r = scatter_add(x, i, u) "
                              "{update_window_dims: [1], inserted_window_dims: [0], scatter_dims_to_operand_dims: [0]}\n}"),
              "scatter_add.updates: m must be at least n\n");
}

TEST(transforms, ranges_that_symbols_must_have_are_asked_for) {
    const std::string pair = "(x: f32[n], y: f32[m], i: i32[]) -> (r: f32[5]) {\n c = concatenate(x, y) {dimension: 0}\n"
                             " r = dynamic_slice(c, i) {sizes: [5]}\n}";
    EXPECT_NE(symbols_of(pair).find("the axis must have at least 5 elements, got m + n. Give the symbols a range"), std::string::npos)
        << symbols_of(pair);
    EXPECT_NE(symbols_of("[n in 0..0] (x: f32[n]) -> (r: i32[]) {\n r = argmax(x) {axis: 0}\n}").find("at least 1 element, got n"),
              std::string::npos);
    EXPECT_EQ(symbols_of("[n in 3..9, m in 2..9] " + pair), "n in 3..9 m in 2..9 ");
}

} // namespace scalide
