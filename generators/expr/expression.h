#pragma once
#include "expr/error.h"
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace scalide {

struct ExpressionNode;
/// An immutable expression tree, shared freely. Rules, policies, attributes and extents are all written in this one language:
///
///     or     := and { 'or' and }                      calls: or(a, b)
///     and    := not { 'and' not }                     and(a, b)
///     not    := 'not' not | cmp                       not(a)
///     cmp    := sum [ ('=='|'!='|'<'|'<='|'>'|'>=') sum ]   eq ne lt le gt ge
///     sum    := term { ('+'|'-') term }               add sub
///     term   := unary { ('*'|'/'|'%') unary }         mul div rem
///     unary  := '-' unary | post                      neg (a literal number is negated in place)
///     post   := atom { '.' name | '(' [ or { ',' or } ] ')' }
///     atom   := number | name | '[' [ or { ',' or } ] ']' | '(' or ')'
using Expression = std::shared_ptr<const ExpressionNode>;

struct ExpressionNode {
    enum class Kind { number, name, member, call, list };
    Kind kind;
    double number = 0;                ///< number
    std::string text;                 ///< name; member: the word after the dot; call: the callee's name
    std::vector<Expression> operands; ///< member: the one before the dot; call: arguments; list: elements
    Location location;                ///< where the text of this node starts
    int depth = 1;                    ///< of the tree: 1 + that of its deepest operand
};

Expression make_number(double number, Location location = {});
Expression make_name(std::string name, Location location = {});
Expression make_call(std::string callee, std::vector<Expression> operands, Location location = {});

/// `x.data`
Expression make_member(Expression object, std::string word, Location location = {});
Expression make_list(std::vector<Expression> elements, Location location = {});

/// Parses one expression; `where` is the place of its first character (column 0: unknown, then the line stays that of `where` too).
/// Throws UserError with line and column. Trees and parentheses deeper than 200 and texts longer than 64 KiB are errors.
Expression parse_expression(std::string_view text, const Location &where);

/// The shortest text that parses back to an equal tree: infix signs, least parentheses, numbers with all their digits.
std::string to_string(const Expression &expression);

bool equal(const Expression &a, const Expression &b);

/// The infix sign of a callee ("+" for add), empty when it has none.
std::string_view infix_sign(std::string_view callee);

/// Every distinct free name (callees excluded), in order of first use. `x.data` counts as `x`.
std::vector<std::string> free_names(const Expression &expression);

} // namespace scalide
