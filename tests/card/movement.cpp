#include "card/card.h"
#include "ir/text.h"
#include "tool/arrays.h"
#include <gtest/gtest.h>

// card.movement.*: data movement along the innermost axis, bit for bit. Parts that begin and end at multiples of 16 bytes, of fewer, and
// at none; at offsets that only the run knows.

namespace scalide {

namespace {

struct Case {
    const char *name, *arguments, *result, *lines; ///< @ stands for the dtype, $ for a name before names
};

constexpr Case cases[] = {
    {"concatenate_aligned", "$a: @[5, 32], $b: @[5, 96], $c: @[5, 16]", "[5, 144]", "$y = concatenate($a, $b, $c) {dimension: 1}"},
    {"concatenate_in_fours", "$a: @[5, 4], $b: @[5, 12], $c: @[5, 100]", "[5, 116]", "$y = concatenate($a, $b, $c) {dimension: 1}"},
    {"concatenate_uneven", "$a: @[5, 33], $b: @[5, 64], $c: @[5, 31]", "[5, 128]", "$y = concatenate($a, $b, $c) {dimension: 1}"},
    {"concatenate_odd", "$a: @[5, 33], $b: @[5, 64]", "[5, 97]", "$y = concatenate($a, $b) {dimension: 1}"},
    {"concatenate_empty", "$a: @[5, 0], $b: @[5, 64]", "[5, 64]", "$y = concatenate($a, $b, $a) {dimension: 1}"},
    {"concatenate_symbolic", "$a: @[5, n], $b: @[5, 64]", "[5, n + 64]", "$y = concatenate($a, $b) {dimension: 1}"},
    {"pad_aligned", "$x: @[5, 64], $f: @[]", "[7, 128]", "$y = pad($x, $f) {low: [1, 16], high: [1, 48], interior: [0, 0]}"},
    {"pad_low", "$x: @[5, 64], $f: @[]", "[5, 67]", "$y = pad($x, $f) {low: [0, 3], high: [0, 0], interior: [0, 0]}"},
    {"pad_high", "$x: @[5, 61], $f: @[]", "[5, 64]", "$y = pad($x, $f) {low: [0, 0], high: [0, 3], interior: [0, 0]}"},
    {"pad_both", "$x: @[5, 59], $f: @[]", "[5, 64]", "$y = pad($x, $f) {low: [0, 3], high: [0, 2], interior: [0, 0]}"},
    {"pad_in_twos", "$x: @[5, 59], $f: @[]", "[5, 66]", "$y = pad($x, $f) {low: [0, 3], high: [0, 4], interior: [0, 0]}"},
    {"pad_negative", "$x: @[5, 96], $f: @[]", "[5, 64]", "$y = pad($x, $f) {low: [0, -16], high: [0, -16], interior: [0, 0]}"},
    {"pad_negative_odd", "$x: @[5, 71], $f: @[]", "[5, 64]", "$y = pad($x, $f) {low: [0, -5], high: [0, -2], interior: [0, 0]}"},
    {"pad_interior", "$x: @[5, 32], $f: @[]", "[5, 64]", "$y = pad($x, $f) {low: [0, 1], high: [0, 0], interior: [0, 1]}"},
    {"pad_symbolic", "$x: @[5, n], $f: @[]", "[5, n + 16]", "$y = pad($x, $f) {low: [0, 16], high: [0, 0], interior: [0, 0]}"},
    {"slice_at_3", "$x: @[5, 71]", "[5, 64]", "$y = slice($x) {start: [0, 3], limit: [5, 67]}"},
    {"slice_at_16", "$x: @[5, 96]", "[5, 64]", "$y = slice($x) {start: [0, 16], limit: [5, 80]}"},
    {"slice_of_a_concatenation", "$a: @[5, 32], $b: @[5, 64]", "[5, 64]",
     "$c = concatenate($a, $b) {dimension: 1}\n $y = slice($c) {start: [0, 3], limit: [5, 67]}"},
    {"concatenation_of_slices", "$a: @[5, 71], $b: @[5, 96]", "[5, 96]",
     "$c = slice($a) {start: [0, 3], limit: [5, 67]}\n $d = slice($b) {start: [0, 16], limit: [5, 48]}\n $y = concatenate($c, $d) "
     "{dimension: 1}"},
    {"concatenation_in_reverse", "$a: @[5, 32], $b: @[5, 64]", "[5, 96]",
     "$c = concatenate($a, $b) {dimension: 1}\n $y = rev($c) {dimensions: [1]}"},
    {"dynamic_slice", "$x: @[9, 96], $i: i32[], $j: i32[]", "[5, 64]", "$y = dynamic_slice($x, $i, $j) {sizes: [5, 64]}"},
    {"dynamic_update_slice", "$x: @[9, 96], $u: @[5, 40], $i: i32[], $j: i32[]", "[9, 96]", "$y = dynamic_update_slice($x, $u, $i, $j)"},
};

/// A program that moves arrays of this dtype in all ways.
std::string program_of(const std::string &dtype) {
    std::string arguments, results, lines;
    for (const Case &c : cases) {
        const auto filled = [&](const std::string &text) {
            std::string found;
            for (const char letter : text)
                found += letter == '@' ? dtype : letter == '$' ? std::string(c.name) + "_" : std::string(1, letter);
            return found;
        };
        arguments += (arguments.empty() ? "" : ", ") + filled(c.arguments);
        results += (results.empty() ? "" : ", ") + filled(std::string("$y: @") + c.result);
        lines += filled(std::string(" ") + c.lines + "\n");
    }
    return "program moved(" + arguments + ") -> (" + results + ") {\n" + lines + "}\n";
}

/// Numbers for the arrays, and an offset for each integer: none, 16 bytes or more, between, and after the end.
std::vector<HostArray> inputs_of(const std::string &text, int64_t n) {
    const Program program = parse_program(text, "card.scl");
    std::vector<HostArray> inputs;
    for (const Argument &argument : program.arguments) {
        const Type &type = program.type(argument.value);
        Array array{type.dtype, {}, {}};
        int64_t count = 1;
        for (const Extent &extent : type.shape) array.shape.push_back(extent.evaluate({{"n", n}})), count *= array.shape.back();
        for (int64_t i = 0; i < count; i++)
            array.data.push_back(type.dtype == Dtype::i32 ? double(n) : round_to(type.dtype, double(i * 7 % 61) / 8 - 3));
        inputs.push_back(to_array(program.value_name(argument.value), array));
    }
    return inputs;
}

class movement : public testing::TestWithParam<const char *> {};

} // namespace

TEST_P(movement, of_lines) {
    if (!why_no_card().empty()) GTEST_SKIP() << why_no_card();
    const std::string text = program_of(GetParam());
    const OnBoth program(text);
    for (const int64_t n : {0, 1, 16, 67}) EXPECT_EQ(program.first_difference(inputs_of(text, n)), "") << "n = " << n;
}

INSTANTIATE_TEST_SUITE_P(, movement, testing::Values("f32", "bf16", "f8_e4m3fn"), [](const auto &info) { return std::string(info.param); });

} // namespace scalide
