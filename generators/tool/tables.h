#pragma once
#include "expr/error.h"
#include "transforms/analysis/directions.h"
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace scalide {

/// Aligns rows of words in columns. The first row contains the headings.
std::string in_columns(const std::vector<std::vector<std::string>> &rows);

/// Removes the column `scope` if no row has a scope, and the column `direction` if no row is backward: a program without a gradient has one
/// direction. The first row contains the headings.
void drop_unused_columns(std::vector<std::vector<std::string>> &rows);

/// Returns a location with the file name only, or `none` if it has no line.
std::string short_place(const Location &location, const std::string &none);
/// Returns a scope, or `-` without one.
std::string scope_or_dash(const std::string &scope);
/// Returns the word for a direction, or null for none.
nlohmann::ordered_json direction_json(Direction direction);
/// Returns a location with the whole path, or null if it has no line.
nlohmann::ordered_json place_json(const Location &location);

} // namespace scalide
