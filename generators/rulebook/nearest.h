#pragma once
#include <string>
#include <vector>

namespace scalide {

/// The one of `names` that is spelled nearest to `word`, when it is near enough to be a slip: at most a third of its letters differ, or one
/// of two (letters added, lost, changed or swapped with a neighbour). Else the only one that begins with it. Empty otherwise.
std::string nearest(const std::string &word, const std::vector<std::string> &names);

/// The words with a separator between them.
std::string joined(const std::vector<std::string> &words, const std::string &separator = ", ");

/// "Did you mean 'scale'?", or "One of: a, b, c" when no name is near.
std::string suggestion(const std::string &word, const std::vector<std::string> &names);

} // namespace scalide
