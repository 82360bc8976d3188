#pragma once
#include "expr/base_operators.h"

namespace scalide {

/// The rows of base_operators(), by file.
std::span<const BaseOperator> elementwise_operators();
std::span<const BaseOperator> array_operators();

/// What follows from signs of the operands alone, in both respects.
inline constexpr Signs never_below_zero = {From::no_operand, From::no_operand},
                       signs_of_operands = {From::all_operands, From::all_operands};

/// A row says all that would be wrong when it is left out.
constexpr bool is_complete(const BaseOperator &row) {
    const bool folds = row.shape == Shape::reduce || !row.fold.empty();
    return row.cost > 0 && (row.shape == Shape::source || row.arity != 0) && (!folds || !row.fold.empty()) &&
           (!row.is_idempotent || (row.is_commutative && row.fold_start));
}

} // namespace scalide
