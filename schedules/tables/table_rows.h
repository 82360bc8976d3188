#pragma once
#include "rulebook/yaml_value.h"

namespace scalide {

/// Reads a YAML table: a list of maps, each called `row`. Throws UserError with file and line if the text is no such list.
std::vector<YamlValue> read_rows(const std::string &text, const std::string &file);

/// Returns an integer in [least, most]. Throws UserError for other values.
int64_t integer_in(const YamlValue &value, int64_t least, int64_t most);

} // namespace scalide
