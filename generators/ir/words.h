#pragma once
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace scalide {

/// True for the characters of names: letters, digits and `_ . $`, of words also `/`. ASCII only.
bool is_name_character(char c);
/// True for a name that stands without quotes: a letter, `_` or `$`, then name characters; `inf` and `nan` are numbers. Operators,
/// attributes and symbols have no others.
bool is_plain_name(std::string_view text);
/// True for UTF-8 without zero bytes: what JSON, C strings and Python can hold.
bool is_text(std::string_view bytes);
/// True for a name of a value, a result, a program or an array of parts: any text but the empty one.
bool is_name(std::string_view bytes);

/// The name as programs have it: plain or in quotes.
std::string name_to_string(std::string_view name);
/// `owner.name`, of what a message is about.
std::string subject_of(std::string_view owner, std::string_view name);
/// The text of a word in an attribute: bare when it is made of letters, digits and `_ . /`, starts with a letter or `_`, and is
/// neither a number nor one of `symbols`; else in quotes.
std::string word_to_string(std::string_view word, const std::set<std::string> &symbols);
/// The text in double quotes, with `\\`, `\"` and `\xHH` for what would not stand in a line of text.
std::string quote(std::string_view text);
/// The text that was quoted; nothing when it has an escape of another kind.
std::optional<std::string> unquote(std::string_view quoted);

/// The real number as text that reads back as the same real number: a point or an exponent is always there; inf, -inf, nan, -nan.
std::string number_to_string(double number);

} // namespace scalide
