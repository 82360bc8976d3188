#pragma once
#include "rulebook/rule.h"
#include "rulebook/yaml_value.h"

namespace scalide {

/// Reads one YAML document as a rule: keys, their types, and what can be said without other rules. check_rule() does the rest.
Rule read_rule(const YamlValue &document);

/// `{norm: {type: word, of: [max, l1]}, to: {type: number, default: 1}, y: integer}`
std::vector<AttributeSpec> read_attribute_specs(const YamlValue &value);

/// The value of `check`.
Check read_check(const YamlValue &value, const Rule &rule);

} // namespace scalide
