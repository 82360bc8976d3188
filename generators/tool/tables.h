#pragma once
#include "expr/error.h"
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace scalide {

/// Rows of as many words, the first of which are headings, in columns.
std::string in_columns(const std::vector<std::vector<std::string>> &rows);

/// A place by the name of its file; `none` where it has no line.
std::string short_place(const Location &location, const std::string &none);
/// A place with its whole path; null where it has no line.
nlohmann::ordered_json place_json(const Location &location);

} // namespace scalide
