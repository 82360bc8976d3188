#include "ir/text.h"

#include <gtest/gtest.h>

namespace scalide {

namespace {

std::string error_of(const std::string &text) {
    try {
        parse_program(text, "t.scl");
    } catch (const UserError &error) {
        return error.what();
    }
    return "no error";
}

/// The error of a program whose header is line 1 and whose body starts in line 2.
std::string body_error(const std::string &lines) {
    return error_of("program p(x: f32[b], n: i32[], w: f16[4] inout) -> (r: f32[b], w = w) {\n" + lines + "\n}\n");
}

/// The error of a program with one argument of this type.
std::string type_error(const std::string &type) { return error_of("program p(x: " + type + ") -> () {\n}\n"); }

std::string repeat(const std::string &text, int count) {
    std::string all;
    for (int i = 0; i < count; i++) all += text;
    return all;
}

} // namespace

TEST(ir, parse_errors_of_types) {
    EXPECT_EQ(type_error("f12[b]"), "t.scl:1:14: type: must be one of f32, f16, bf16, f8_e4m3fn, f8_e5m2, f8_e4m3fnuz, f8_e5m2fnuz, "
                                    "f8_e8m0fnu, i32, bool, f64, i8, u8, i16, u16, u32, f8_e3m4, f8_e4m3, f8_e4m3b11fnuz, i64, got f12");
    EXPECT_EQ(type_error("int64[b]"), "t.scl:1:14: unknown dtype 'int64'. Write i64");
    EXPECT_EQ(type_error("u64[b]"), "t.scl:1:14: unknown dtype 'u64'. Unsigned integers have at most 32 bits. Use u32, or index by i64");
    EXPECT_EQ(type_error("f32"), "t.scl:1:17: type: expected '[', got )");
    EXPECT_EQ(type_error("f32[b"), "t.scl:1:19: type: expected ',' or ']', got )");
    EXPECT_EQ(type_error("f32[b c]"), "t.scl:1:20: type: expected ',' or ']', got c");
    EXPECT_EQ(type_error("f32[" + repeat("1,", 33) + "]"), "t.scl:1:82: type: must have at most 32 extents, got 1");
}

TEST(ir, parse_errors_of_extents) {
    EXPECT_EQ(type_error("f32[*]"), "t.scl:1:18: extent: must be an integer or a symbol, got *");
    EXPECT_EQ(type_error("f32[0.5]"), "t.scl:1:18: extent: must be an integer or a symbol, got 0.5");
    EXPECT_EQ(type_error("f32[b/2]"), "t.scl:1:18: extent: must be an integer or a symbol, got b/2");
    EXPECT_EQ(type_error("f32[b +]"), "t.scl:1:21: extent: must be an integer or a symbol, got ]");
    EXPECT_EQ(type_error("f32[9223372036854775808]"), "t.scl:1:18: number: must be below 2^63, got 9223372036854775808");
    EXPECT_EQ(type_error("f32[4294967296*4294967296]"),
              "t.scl:1:28: the coefficients of an extent must be less than 2^63, got a larger coefficient");
    EXPECT_EQ(type_error("f32[b" + repeat("*b", 16) + "]"), "t.scl:1:49: extent: a term must have at most 16 factors, got *");
    EXPECT_EQ(type_error("f32[b" + repeat("+b", 64) + "]"), "t.scl:1:145: extent: must have at most 64 terms, got +");
}

TEST(ir, parse_errors_of_names) {
    EXPECT_EQ(body_error("  r = neg(q) : f32[b]"), "t.scl:2:11: node.operand: must be a value that is defined before, got q");
    EXPECT_EQ(body_error("  r = neg(r) : f32[b]"), "t.scl:2:11: node.operand: must be a value that is defined before, got r");
    EXPECT_EQ(body_error("  x = neg(x) : f32[b]"), "t.scl:2:3: node.result: the name must be unique, got x");
    EXPECT_EQ(body_error("  r, r = f(x) : f32[b], f32[b]"), "t.scl:2:6: node.result: the name must be unique, got r");
    EXPECT_EQ(body_error("  nan = neg(x) : f32[b]"),
              "t.scl:2:3: node.result: must be a name of letters, digits and _ . $, or text in quotes, got nan");
    EXPECT_EQ(body_error("  r = a/b(x) : f32[b]"), "t.scl:2:7: node.operator: must be a name of letters, digits and _ . $, got a/b");
    EXPECT_EQ(body_error("  " + repeat("r", 1001) + " = neg(x)"),
              "t.scl:2:3: node.result: the name must have 1 to 1000 bytes, got " + repeat("r", 40) + "...");
    EXPECT_EQ(body_error("  \"\" = neg(x)"), "t.scl:2:3: node.result: the name must have 1 to 1000 bytes, got \"\"");
    EXPECT_EQ(body_error("  \"\\x00\" = neg(x)"), "t.scl:2:3: string: must be UTF-8 without zero bytes, got \"\\x00\"");
    EXPECT_EQ(body_error("  \"\\xed\\xa0\\x80\" = neg(x)"), "t.scl:2:3: string: must be UTF-8 without zero bytes, got \"\\xed\\xa0\\x80\"");
    EXPECT_EQ(body_error("  r = neg(\"no r\")"), "t.scl:2:11: node.operand: must be a value that is defined before, got \"no r\"");
    EXPECT_EQ(body_error("  \"x\" = neg(x)"), "t.scl:2:3: node.result: the name must be unique, got \"x\"");
    EXPECT_EQ(body_error("  r = \"neg\"(x)"), "t.scl:2:7: node.operator: must be a name of letters, digits and _ . $, got \"neg\"");
    EXPECT_EQ(body_error("  r = neg(x) : f32[b] data x"), "t.scl:2:28: part: expected 'of', got x");
    EXPECT_EQ(type_error("f32[\"b\"]"), "t.scl:1:18: extent: must be an integer or a symbol, got \"b\"");
    EXPECT_EQ(error_of("program p(x: f32[], x: f32[]) -> () {}"), "t.scl:1:21: argument: the name must be unique, got x");
    EXPECT_EQ(error_of("program p() -> () {}\nprogram p() -> () {}"), "t.scl:2:1: program: the name must be unique, got p");
}

TEST(ir, parse_errors_of_nodes) {
    EXPECT_EQ(body_error("  r, s = neg(x) : f32[b]"),
              "t.scl:2:19: node.types: the number of types must be the number of results, 2, got 1");
    EXPECT_EQ(body_error("  r = neg(x) : f32[b] s = neg(x)"), "t.scl:2:23: node: must start on a new line, got s");
    EXPECT_EQ(body_error("  r = neg(x"), "t.scl:3:1: node.operands: expected ',' or ')', got }");
    EXPECT_EQ(body_error("  r neg(x)"), "t.scl:2:5: node: expected '=', got neg");
    EXPECT_EQ(body_error("  r = neg(x) {a: }"), "t.scl:2:18: attribute: must be a number, an extent, a word, a string or a list, got }");
    EXPECT_EQ(body_error("  r = neg(x) {a: 1, a: 2}"), "t.scl:2:21: attribute: each attribute must be given once, got a");
    EXPECT_EQ(body_error("  r = neg(x) {a: 1 b: 2}"), "t.scl:2:20: attributes: expected ',' or '}', got b");
    EXPECT_EQ(body_error("  r = neg(x,)"),
              "t.scl:2:13: node.operand: must be a name of letters, digits and _ . $, or text in quotes, got )");
    EXPECT_EQ(body_error("  r = neg(x) {a 1}"), "t.scl:2:17: attribute: expected ':', got 1");
    EXPECT_EQ(body_error("  r = neg(x) {a: 1"), "t.scl:4:1: program: expected '}', got the end of the text");
    EXPECT_EQ(body_error("  r = add(x, -x)"), "t.scl:2:15: number: must be an integer, got x");
}

TEST(ir, parse_errors_of_headers) {
    EXPECT_EQ(error_of(""), "t.scl:1:1: program: expected 'program', got the end of the text");
    EXPECT_EQ(error_of("# nothing\n"), "t.scl:2:1: program: expected 'program', got the end of the text");
    EXPECT_EQ(error_of("program p() {}"), "t.scl:1:13: program: expected '->', got {");
    EXPECT_EQ(error_of("program p() -> ()"), "t.scl:1:18: program: expected '{', got the end of the text");
    EXPECT_EQ(error_of("program p() -> () {\n"), "t.scl:2:1: program: expected '}', got the end of the text");
    EXPECT_EQ(error_of("program p() -> () {}\n}"), "t.scl:2:1: program: expected 'program', got }");
    EXPECT_EQ(error_of("program p [b in 1] () -> () {}"), "t.scl:1:18: symbol: expected '..', got ]");
    EXPECT_EQ(error_of("program p [b, b] () -> () {}"), "t.scl:1:15: symbol: the name must be unique, got b");
    EXPECT_EQ(error_of("program p [b step x] () -> () {}"), "t.scl:1:19: number: must be an integer, got x");
}

TEST(ir, parse_errors_of_results) {
    const auto result_error = [](const std::string &result) {
        return error_of("program p(x: f32[b], w: f16[4] inout) -> (" + result + ") {\n  z = neg(x) : f32[b]\n}\n");
    };
    EXPECT_EQ(result_error("z"), "t.scl:1:43: result: expected ': type' after the name, or the name of an inout argument, got z");
    EXPECT_EQ(result_error("w"), "t.scl:1:44: result: expected ': type' or '= value' after the name, got )");
    EXPECT_EQ(result_error("q: f32[b]"), "t.scl:1:43: result: must be a value that is defined before, got q");
    EXPECT_EQ(result_error("q: f32[b] = y"), "t.scl:1:55: result: must be a value that is defined before, got y");
    EXPECT_EQ(result_error("z: f32[]"), "t.scl:1:43: result: must have the type of z, f32[b], got f32[]");
    EXPECT_EQ(result_error("w = z"), "t.scl:1:43: result: must have the type of z, f32[b], got f16[4]");
}

TEST(ir, parse_errors_of_tokens) {
    EXPECT_EQ(body_error("  r = neg(x) @"), "t.scl:2:14: text: expected a name, a number, a string or a sign, got \"@\"");
    EXPECT_EQ(body_error("  r = neg(x) \x01"), "t.scl:2:14: text: expected a name, a number, a string or a sign, got \"\\x01\"");
    EXPECT_EQ(body_error("  r = mul(x, 12ab)"),
              "t.scl:2:14: number: must be digits with an optional fraction and exponent, got 12ab. Write 12*ab");
    EXPECT_EQ(body_error("  r = mul(x, 1e999)"), "t.scl:2:14: number: must be within the range of f64, got 1e999");
    EXPECT_EQ(body_error("  r = neg(x) {a: \"b}"), "t.scl:2:18: string: must end with \" on the same line, got the end of the line");
    EXPECT_EQ(body_error("  r = neg(x) {a: \"\\n\"}"), "t.scl:2:18: string: the only escapes are \\\", \\\\ and \\xHH, got \"\\n\"");
}

TEST(ir, parse_errors_of_nesting_and_size) {
    EXPECT_EQ(body_error("  r = neg(x) {a: " + repeat("[", 201)), "t.scl:2:218: text: must be nested at most 200 levels deep, got [");
    EXPECT_EQ(body_error(repeat("scope \"\" {", 201)), "t.scl:3:1: text: must be nested at most 200 levels deep, got }");
    EXPECT_EQ(body_error("scope \"" + repeat("a", 1001) + "\" {"),
              "t.scl:2:7: scope: must have at most 1000 characters, got \"" + repeat("a", 39) + "...");
    EXPECT_EQ(body_error("  r = f(" + repeat("0,", 1000000) + "0)"),
              "t.scl:2:2000009: program: a program must have at most 1000000 nodes, got 0");
    EXPECT_EQ(error_of(std::string((size_t(64) << 20) + 1, ' ')), "t.scl:1:1: text: must be at most 64 MiB, got 67108865 bytes");
}

TEST(ir, parse_errors_of_parts) {
    const auto error = [](const auto &parse) {
        try {
            parse(Location{"rule.yaml", 7, 5});
        } catch (const UserError &error) {
            return std::string(error.what());
        }
        return std::string("no error");
    };
    EXPECT_EQ(error([](const Location &at) { parse_extent("b b", at); }), "rule.yaml:7:7: text: expected the end of the text, got b");
    EXPECT_EQ(error([](const Location &at) { parse_type("f32[", at); }),
              "rule.yaml:7:9: extent: must be an integer or a symbol, got the end of the text");
    EXPECT_EQ(error([](const Location &at) { parse_attribute("", at); }),
              "rule.yaml:7:5: attribute: must be a number, an extent, a word, a string or a list, got the end of the text");
    EXPECT_EQ(error([](const Location &) { parse_attribute("\n[", {}); }), "2:2: attribute: must be a number, an extent, a word, a "
                                                                           "string or a list, got the end of the text");
}

} // namespace scalide
