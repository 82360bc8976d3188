#pragma once
#include "ir/attribute.h"
#include "ir/lexer.h"
#include "ir/type.h"
#include <set>

namespace scalide {

/// Parsers for the parts of a program. Each takes its tokens from the lexer and throws UserError at a wrong token.
Extent parse_extent(Lexer &lexer);
Extents parse_shape(Lexer &lexer);
Type parse_type(Lexer &lexer);
/// Parses an attribute. A single name is a symbol if `symbols` contains it, otherwise a word.
Attribute parse_attribute(Lexer &lexer, const std::set<std::string> &symbols);
/// `{name: attribute, ...}`
Attributes parse_attributes(Lexer &lexer, const std::set<std::string> &symbols);

/// Parses the name of a value, result or program, plain or in quotes, of 1 to 1000 bytes.
std::string parse_name(Lexer &lexer, const std::string &subject);
/// Parses the name of an operator, attribute or symbol: letters, digits and `_ . $`, without quotes.
std::string parse_plain_name(Lexer &lexer, const std::string &subject);
/// Parses a string and returns its text without quotes and escapes.
std::string parse_string(Lexer &lexer);
/// Parses an integer without sign.
int64_t parse_integer(Lexer &lexer);
/// Returns true if the next token starts a number: a digit, '-', inf or nan.
bool starts_number(const Lexer &lexer);
/// Parses an integer or a number with an optional '-'.
Attribute parse_number(Lexer &lexer);

/// Throws UserError at the next token if `depth`, the nesting of scopes and lists, is over 200.
void check_depth(const Lexer &lexer, int depth);

} // namespace scalide
