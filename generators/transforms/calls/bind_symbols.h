#pragma once
#include "ir/program.h"

namespace scalide {

/// The sub-program of a call in the symbols of the caller: those of its arguments' extents are replaced by what the operands have there.
/// Throws UserError at the call when operands of these types don't fit the arguments, or when an extent leaves the bounds that the
/// sub-program declares for its symbol.
Program bind_symbols(const Node &call, const Program &callee, const std::vector<Type> &operands, const std::vector<Symbol> &caller_symbols);

} // namespace scalide
