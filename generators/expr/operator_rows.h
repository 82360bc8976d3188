#pragma once
#include "expr/base_operators.h"

namespace scalide {

/// The rows of base_operators(), in two files.
std::span<const BaseOperator> elementwise_operators();
std::span<const BaseOperator> array_operators();

/// Common values of BaseOperator::signs.
inline constexpr Signs never_below_zero = {From::no_operand, From::no_operand},
                       signs_of_operands = {From::all_operands, From::all_operands};

/// Returns true if the row sets every member whose default would be wrong.
constexpr bool is_complete(const BaseOperator &row) {
    const bool folds = row.shape == Shape::reduce || !row.fold.empty();
    return row.cost > 0 && (row.shape == Shape::source || row.arity != 0) && (!folds || !row.fold.empty()) &&
           (!row.is_idempotent || (row.is_commutative && row.fold_start));
}

} // namespace scalide
