#pragma once
#include <set>
#include <string>

namespace scalide {

/// Returns a name as a C identifier, which is also used in file names. Each byte that is no ASCII letter or digit becomes `_`, and `_` is
/// inserted before a leading digit. Different names may give the same identifier.
std::string to_identifier(const std::string &name);

/// Returns the text as an ASCII string literal of C and C++, with line breaks where the text has them.
std::string to_c_string(const std::string &text);

/// Returns the text in a form that is valid within a C comment whose lines start with ` * `.
std::string to_comment(std::string text);

/// Converts an identifier to capitals, as for enumerators.
std::string upper(std::string identifier);

/// Chooses the members and enumerators of a header. Identifiers are unique and no keywords of C or C++.
class Identifiers {
public:
    /// Returns `name` as an identifier, with a number if another member has the same identifier. Identifiers that differ only in case count
    /// as the same, because enumerators are in capitals. The enumerator starts with `prefix`.
    std::string member(const std::string &prefix, const std::string &name);
    /// Reserves an enumerator, so that no member gets it.
    void reserve(const std::string &enumerator) { taken_.insert(enumerator); }

private:
    std::set<std::string> taken_; ///< enumerators in use
};

} // namespace scalide
