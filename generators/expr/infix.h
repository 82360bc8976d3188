#pragma once
#include <string_view>

namespace scalide {

/// Precedence levels, loosest first, as in the grammar of expression.h.
enum class Level { or_, and_, not_, comparison, sum, term, unary, post };

/// An infix sign and its operator. The parser and the printer use the same table.
struct InfixSign {
    std::string_view sign, callee;
    Level level;
};

inline constexpr InfixSign infix_signs[] = {
    {"or", "or", Level::or_},        {"and", "and", Level::and_},     {"==", "eq", Level::comparison}, {"!=", "ne", Level::comparison},
    {"<=", "le", Level::comparison}, {">=", "ge", Level::comparison}, {"<", "lt", Level::comparison},  {">", "gt", Level::comparison},
    {"+", "add", Level::sum},        {"-", "sub", Level::sum},        {"*", "mul", Level::term},       {"/", "div", Level::term},
    {"%", "rem", Level::term},
};

} // namespace scalide
