#pragma once
#include <string>
#include <vector>

namespace scalide {

/// Returns the name that is most similar to `word`, if it can be a typing error: at most a third of its letters differ, or one of two.
/// Letters may be added, missing, changed or swapped with a neighbour. Otherwise it returns the only name that starts with `word`, or "".
std::string nearest(const std::string &word, const std::vector<std::string> &names);

/// The words with a separator between them.
std::string joined(const std::vector<std::string> &words, const std::string &separator = ", ");

/// Returns "Did you mean 'scale'?", or `otherwise` if no name is similar.
std::string suggestion(const std::string &word, const std::vector<std::string> &names, const std::string &otherwise);
/// The same. If no name is similar, it returns "One of: a, b, c", or "" if there are no names.
std::string suggestion(const std::string &word, const std::vector<std::string> &names);

} // namespace scalide
