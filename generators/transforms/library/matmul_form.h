#pragma once
#include "ir/program.h"
#include <optional>

namespace scalide {

/// The scales of a matmul operand: one number for each block of encoded values.
struct BlockScales {
    ValueId value = -1;     ///< one for each block, in the order of the blocks; -1: none
    Extent rows = 1, k = 1; ///< extents of a block
};

/// A matmul operand as a dense array in memory. Rows are contiguous along k or along the other axis.
struct MatmulOperand {
    ValueId value = -1; ///< the array in memory, in its storage format
    bool k_contiguous = true;
    Extent leading = 1;      ///< elements from one row to the next
    Extent batch_stride = 0; ///< elements from one matrix to the next
    BlockScales scales = {};
};

/// A dot_general as D[batch, m, n] = alpha sum_k lhs[batch, m, k] rhs[batch, n, k], with arrays in memory.
struct MatmulForm {
    Extent batch = 1, m, n, k;
    MatmulOperand lhs, rhs;
};

/// Returns the form of a dot_general with one axis for each group (normalize_dot.h). Returns nothing if the last axis of an operand is the
/// batch axis. `makers`: producers(program).
std::optional<MatmulForm> matmul_form(const Program &program, const std::vector<int> &makers, const Node &dot);

/// The form of a dot_general whose operands are encoded values times scales. The operands of the form are the encoded values; `muls` are
/// the nodes that multiply them.
struct ScaledForm {
    MatmulForm form;
    std::vector<int> muls;
};
std::optional<ScaledForm> scaled_form(const Program &program, const std::vector<int> &makers, const Node &dot);

/// Returns the array in memory from which a value is converted to f32 or reshaped. `makers`: producers(program).
ValueId array_behind(const Program &program, const std::vector<int> &makers, ValueId value);

} // namespace scalide
