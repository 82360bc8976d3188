#pragma once
#include "expr/error.h"
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace scalide {

struct ExpressionNode;
/// An immutable expression tree. Rules, policies, attributes and extents use this language:
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
    std::vector<Expression> operands; ///< member: the object; call: arguments; list: elements
    Location location;                ///< start of the text of this node
    int depth = 1;                    ///< depth of the tree: 1 + the depth of its deepest operand
};

Expression make_number(double number, Location location = {});
Expression make_name(std::string name, Location location = {});
Expression make_call(std::string callee, std::vector<Expression> operands, Location location = {});

/// `x.data`
Expression make_member(Expression object, std::string word, Location location = {});
Expression make_list(std::vector<Expression> elements, Location location = {});

/// Parses one expression. `where` is the location of its first character; with column 0 (unknown), all nodes get the line of `where`.
/// Throws UserError with line and column for a syntax error, for more than 200 nested levels and for a text longer than 64 KiB.
Expression parse_expression(std::string_view text, const Location &where);
/// The suggested fix for an expression that YAML has split at a comma.
inline constexpr const char *unquoted_comma = "In YAML braces, an expression that contains a comma needs quotes: {a: \"max(x, 0)\"}";

/// Returns the shortest text that parses back to an equal tree: with infix operators, few parentheses and all digits of numbers.
std::string to_string(const Expression &expression);

bool equal(const Expression &a, const Expression &b);

/// Returns the infix sign of a callee ("+" for add), or "" if it has none.
std::string_view infix_sign(std::string_view callee);

/// Returns each free name once, in the order of first use, without callees. `x.data` counts as `x`.
std::vector<std::string> free_names(const Expression &expression);

} // namespace scalide
