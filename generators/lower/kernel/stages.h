#pragma once
#include "ir/extent.h"
#include <Halide.h>
#include <variant>

// The inner stages that lowering leaves for a kernel's schedule, and the extents on which loops depend. Comments list the arguments of a
// stage in buffer order. A stage that a kernel does not need is undefined, or its list is empty.
namespace scalide {

/// The stages of a reduction by all threads of a block (lower/rows/block_reduction.h).
struct BlockReduction {
    int warps = 0, neighbours = 0;  ///< of a block; adjacent elements of a thread. 0 warps: the reduction is in lanes
    std::vector<Halide::Func> turn; ///< (thread, warp, outer): the sum of a thread, then exchanges between the threads of a warp
    Halide::Func warp;              ///< (warp, outer): the result of a warp
};

/// Reductions in vector lanes (lower/rows/reduction.h). Each list has one entry for each reduction.
struct LaneStages {
    std::vector<Halide::Func> partial; ///< (lane, outer); updates over (columns, steps): whole vectors, then the remaining elements
    std::vector<Halide::Func> lane;    ///< (lane, outer) with 16 lanes; the same Func as `partial` if that has no more lanes
    std::vector<Halide::Func> fold;    ///< (outer): the result
    std::vector<BlockReduction>
        block; ///< for CUDA: a reduction by a block; `partial` has a lane for each element that threads read at once
};

/// Reductions of whole arrays (lower/rows/totals.cpp). Kernels of kind full contain nothing else.
struct TotalStages {
    LaneStages lanes;                 ///< the fold of the blocks has an argument; the folds of the remaining elements and of the blocks'
                                      ///< results have none
    std::vector<Halide::Func> totals; ///< (): one for each shape
};

/// column: reductions over the leading axes of arrays of one shape.
struct ColumnSums {
    Halide::Func block;           ///< (columns ..., block); update over the rows of a block
    Halide::Func rest;            ///< (columns ...); update over the rows after the last block; on a GPU they are one more block
    Halide::Func total;           ///< (columns ...); update over the blocks, if there are any
    Extent rows, columns, others; ///< all rows, the innermost axis, the product of the other axes
    int block_rows = 0;           ///< rows of a block
    int group = 1;                ///< rows of a block that one step adds; more than 1: in pairs (lower/halide/bf16_pairs.h)
};

struct ColumnStages {
    std::vector<ColumnSums> sums;
    TotalStages whole; ///< reductions of whole arrays in the same kernel
};

/// Sums over the rows of a row kernel (lower/rows/row_sums.h).
struct RowSumStages {
    int block_rows = 0;
    Halide::Func running; ///< (x, block): an update over the rows of the block, whose loop is named block_row_name; undefined before the
                          ///< first row
    Halide::Func lanes;   ///< (x, lane): an update over the blocks
};

/// row: outer arguments are the axes of the rows.
struct RowStages {
    Extent rows, columns;
    LaneStages lanes; ///< only `partial` if a warp computes a row
    /// If a warp of a GPU computes a row (lower/rows/row_warp.h): adjacent elements of a thread. Columns are then rounded up to a multiple
    /// of 32 times as many. Otherwise 0.
    int warp_neighbours = 0;
    std::vector<Halide::Func> slot;     ///< (slot, thread, rows): exchanges between lanes of different threads, on OpenCL
    std::vector<Halide::Func> turn;     ///< (thread, rows): exchanges between the threads of a warp
    std::vector<Halide::Func> argument; ///< (x, rows): on a GPU, arguments that are read once
    std::vector<Halide::Func> element;  ///< (x, rows): expensive values that several loops read
    std::vector<Halide::Func> scalar;   ///< (rows), in a warp (thread, rows): values that are broadcast to elements
    RowSumStages sums;                  ///< undefined if nothing is summed over the rows
    std::vector<Halide::Func> stored;   ///< (x, rows) or (rows): operands of reductions of whole arrays (lower/rows/whole.h)
    TotalStages whole;                  ///< reductions of these operands
};

struct TransposeStages {
    int across = 0;     ///< buffer dimension of the result that is contiguous in the argument; 0: none, the kernel is a map
    Halide::Func rows;  ///< (axes of the result): the argument's elements
    Halide::Func block; ///< the same elements; a schedule transposes this stage in registers
};

/// Packed operands of a matmul on CPUs (lower/products/contract.h). Columns are counted in panels.
struct PackedStages {
    int width = 0;         ///< columns of a panel
    int group = 1;         ///< adjacent depths that one instruction multiplies and adds
    bool in_tiles = false; ///< by tiles of AMX. Operands are then padded with zeros to whole steps along k
    bool lhs_depth_contiguous = false, rhs_depth_contiguous = false;
    Halide::Func lhs;         ///< (k, row, batch) or (row, k, batch), as in memory; undefined if the operand is read directly. With groups
                              ///< along the rows: (k % group, row, k / group, batch). In tiles: (k, row % 32, row / 32, batch), or words
                              ///< (k / group, row % 32, row / 32, batch) if k is not contiguous
    Halide::Func lhs_rows;    ///< (row, k, batch): decoded, before groups along the rows are interleaved, or before it is transposed. In
                              ///< tiles, if k is contiguous and not a multiple of a step: like lhs
    Halide::Func lhs_words;   ///< (row, k / group, batch): lhs_rows in words of a group, before they are transposed; in tiles only
    Halide::Func lhs_block;   ///< like lhs, (k, row, batch), or words; a schedule transposes it in registers. Undefined if lhs is as in
                              ///< memory
    Halide::Func rhs;         ///< (column, k, panel, batch). With groups: (k % group, column, k / group, panel, batch). Undefined if an
                              ///< argument has the panels
    Halide::Func rhs_rows;    ///< (column, k, panel, batch) or, if k is contiguous, (k, column, panel, batch): decoded, before it is
                              ///< transposed or interleaved; undefined otherwise
    Halide::Func rhs_block;   ///< like rhs; a schedule transposes it in registers; only if k is contiguous and there are no groups
    Halide::Func rhs_factors; ///< (column, block, panel, batch): factors of the right operand; undefined if it has none
    Halide::Func column_sums; ///< (column, panel, batch): sums of the right operand over k; an update. Undefined if bytes are not shifted
    Halide::Func ones;        ///< (k % group): a factor of column_sums
};

/// Reductions in the epilogue of a matmul on CPUs (lower/products/contract_reductions.cpp).
struct EpilogueFoldStages {
    std::vector<Halide::Func> kept;   ///< (column, row, panel, batch): elements of an overwritten argument, read before the row is stored
    Halide::Func terms;               ///< (column, row, panel, batch): the reduced values; the identity after the last column
    std::vector<Halide::Func> halves; ///< (column, row, panel, batch): each has half as many columns as the one before; the last has one
    Halide::Func partials; ///< (row, panel) or (row, panel, batch): the result for one panel of one row; a schedule computes it in the
                           ///< loops of the result
    Halide::Func lanes;    ///< (lane): a reduction of every 16th row
};

/// A sum of products (lower/rows/blocked_sum.h). All Funcs have the same arguments.
struct SumStages {
    Halide::Func value;  ///< the sum that consumers read; inlined, unless a schedule stores it
    Halide::Func last;   ///< an update over the terms of the last block
    Halide::Func before; ///< an update over the earlier blocks; undefined if one block is enough
    Halide::Func block;  ///< one earlier block, with a further argument for each axis that is divided into blocks; an update over its terms
};

struct ContractStages {
    Extent batch = 1, rows = 1, columns = 1, depth = 1; ///< 1 for an axis that the result does not have
    bool has_rows = false, has_columns = false;         ///< whether the result has these axes
    PackedStages packed;
    SumStages product;           ///< (column, row, panel, batch); on GPUs (column, row, batch)
    std::vector<SumStages> sums; ///< sums of an operand's values, each with the axes of its result's buffer
    EpilogueFoldStages folds;
    TotalStages totals; ///< on GPUs: replaces `folds`
};

struct ScanStages {
    int axis = 0;      ///< buffer dimension that is scanned
    Halide::Func scan; ///< (axes of the array); an update computes the scan
};

struct ScatterStages {
    std::vector<int> whole; ///< buffer dimensions of the result that every window covers completely
    Halide::Func counts;    ///< (element, turn, block): what each block of updates adds up; undefined: there are no blocks
    Halide::Expr blocks;    ///< the number of blocks
    int block = 0;          ///< the updates of a block
};

/// sort: a sorting network for short lines (lower/sorts/sort_network.cpp), a radix sort for the others (lower/sorts/sort_digits.cpp).
struct SortStages {
    int axis = 0;         ///< buffer dimension that is sorted
    Halide::Func network; ///< (other axes, position): update 0 fills it, update 1 orders pairs. An exchange has three moves, its r.x
    std::vector<Halide::Func> words; ///< (position, other axes): one Func for each key
    Halide::Func order; ///< (slot, other axes): two halves of positions, between which digits move them, then the counts. Update 0 clears
                        ///< the counts; further updates process the digits. A move has two steps, its r.x
};

/// window: reductions of windows.
struct WindowStages {
    Halide::Func fold;   ///< (axes of the result): a reduction over large windows
    Halide::Func winner; ///< (axes of the windows): the element that each window selects
};

/// window: a convolution (lower/windows/window_convolution.cpp).
struct ConvolutionStages {
    int width = 0;                              ///< vector lanes of a register tile
    int group = 1;                              ///< input features that one instruction multiplies
    bool in_tiles = false;                      ///< by tiles of AMX (lower/halide/amx_tiles.h), 32 rows and columns
    bool has_panels = false;                    ///< lanes are features
    int lane_dimension = 0, tile_dimension = 0; ///< dimensions of the result's buffer
    int image_dimension = 0;                    ///< the dimension of the result's buffer that counts images
    Extent lanes, tile;                         ///< extents of these axes
    Extent terms;                               ///< terms of a sum
    Halide::Func lhs;  ///< the padded, dilated and decoded images, with axes as in memory; undefined if the argument is read directly
    Halide::Func rhs;  ///< the weights: (column, input feature, window positions, panel) if lanes are features, otherwise axes as in
                       ///< memory; undefined if the argument is read directly. Groups: (item, column, group, ...)
    SumStages product; ///< (column, row, panel, other axes): lane panel * width + column; sums over (input feature, window positions, last
                       ///< axis first), of groups over (item, group, ...)
};

struct TiledStages {
    int side = 0;   ///< side of a tile
    int across = 0; ///< buffer dimension that tiles cover besides the innermost one; 0: none, a tile is side^2 adjacent elements
    /// Adjacent elements along each dimension that a thread of a GPU may access together. 1 if the extent is not known to be a multiple.
    int together_x = 1, together_y = 1;
    Halide::Func tile;  ///< (axes of the shape): the results' elements, then the terms of reductions
    LaneStages of_tile; ///< reductions of each tile; outer arguments: tile_x, tile_y, then the axes that tiles do not cover
    TotalStages whole;  ///< reductions of the tiles' results; `totals` is empty
};

/// A stage of a small kernel. One thread computes the stages in order, and each is stored.
struct SmallStage {
    enum class Kind {
        value,   ///< (axes of the value)
        sum,     ///< (axes of the value); an update over one RVar
        vectors, ///< (lane, vector, other axes): the same for rows that are no whole vectors. The last vector ends with the row
        joined,  ///< (axes of the value): an update over (lane, vector) that stores such vectors in a row
    };
    Kind kind;
    Halide::Func func;
    std::vector<int64_t> extents; ///< by argument
};

struct SmallStages {
    std::vector<SmallStage> funcs;
    LaneStages lanes; ///< reductions of trailing axes; all arguments are bounded
};
constexpr int small_lanes = 16; ///< elements of a vector of a small kernel

/// Kernels of kind scalar and map have only outputs, and no stages.
using Stages = std::variant<std::monostate, TotalStages, ColumnStages, RowStages, TransposeStages, ContractStages, ScanStages,
                            ScatterStages, SortStages, WindowStages, ConvolutionStages, TiledStages, SmallStages>;

} // namespace scalide
