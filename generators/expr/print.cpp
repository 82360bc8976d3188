#include "expr/expression.h"
#include "expr/infix.h"
#include <algorithm>
#include <array>
#include <charconv>

namespace scalide {

namespace {

using Kind = ExpressionNode::Kind;

/// A text and how loosely its outermost operator binds.
struct Printed {
    std::string text;
    Level level;
};

Printed print(const Expression &expression);

std::string print_at_least(const Expression &expression, Level level) {
    Printed printed = print(expression);
    return printed.level < level ? "(" + printed.text + ")" : printed.text;
}

Level tighter(Level level) { return static_cast<Level>(static_cast<int>(level) + 1); }

std::string number_text(double number) {
    std::array<char, 32> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    return std::string(digits.data(), end);
}

std::string join(const std::vector<Expression> &expressions) {
    std::string text;
    for (const Expression &expression : expressions) text += (text.empty() ? "" : ", ") + to_string(expression);
    return text;
}

/// Comparisons do not chain. The other operators group from the left.
Printed print_infix(const InfixSign &infix, const ExpressionNode &node) {
    const Level left = infix.level == Level::comparison ? tighter(infix.level) : infix.level;
    return {print_at_least(node.operands[0], left) + " " + std::string(infix.sign) + " " +
                print_at_least(node.operands[1], tighter(infix.level)),
            infix.level};
}

Printed print_call(const ExpressionNode &node) {
    if (node.operands.size() == 2) {
        const auto *infix = std::ranges::find(infix_signs, node.text, &InfixSign::callee);
        if (infix != std::end(infix_signs)) return print_infix(*infix, node);
    }
    // A minus before a literal would become part of the literal.
    if (node.operands.size() == 1 && node.text == "neg" && node.operands[0]->kind != Kind::number)
        return {"-" + print_at_least(node.operands[0], Level::unary), Level::unary};
    if (node.operands.size() == 1 && node.text == "not") return {"not " + print_at_least(node.operands[0], Level::not_), Level::not_};
    return {node.text + "(" + join(node.operands) + ")", Level::post};
}

Printed print(const Expression &expression) {
    const ExpressionNode &node = *expression;
    switch (node.kind) {
    case Kind::number: return {number_text(node.number), node.number < 0 ? Level::unary : Level::post};
    case Kind::name: return {node.text, Level::post};
    case Kind::member: {
        const bool is_number = node.operands[0]->kind == Kind::number;
        return {(is_number ? "(" + to_string(node.operands[0]) + ")" : print_at_least(node.operands[0], Level::post)) + "." + node.text,
                Level::post};
    }
    case Kind::call: return print_call(node);
    case Kind::list: return {"[" + join(node.operands) + "]", Level::post};
    }
    throw InternalError("internal error: unknown kind of expression");
}

} // namespace

std::string_view infix_sign(std::string_view callee) {
    const auto *infix = std::ranges::find(infix_signs, callee, &InfixSign::callee);
    return infix == std::end(infix_signs) ? std::string_view() : infix->sign;
}

std::string to_string(const Expression &expression) { return print(expression).text; }

} // namespace scalide
