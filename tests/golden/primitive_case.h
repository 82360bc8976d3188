#pragma once
#include "scaled_program.h"

namespace scalide::test {

/// The program of one case of the suites of single operators (`primitives`, `primitives_lax`).
Program primitive_program(const nlohmann::json &entry);

/// What the case needs and we do not have: an operator, a dtype or an attribute value; "" for nothing.
std::string missing_of(const nlohmann::json &entry);

} // namespace scalide::test
