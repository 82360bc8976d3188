#pragma once
#include "expr/error.h"
#include <functional>
#include <string>
#include <yaml-cpp/yaml.h>

namespace scalide {

/// Calls `read` for each row of a table in YAML, a list of maps. What YAML or `read` cannot take is a UserError with file and line.
void read_rows(const std::string &text, const std::string &file, const std::function<void(const YAML::Node &row)> &read);

/// In `read`: the value of a key that the map must have.
YAML::Node needed(const YAML::Node &map, const std::string &key);

/// In `read`: what this node, or the row that lacks it, must be.
[[noreturn]] void refuse(const YAML::Node &node, const std::string &requirement);

} // namespace scalide
