#pragma once
#include "expr/error.h"
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace scalide {

/// Aligns rows of words in columns. The first row contains the headings.
std::string in_columns(const std::vector<std::vector<std::string>> &rows);

/// Returns a location with the file name only, or `none` if it has no line.
std::string short_place(const Location &location, const std::string &none);
/// Returns a location with the whole path, or null if it has no line.
nlohmann::ordered_json place_json(const Location &location);

} // namespace scalide
