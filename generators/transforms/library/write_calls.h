#pragma once
#include "ir/program.h"
#include "transforms/target_facts.h"

namespace scalide {

/// Writes the products that a library computes (TargetFacts::products) as it does: operands that would be made on the way, or lie otherwise
/// than the library needs, are copied, with zeros where an extent is no multiple of what the library needs; reshapes of a product and of
/// what the library does besides (matmul_call.h), and the slices that drop what the zeros made, stand behind all of it.
Program write_calls(const Program &program, const TargetFacts &facts);

} // namespace scalide
