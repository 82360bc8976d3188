#pragma once
#include "rulebook/builder.h"
#include <nlohmann/json.hpp>

namespace scalide::test {

/// The program of a graph in the neutral form of the golden data, `flat`: {consts, invars, eqns, outvars}. Arguments are a0, a1 ... and
/// results r0, r1 ... in order, all plain. Literals become constants; operands of elementwise operators grow to the shape of the result.
/// Throws std::runtime_error on a primitive or literal that it does not know: ask `unknown_primitives` first.
Program import_graph(const nlohmann::json &flat, const Rulebook &rulebook);

/// Appends one primitive. Operands of elementwise operators grow to their common shape.
std::vector<ValueId> add_primitive(Builder &builder, const std::string &name, const nlohmann::json &params, std::vector<ValueId> operands);
bool has_primitive(const Rulebook &rulebook, const std::string &name);

/// Returns each primitive of a graph that has no operator in Scalide, once.
std::vector<std::string> unknown_primitives(const nlohmann::json &flat, const Rulebook &rulebook);

/// Returns the type of a descriptor {dtype, shape}.
Type type_of(const nlohmann::json &descriptor);

/// A number of the index: "nan", "inf" and "-inf" are strings.
double to_number(const nlohmann::json &number);

} // namespace scalide::test
