#pragma once
#include "lower/kinds.h"

// The parts of lower/contract.cpp. C[b, m, n] = epilogue(sum over k of A[b, m, k] * B[b, k, n]): rows m, columns n, depth k.
//
// Columns are counted in panels, n = panel * width + column, so that a schedule finds constant extents whatever n is. What overhangs the
// matrix (zeros, or the last row again) is computed and never stored; nothing outside of a buffer is read.

namespace scalide {

/// One operand of the contraction as a matrix.
struct ContractOperand {
    ValueId value = -1;
    int batch_axis = -1, free_axis = -1, depth_axis = -1; ///< -1: the operand has no such axis
    bool depth_contiguous = false;                        ///< neighbours along the depth are neighbours in memory
    bool plain = false;                                   ///< an f32 argument, read as it is
    bool exact_bf16 = false;                              ///< every value is a bf16 number
};

/// Where a product is.
struct ContractIndex {
    Halide::Expr batch, free, depth;
};

/// The dot_general of a kernel, and what the parts of its lowering hand to each other.
struct Contraction {
    const Node *node = nullptr;
    ContractOperand lhs, rhs;
    Extent batch = 1, rows = 1, columns = 1, depth = 1; ///< 1 for an axis that is not there
    int width = 0;                                      ///< columns of a panel
    /// Neighbouring depths are multiplied and added in pairs (vdpbf16ps, which takes subnormal bf16 numbers for zero).
    bool pairs = false;
    Halide::Func product; ///< (column, row, panel, batch)
};

/// Finds operands, axes and extents; decides `width` and `pairs`.
Contraction describe_contraction(const Lowering &lowering);

/// The f32 value of an operand, and the same as BFloat(16) when it is exact_bf16.
Halide::Expr operand_at(Values &values, const ContractOperand &operand, const ContractIndex &at);
Halide::Expr operand_bf16_at(Values &values, const ContractOperand &operand, const ContractIndex &at);

/// Packs what has to be packed and sums the products: defines `contraction.product`. Stages:
///   lhs       (k, m, batch) or (m, k, batch), as it lies in memory: the decoded left operand; not there when it is read as it is.
///             Pairs along the rows: (k % 2, m, k / 2, batch)
///   lhs_rows  (m, k, batch): decoded, before it is interleaved; only there for pairs along the rows
///   rhs       (column, k, panel, batch): the right operand. Pairs: (k % 2, column, k / 2, panel, batch)
///   rhs_rows  (column, k, panel, batch) or, when k is contiguous, (k, column, panel, batch): decoded, before it is transposed or
///             interleaved; only there when it is
///   rhs_block like rhs: what a schedule transposes in registers; only there when k is contiguous and there are no pairs
///   product   (column, row, panel, batch)
void lower_product(Lowering &lowering, Contraction &contraction);

/// For GPUs: defines `contraction.product`, (column, row, batch), without packing, binds the contraction to it and the reductions of
/// epilogue values to what lower/reduction.h makes. Stages: product, and those of reduce_all where there are reductions. What overhangs
/// the matrix is the last row or column again.
void lower_plain_product(Lowering &lowering, Contraction &contraction, const std::vector<const Node *> &reductions);

/// The index of a result element: `batch`, `row`, `column`, without the axes that the result lacks.
Index result_index(const Contraction &contraction, const Index &batch_row_column);

/// Binds every `reduce_*` over all axes of an epilogue value, in one Tuple. The order of a fold depends on the extents alone: halves of a
/// panel's columns, then every 16th row over all panels and batches, then those 16. Stages:
///   fold_terms    (column, row, panel, batch): what is folded, the identity beyond the last column
///   fold_halves   (column, row, panel, batch): several, half as many columns each time, at last one
///   fold_partials (row, panel) or, where there is one, (row, panel, batch): one panel of one row, kept; a schedule makes it beside the
///   result fold_lanes    (lane): every 16th row fold          (): the reductions
void lower_contract_folds(Lowering &lowering, const Contraction &contraction, const std::vector<const Node *> &reductions);

/// Binds every reduction of an operand's values. Stages `sums`: a Func a reduction, indexed as a buffer of its result.
void lower_contract_sums(Lowering &lowering, const std::vector<const Node *> &reductions);

} // namespace scalide
