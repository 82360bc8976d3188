#pragma once
#include "scaled_program.h"

namespace scalide::test {

/// Returns the program of one case of the suites of single operators (`primitives`, `primitives_lax`).
Program primitive_program(const nlohmann::json &entry);

/// Returns what the case needs and Scalide does not support: an operator, a dtype or an attribute value. Returns "" if there is none.
std::string missing_of(const nlohmann::json &entry);

} // namespace scalide::test
