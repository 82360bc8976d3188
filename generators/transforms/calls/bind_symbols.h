#pragma once
#include "ir/program.h"

namespace scalide {

/// Returns the sub-program of a call with the caller's symbols: symbols of its arguments' extents are replaced by the operands' extents.
/// Throws UserError at the call if the operands' types do not fit. Also throws if an extent is outside the bounds that the sub-program
/// declares for its symbol.
Program bind_symbols(const Node &call, const Program &callee, const std::vector<Type> &operands, const std::vector<Symbol> &caller_symbols);

} // namespace scalide
