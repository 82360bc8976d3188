#pragma once
#include "lower/values/kinds.h"
#include <optional>

// The parts of lower/products/contract.cpp. C[b, m, n] = epilogue(sum over k of A[b, m, k] * B[b, k, n]), with rows m, columns n and depth
// k.
//
// Columns are counted in panels, n = panel * width + column, so that schedules have constant extents for any n. Elements of a tile beyond
// the matrix are zeros or repeat the last row. They are computed but never stored, and nothing outside a buffer is read.

namespace scalide {

/// An operand that is a product of codes, which bf16 holds exactly, and factors that are constant along blocks of the depth. The codes are
/// multiplied in pairs, and the factors multiply the sum of a block. If a factor is infinite, a block of zeros is NaN and others infinite.
struct ContractFactors {
    ValueId codes = -1, factors = -1;
    Index place;       ///< the index of both, from any_batch, any_free and any_depth
    int64_t block = 0; ///< 0: the factor does not depend on the depth
};

/// One operand of the matmul as a matrix.
struct ContractOperand {
    ValueId value = -1;
    int batch_axis = -1, free_axis = -1, depth_axis = -1; ///< -1: the operand has no such axis
    bool depth_contiguous = false;                        ///< adjacent depths are adjacent in memory
    bool plain = false;                                   ///< an argument of 32 bits that is read directly
    Halide::Type exact;                                   ///< holds every value: bf16 or a narrow integer, otherwise the type of the value
    Halide::Type packed;                                  ///< the type of an element that is multiplied
    ValueId stored = -1;                                  ///< an argument that holds the packed elements; -1: there is none
    bool is_shifted = false;                              ///< packed elements are 128 more (u8) or less (i8) than the values
    bool is_reversed = false;                             ///< a value from which it is computed is read in reverse
    bool is_in_panels = false;                            ///< it is computed from an argument in panels (lower/values/panels.h)
    std::optional<ContractFactors> factors;               ///< packed elements are the codes
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
    /// Adjacent depths that one instruction multiplies and adds, on CPUs. 2: bf16 (vdpbf16ps, which treats subnormal bf16 numbers as zero)
    /// or i16 (vpmaddwd). 4: u8 by i8 (vpdpbusd). 1: no such instruction.
    int group = 1;
    bool in_tiles = false; ///< by tiles of AMX (lower/halide/amx_tiles.h), with groups of 2 (bf16) or 4 (bytes of any signs)
    int64_t block = 0;     ///< depths with the same factors, if an operand has any; 0: all
    Halide::Type sum; ///< of the accumulators. Integers wrap around: without groups they are u32, because Halide's i32 must not overflow
    Halide::Func product; ///< (column, row, panel, batch)
};

/// The stages that the parts leave for the schedule.
inline ContractStages &contract_stages(Lowering &lowering) { return std::get<ContractStages>(lowering.kernel.stages); }

/// Finds operands, axes and extents. Chooses `width`, `group` and the types.
Contraction describe_contraction(const Lowering &lowering);

/// Gives operands that bf16 does not hold their factors, if all such operands have some. Sets `block`.
void take_factors(const Lowering &lowering, Contraction &contraction);
/// Return the code and the factor of an operand that has factors.
Halide::Expr code_at(Values &values, const ContractOperand &operand, const ContractIndex &at);
Halide::Expr factor_at(Values &values, const ContractOperand &operand, const ContractIndex &at);

/// Returns a position as an index of the operand.
Index operand_index(Values &values, const ContractOperand &operand, const ContractIndex &at);
/// Returns the value of an operand, or its code if it has factors, and the packed element.
Halide::Expr operand_at(Values &values, const ContractOperand &operand, const ContractIndex &at);
Halide::Expr packed_at(Values &values, const ContractOperand &operand, const ContractIndex &at);
/// Returns the packed element of an operand with `stored`, as it is in memory.
Halide::Expr stored_at(Values &values, const ContractOperand &operand, const ContractIndex &at);

/// Packs operands if necessary and sums the products. Defines `contraction.product`.
void lower_product(Lowering &lowering, Contraction &contraction);

/// For GPUs: defines `contraction.product`, (column, row, batch), without packing. Binds the dot_general to it, and reductions of epilogue
/// values to reduce_all() (lower/rows/reduction.h). Indices beyond the matrix read the last row or column.
void lower_plain_product(Lowering &lowering, Contraction &contraction, const std::vector<const Node *> &reductions);

/// Returns the sum in the dtype of the result. Integers keep their low bits.
Halide::Expr to_result(const Lowering &lowering, const Contraction &contraction, const Halide::Expr &sum);

/// Returns the index of a result element from batch, row and column, without the axes that the result does not have.
Index result_index(const Contraction &contraction, const Index &batch_row_column);

/// Does the reverse: returns (column, row, panel, batch) of a result element, 0 for each axis that the result does not have.
std::vector<Halide::Expr> tile_index(const Contraction &contraction, const Index &index);

/// Binds every reduction of an epilogue value over all axes, in one Tuple. The order depends only on the extents: first halves of a panel's
/// columns, then every 16th row over all panels and batches, then the 16 results.
void lower_contract_folds(Lowering &lowering, const Contraction &contraction, const std::vector<const Node *> &reductions);

/// Binds every reduction of an operand's values.
void lower_contract_sums(Lowering &lowering, const std::vector<const Node *> &reductions);

} // namespace scalide
