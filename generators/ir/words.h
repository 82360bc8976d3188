#pragma once
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace scalide {

/// Returns true for the ASCII characters of names: letters, digits and `_ . $`. Words also have `/`.
bool is_name_character(char c);
/// Returns true for a name that needs no quotes: a letter, `_` or `$`, then name characters, but not `inf` or `nan`. Operators, attributes
/// and symbols have only such names.
bool is_plain_name(std::string_view text);
/// Returns true for UTF-8 without zero bytes, which JSON, C strings and Python support.
bool is_text(std::string_view bytes);
/// Returns true for a name of a value, a result, a program or a scaled array: any text that is not empty.
bool is_name(std::string_view bytes);

/// Returns a name as in program text: plain or in quotes.
std::string name_to_string(std::string_view name);
/// Returns `owner.name`, the subject of a message.
std::string subject_of(std::string_view owner, std::string_view name);
/// Returns the text of a word in an attribute. It has no quotes if it has only letters, digits and `_ . /`, starts with a letter or `_`,
/// and is neither a number nor one of `symbols`.
std::string word_to_string(std::string_view word, const std::set<std::string> &symbols);
/// Returns the text in double quotes, with the escapes `\\`, `\"` and `\xHH`.
std::string quote(std::string_view text);
/// Returns the text without quotes and escapes. Returns nothing if it has an unknown escape.
std::optional<std::string> unquote(std::string_view quoted);

/// Returns a real number as text that reads back as the same number. It has a point or an exponent, or it is inf, -inf, nan or -nan.
std::string number_to_string(double number);

} // namespace scalide
