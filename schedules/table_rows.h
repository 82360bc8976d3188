#pragma once
#include "rulebook/yaml_value.h"

namespace scalide {

/// The rows of a table in YAML, a list of maps, each called `row`. Throws UserError with file and line where it is none.
std::vector<YamlValue> read_rows(const std::string &text, const std::string &file);

/// An integer in [least, most]; UserError otherwise.
int64_t integer_in(const YamlValue &value, int64_t least, int64_t most);

} // namespace scalide
