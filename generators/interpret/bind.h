#pragma once
#include "interpret/interpret.h"

namespace scalide {

/// Checks that `inputs` fit the arguments of `program` and returns the values of its symbols. Symbols are found where an extent is linear
/// in one that is still unknown; the rest must agree. Throws UserError: wrong count, dtype, rank or extent, a symbol that no argument
/// tells or that leaves its range.
Extent::Bindings bind_extents(const Program &program, const std::vector<Array> &inputs);

/// The extents with numbers for their symbols.
std::vector<int64_t> evaluate(const Extents &shape, const Extent::Bindings &bindings);

/// The attributes with numbers for their symbols.
Attributes evaluate(const Attributes &attributes, const Extent::Bindings &bindings);

} // namespace scalide
