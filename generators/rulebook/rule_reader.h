#pragma once
#include "rulebook/rule.h"
#include "rulebook/yaml_value.h"

namespace scalide {

/// Reads a YAML document as a rule. It checks everything that needs no other rule; check_rule() checks the rest.
Rule read_rule(const YamlValue &document);

/// Reads attributes: `{norm: {type: word, of: [max, l1]}, to: {type: number, default: 1}, y: integer}`.
std::vector<AttributeSpec> read_attribute_specs(const YamlValue &value);

/// Reads the value of an attribute. Throws UserError if it does not have the type of `spec`.
Attribute read_attribute_value(const YamlValue &value, const AttributeSpec &spec);

/// Reads `[m, n]`, or `[[m, n], [m, n]]` for a variadic operand.
std::vector<std::vector<std::string>> read_shapes(const YamlValue &value, const OperandSpec &operand);

/// Reads the value of `check`.
Check read_check(const YamlValue &value, const Rule &rule);

} // namespace scalide
