#pragma once
#include <string>
#include <vector>

namespace scalide {

/// Splits a text at each of the separators that is not inside brackets.
std::vector<std::string> split_outside_brackets(const std::string &text, const std::string &separators);

/// Splits a value of `--operators` at commas and semicolons outside brackets. A type after a comma belongs to the word before it:
/// `add,dot:f32[m,8],f32[8,n]` are two words.
std::vector<std::string> operator_words(const std::string &option);

} // namespace scalide
