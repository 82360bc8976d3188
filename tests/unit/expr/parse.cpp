#include "expr/expression.h"
#include <gtest/gtest.h>
#include <random>

using namespace scalide;

namespace {

std::string message_of(const std::string &text, const Location &where = {"f.yaml", 3, 5}) {
    try {
        parse_expression(text, where);
    } catch (const UserError &error) {
        return error.what();
    }
    return "no error";
}

std::string reprinted(const std::string &text) { return to_string(parse_expression(text, {})); }

} // namespace

TEST(expr, parses_by_precedence) {
    EXPECT_EQ(reprinted("a+b*c"), "a + b * c");
    EXPECT_EQ(reprinted("(a+b)*c"), "(a + b) * c");
    EXPECT_EQ(reprinted("((a))"), "a");
    EXPECT_EQ(reprinted("a-(b-c)-d"), "a - (b - c) - d");
    EXPECT_EQ(reprinted("a/(b*c)"), "a / (b * c)");
    EXPECT_EQ(reprinted("not (a<b) or c==d and e"), "not a < b or c == d and e");
    EXPECT_EQ(reprinted("(not a) == b"), "(not a) == b");
    EXPECT_EQ(reprinted("-x.scale * -2"), "-x.scale * -2");
    EXPECT_EQ(reprinted("-(a*b)"), "-(a * b)");
    EXPECT_EQ(reprinted("f( x.data , [[1],[ ]] )"), "f(x.data, [[1], []])");
    EXPECT_EQ(reprinted("0.1 + 1e100 + 1.5e-7"), "0.1 + 1e+100 + 1.5e-07");
}

TEST(expr, infix_signs_are_calls) {
    EXPECT_TRUE(equal(parse_expression("a + b * 2", {}), parse_expression("add(a, mul(b, 2))", {})));
    EXPECT_TRUE(equal(parse_expression("not a or b", {}), parse_expression("or(not(a), b)", {})));
    EXPECT_TRUE(
        equal(parse_expression("a % b >= c", {}), make_call("ge", {make_call("rem", {make_name("a"), make_name("b")}), make_name("c")})));
    EXPECT_FALSE(equal(parse_expression("neg(2)", {}), parse_expression("-2", {})));
    EXPECT_EQ(reprinted("neg(2)"), "neg(2)");
}

TEST(expr, knows_where_a_node_starts) {
    const Expression sum = parse_expression("a +\n  g(b)", {"f.yaml", 3, 5});
    EXPECT_EQ(to_string(sum->location), "f.yaml:3:5");
    EXPECT_EQ(to_string(sum->operands[1]->location), "f.yaml:4:3");
    EXPECT_EQ(to_string(parse_expression("a +\n  g(b)", {"f.yaml", 3, 0})->operands[1]->location), "f.yaml:3");
}

TEST(expr, names_every_free_name_once) {
    const std::vector<std::string> names = {"x", "axes", "y"};
    EXPECT_EQ(free_names(parse_expression("sum(x.data, axes) + y * x", {})), names);
}

TEST(expr, errors_name_line_and_column) {
    EXPECT_EQ(message_of(""), "f.yaml:3:5: expression: expected a number, a name, a list or '(', got the end");
    EXPECT_EQ(message_of("a + * b"), "f.yaml:3:9: expression: expected a number, a name, a list or '(', got '*'");
    EXPECT_EQ(message_of("f(a, b"), "f.yaml:3:11: expression: expected ')', but the expression ends here. In YAML braces, an expression "
                                    "that contains a comma needs quotes: {a: \"max(x, 0)\"}");
    EXPECT_EQ(message_of("a b"), "f.yaml:3:7: expression: expected the end of the expression, got 'b'");
    EXPECT_EQ(message_of("a < b < c"), "f.yaml:3:11: expression: expected the end of the expression, got '<'");
    EXPECT_EQ(message_of("2x"), "f.yaml:3:6: expression: expected an operator between the number and the name, got 'x'");
    EXPECT_EQ(message_of("a.(b)"), "f.yaml:3:7: expression: expected a name after '.', got '('");
    EXPECT_EQ(message_of("a and or"), "f.yaml:3:11: expression: expected a number, a name, a list or '(', got 'or'");
    EXPECT_EQ(message_of("1e999"), "f.yaml:3:5: expression: must be a number within the range of f64, got 1e999");
}

TEST(expr, refuses_what_is_too_deep_or_long) {
    EXPECT_EQ(message_of(std::string(300, '(')), "f.yaml:3:205: expression: must be nested at most 200 levels deep, got more levels");
    EXPECT_NE(message_of(std::string(300, '-') + "a").find("200 levels"), std::string::npos);
    std::string sum = "a";
    for (int i = 0; i < 300; i++) sum += "+a";
    EXPECT_NE(message_of(sum).find("200 levels"), std::string::npos);
    EXPECT_EQ(message_of(std::string(70000, ' ')), "f.yaml:3:5: expression: must be at most 64 KiB long, got 70000 bytes");
}

namespace {

Expression random_expression(std::mt19937 &random, int depth) {
    const auto pick = [&](auto... words) { return std::array{words...}[random() % sizeof...(words)]; };
    const auto operand = [&] { return random_expression(random, depth - 1); };
    switch (depth == 0 ? random() % 2 : random() % 7) {
    case 0: return make_name(pick("a", "b", "pi"));
    case 1: return make_number(pick(0.0, -1.5, 3.0, 1e-30, -7.0));
    case 2: return make_member(operand(), pick("data", "scale"));
    case 3: return make_list({operand(), operand()});
    case 4: return make_call(pick("neg", "not", "f"), {operand()});
    default: return make_call(pick("or", "and", "lt", "eq", "add", "sub", "mul", "div", "rem", "f"), {operand(), operand()});
    }
}

} // namespace

TEST(expr, printing_and_parsing_are_inverse) {
    const unsigned seed = std::random_device()();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    for (int i = 0; i < 2000; i++) {
        const Expression expression = random_expression(random, 5);
        const std::string text = to_string(expression);
        ASSERT_TRUE(equal(parse_expression(text, {}), expression)) << text;
    }
}

TEST(expr, random_texts_parse_or_throw) {
    const unsigned seed = std::random_device()();
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const std::string letters = "ab1.2e()[],+-*/%<=>! notrd\n\xff";
    int parsed = 0;
    for (int i = 0; i < 20000; i++) {
        std::string text;
        for (size_t length = random() % 24; length > 0; length--) text += letters[random() % letters.size()];
        try {
            const Expression expression = parse_expression(text, {"f", 1, 1});
            ASSERT_TRUE(equal(parse_expression(to_string(expression), {}), expression)) << text;
            parsed++;
        } catch (const UserError &) {
        }
    }
    EXPECT_GT(parsed, 0);
}
