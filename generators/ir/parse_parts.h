#pragma once
#include "ir/attribute.h"
#include "ir/lexer.h"
#include "ir/type.h"
#include <set>

namespace scalide {

/// The parsers of the parts of a program. Each takes its tokens from the lexer and throws UserError where they do not fit.
Extent parse_extent(Lexer &lexer);
Extents parse_shape(Lexer &lexer);
Type parse_type(Lexer &lexer);
/// A lone name is an extent when it is one of `symbols`, else a word.
Attribute parse_attribute(Lexer &lexer, const std::set<std::string> &symbols);
/// `{name: attribute, ...}`
Attributes parse_attributes(Lexer &lexer, const std::set<std::string> &symbols);

/// A name of a value, result or program, plain or in quotes. It has 1 to 1000 bytes.
std::string parse_name(Lexer &lexer, const std::string &subject);
/// A name of an operator, attribute or symbol, which has no quotes: of letters, digits and `_ . $`.
std::string parse_plain_name(Lexer &lexer, const std::string &subject);
/// The text between the quotes, without its escapes.
std::string parse_string(Lexer &lexer);
/// An integer literal without sign.
int64_t parse_integer(Lexer &lexer);
/// True when the next token starts a number: a digit, '-', inf or nan.
bool starts_number(const Lexer &lexer);
/// An integer or number attribute with an optional '-'.
Attribute parse_number(Lexer &lexer);

/// Throws UserError at the next token when `depth` is over 200: scopes and lists nest no deeper.
void check_depth(const Lexer &lexer, int depth);

} // namespace scalide
