#pragma once
#include <set>
#include <string>

namespace scalide {

/// A name as a C identifier, which also is its name among files: `_` for each byte that is no ASCII letter or digit, and before a digit
/// at the start. Different names may have the same one.
std::string to_identifier(const std::string &name);

/// The text as a string literal of C and C++, of ASCII, with line breaks where the text has them.
std::string to_c_string(const std::string &text);

/// The text as it may stand within /* */, whose lines start with ` * `.
std::string to_comment(std::string text);

/// In capitals, as enumerators are.
std::string upper(std::string identifier);

/// The members and enumerators of a header: each gets an identifier of its own, and no word of C or C++.
class Identifiers {
public:
    /// `name` as an identifier, with a number where another member has it. Capitals tell no two apart, as enumerators have nothing else.
    /// `prefix` comes before the enumerator.
    std::string member(const std::string &prefix, const std::string &name);
    /// An enumerator that no member may have.
    void reserve(const std::string &enumerator) { taken_.insert(enumerator); }

private:
    std::set<std::string> taken_; ///< enumerators
};

} // namespace scalide
