#pragma once
#include "interpret/interpret.h"

namespace scalide {

/// Checks that `inputs` fit the arguments of `program` and returns the values of its symbols. A symbol is computed from an extent that is
/// linear in it and contains no other unknown symbol. All other extents must agree. Throws UserError for a wrong count, dtype, rank or
/// extent, and for a symbol that no argument determines or that is out of range.
Extent::Bindings bind_extents(const Program &program, const std::vector<Array> &inputs);

/// Returns the extents with numbers instead of symbols.
std::vector<int64_t> evaluate(const Extents &shape, const Extent::Bindings &bindings);

/// Returns the attributes with numbers instead of symbols.
Attributes evaluate(const Attributes &attributes, const Extent::Bindings &bindings);

} // namespace scalide
