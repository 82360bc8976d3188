#pragma once
#include "lower/kinds.h"

// The parts of lower/products/contract.cpp. C[b, m, n] = epilogue(sum over k of A[b, m, k] * B[b, k, n]): rows m, columns n, depth k.
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
    bool is_reversed = false;                             ///< something that it is made from is read in reverse
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
    int width = 0;                                      ///< columns of a panel, on CPUs
    /// Neighbouring depths are multiplied and added in pairs (vdpbf16ps, which takes subnormal bf16 numbers for zero); on CPUs.
    bool pairs = false;
    Halide::Func product; ///< (column, row, panel, batch)
};

/// What the parts leave for the schedule.
inline ContractStages &contract_stages(Lowering &lowering) { return std::get<ContractStages>(lowering.kernel.stages); }

/// Finds operands, axes and extents; decides `width` and `pairs`.
Contraction describe_contraction(const Lowering &lowering);

/// The f32 value of an operand, and the same as BFloat(16) when it is exact_bf16.
Halide::Expr operand_at(Values &values, const ContractOperand &operand, const ContractIndex &at);
Halide::Expr operand_bf16_at(Values &values, const ContractOperand &operand, const ContractIndex &at);

/// Packs what has to be packed and sums the products: defines `contraction.product`.
void lower_product(Lowering &lowering, Contraction &contraction);

/// For GPUs: defines `contraction.product`, (column, row, batch), without packing, binds the contraction to it and the reductions of
/// epilogue values to what lower/rows/reduction.h makes. What overhangs the matrix is the last row or column again.
void lower_plain_product(Lowering &lowering, Contraction &contraction, const std::vector<const Node *> &reductions);

/// The index of a result element: `batch`, `row`, `column`, without the axes that the result lacks.
Index result_index(const Contraction &contraction, const Index &batch_row_column);

/// Binds every `reduce_*` over all axes of an epilogue value, in one Tuple. The order of a fold depends on the extents alone: halves of a
/// panel's columns, then every 16th row over all panels and batches, then those 16.
void lower_contract_folds(Lowering &lowering, const Contraction &contraction, const std::vector<const Node *> &reductions);

/// Binds every reduction of an operand's values.
void lower_contract_sums(Lowering &lowering, const std::vector<const Node *> &reductions);

} // namespace scalide
