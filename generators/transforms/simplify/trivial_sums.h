#pragma once
#include "ir/program.h"
#include "rulebook/rulebook.h"

namespace scalide {

/// Replaces each dot_general whose sums have one term by a multiplication, and each whose sums have no term by zeros. A sum has one term if
/// no axis is contracted, or if all contracted axes have extent 1. A symbolic extent that may be 1 does not count.
///
/// Policies round the operands of matmuls, because the errors of a long sum average out. The error of a single product does not: outer
/// products, such as the angles of rotary embeddings, need all digits. So this runs before policies see a program.
Program remove_trivial_sums(const Program &program, const Rulebook &rulebook);

} // namespace scalide
