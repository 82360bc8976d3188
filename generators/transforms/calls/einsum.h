#pragma once
#include "rulebook/builder.h"

namespace scalide {

/// Writes `einsum(operands...) {subscripts: "bij,bjk->bik"}` as a program of ordinary operators, with matmuls where letters are contracted.
/// The subscripts are those of numpy.einsum. Operands are multiplied from the first to the last. Throws UserError at the call if the
/// subscripts do not fit the types of the operands.
Program einsum_program(const Node &call, const std::vector<Type> &operands, const Rulebook &rulebook);

} // namespace scalide
