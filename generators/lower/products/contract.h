#pragma once
#include "lower/kinds.h"

// The parts of lower/products/contract.cpp. C[b, m, n] = epilogue(sum over k of A[b, m, k] * B[b, k, n]), with rows m, columns n and depth
// k.
//
// Columns are counted in panels, n = panel * width + column, so that schedules have constant extents for any n. Elements of a tile beyond
// the matrix are zeros or repeat the last row. They are computed but never stored, and nothing outside a buffer is read.

namespace scalide {

/// One operand of the matmul as a matrix.
struct ContractOperand {
    ValueId value = -1;
    int batch_axis = -1, free_axis = -1, depth_axis = -1; ///< -1: the operand has no such axis
    bool depth_contiguous = false;                        ///< adjacent depths are adjacent in memory
    bool plain = false;                                   ///< an f32 argument that is read directly
    bool exact_bf16 = false;                              ///< every value is exact in bf16
    bool is_reversed = false;                             ///< a value from which it is computed is read in reverse
};

/// A position in an operand.
struct ContractIndex {
    Halide::Expr batch, free, depth;
};

/// The dot_general of a kernel, and the data that the parts of its lowering share.
struct Contraction {
    const Node *node = nullptr;
    ContractOperand lhs, rhs;
    Extent batch = 1, rows = 1, columns = 1, depth = 1; ///< 1 for an axis that does not exist
    int width = 0;                                      ///< columns of a panel, on CPUs
    /// True if adjacent depths are multiplied and added in pairs (vdpbf16ps, which treats subnormal bf16 numbers as zero); CPUs only.
    bool pairs = false;
    Halide::Func product; ///< (column, row, panel, batch)
};

/// The stages that the parts leave for the schedule.
inline ContractStages &contract_stages(Lowering &lowering) { return std::get<ContractStages>(lowering.kernel.stages); }

/// Finds operands, axes and extents. Chooses `width` and `pairs`.
Contraction describe_contraction(const Lowering &lowering);

/// Returns the f32 value of an operand, or the same value as BFloat(16) if the operand is exact_bf16.
Halide::Expr operand_at(Values &values, const ContractOperand &operand, const ContractIndex &at);
Halide::Expr operand_bf16_at(Values &values, const ContractOperand &operand, const ContractIndex &at);

/// Packs operands if necessary and sums the products. Defines `contraction.product`.
void lower_product(Lowering &lowering, Contraction &contraction);

/// For GPUs: defines `contraction.product`, (column, row, batch), without packing. Binds the dot_general to it, and reductions of epilogue
/// values to reduce_all() (lower/rows/reduction.h). Indices beyond the matrix read the last row or column.
void lower_plain_product(Lowering &lowering, Contraction &contraction, const std::vector<const Node *> &reductions);

/// Returns the index of a result element from batch, row and column, without the axes that the result does not have.
Index result_index(const Contraction &contraction, const Index &batch_row_column);

/// Binds every reduction of an epilogue value over all axes, in one Tuple. The order depends only on the extents: first halves of a panel's
/// columns, then every 16th row over all panels and batches, then the 16 results.
void lower_contract_folds(Lowering &lowering, const Contraction &contraction, const std::vector<const Node *> &reductions);

/// Binds every reduction of an operand's values.
void lower_contract_sums(Lowering &lowering, const std::vector<const Node *> &reductions);

} // namespace scalide
