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
};

Expression make_number(double number, Location location = {});
Expression make_name(std::string name, Location location = {});
Expression make_call(std::string callee, std::vector<Expression> operands, Location location = {});

/// Parses one expression; `where` is the place of its first character. Throws UserError with line and column.
/// Nesting deeper than 200 and texts longer than 64 KiB are errors.
Expression parse_expression(std::string_view text, const Location &where);

/// The shortest text that parses back to an equal tree: infix signs, least parentheses, numbers with all their digits.
std::string to_string(const Expression &expression);

bool equal(const Expression &a, const Expression &b);

/// Every distinct free name (callees excluded), in order of first use. `x.data` counts as `x`.
std::vector<std::string> free_names(const Expression &expression);

} // namespace scalide
