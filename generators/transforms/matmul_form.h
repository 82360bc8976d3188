#pragma once
#include "ir/program.h"
#include <optional>

namespace scalide {

/// An operand of a product as a dense array in memory: rows that are contiguous along k, or along the other axis.
struct MatmulOperand {
    ValueId value = -1; ///< in memory, in its storage format
    bool k_contiguous = true;
    Extent leading = 1;      ///< elements from row to row
    Extent batch_stride = 0; ///< elements from matrix to matrix
};

/// A dot_general as D[batch, m, n] = alpha sum_k lhs[batch, m, k] rhs[batch, n, k] of arrays in memory.
struct MatmulForm {
    Extent batch = 1, m, n, k;
    MatmulOperand lhs, rhs;
};

/// The form of a dot_general with one axis a group (normalize_dot.h). Nothing where the last axis of an operand is that of the batch.
std::optional<MatmulForm> matmul_form(const Program &program, const Node &dot);

} // namespace scalide
