#pragma once
#include "ir/program.h"
#include <optional>

namespace scalide {

/// What an operand's codes are multiplied by before they are multiplied with the other's: a number for each block of them.
struct BlockScales {
    ValueId value = -1;     ///< one for each block, in their order; -1: none
    Extent rows = 1, k = 1; ///< elements of a block
};

/// An operand of a product as a dense array in memory: rows that are contiguous along k, or along the other axis.
struct MatmulOperand {
    ValueId value = -1; ///< in memory, in its storage format
    bool k_contiguous = true;
    Extent leading = 1;      ///< elements from row to row
    Extent batch_stride = 0; ///< elements from matrix to matrix
    BlockScales scales = {};
};

/// A dot_general as D[batch, m, n] = alpha sum_k lhs[batch, m, k] rhs[batch, n, k] of arrays in memory.
struct MatmulForm {
    Extent batch = 1, m, n, k;
    MatmulOperand lhs, rhs;
};

/// The form of a dot_general with one axis a group (normalize_dot.h). Nothing where the last axis of an operand is that of the batch.
/// `makers`: producers(program).
std::optional<MatmulForm> matmul_form(const Program &program, const std::vector<int> &makers, const Node &dot);

/// The same of the codes of two operands that are codes times scales; `muls`: the nodes that multiply these.
struct ScaledForm {
    MatmulForm form;
    std::vector<int> muls;
};
std::optional<ScaledForm> scaled_form(const Program &program, const std::vector<int> &makers, const Node &dot);

/// The array in memory behind a value: conversions to f32 and reshapes looked through. `makers`: producers(program).
ValueId array_behind(const Program &program, const std::vector<int> &makers, ValueId value);

} // namespace scalide
