#pragma once
#include "ir/extent.h"
#include <Halide.h>
#include <variant>

// What the lowering of each kind of kernel hands to its schedule: the inner stages, and what the loops around them depend on. Comments say
// what a stage is over (its arguments, in the order of a buffer). A stage that a kernel does not need is not defined, or its list is empty.
namespace scalide {

/// Reductions in lanes (lower/rows/reduction.h): the same number of each stage, one a reduction.
struct LaneStages {
    std::vector<Halide::Func> partial; ///< (lane, outer); updates: whole vectors, then the rest, each over (columns, steps)
    std::vector<Halide::Func> lane;    ///< (lane, outer), 16 of them; the same Func as `partial` where that has no more
    std::vector<Halide::Func> fold;    ///< (outer): the result
};

/// Reductions of whole arrays (lower/rows/totals.cpp). Kernels of kind full have nothing else.
struct TotalStages {
    LaneStages lanes;                 ///< the fold of the blocks has an argument, those of the rest and of the blocks' results have none
    std::vector<Halide::Func> totals; ///< (): of each shape
};

/// column: the reductions of one shape over its leading axes.
struct ColumnSums {
    Halide::Func block;           ///< (columns ..., block); update over the rows of a block
    Halide::Func rest;            ///< (columns ...); update over the rows after the last block; on a GPU these are one more block
    Halide::Func total;           ///< (columns ...); update over the blocks, if there are any
    Extent rows, columns, others; ///< extents: all rows, the innermost axis, the product of the other axes
};

struct ColumnStages {
    int block_rows = 0;
    std::vector<ColumnSums> sums;
    TotalStages whole; ///< reductions of whole arrays beside them
};

/// Sums over the rows of a row kernel (lower/rows/row_sums.h).
struct RowSumStages {
    int block_rows = 0;
    Halide::Func running; ///< (x, block): an update over the rows of the block, whose loop is named block_row_name; undefined before it
    Halide::Func lanes;   ///< (x, lane): an update over the blocks
};

/// row. Outer arguments are the axes of the rows.
struct RowStages {
    Extent rows, columns;
    LaneStages lanes; ///< `partial` alone where a warp makes a row
    /// A warp of a GPU makes a row (lower/rows/row_warp.h), whose columns are rounded up to a multiple of most_lanes.
    bool is_warp = false;
    std::vector<Halide::Func> slot;     ///< (slot, thread, rows): exchanges between the lanes of a warp
    std::vector<Halide::Func> turn;     ///< (thread, rows): exchanges between its threads
    std::vector<Halide::Func> argument; ///< (x, rows): arguments that are read once, on a GPU
    std::vector<Halide::Func> element;  ///< (x, rows): expensive values that several loops need
    std::vector<Halide::Func> scalar;   ///< (rows), in a warp (thread, rows): values that elements need
    RowSumStages sums;                  ///< not defined where nothing is summed over the rows
    std::vector<Halide::Func> stored;   ///< (x, rows) or (rows): what reductions of whole arrays read (lower/axes/whole.h)
    TotalStages whole;                  ///< these reductions
};

struct TransposeStages {
    int across = 0;     ///< buffer dimension of the result that runs along the argument's memory; 0: none, the kernel is a map
    Halide::Func rows;  ///< (axes of the result): the words of the argument
    Halide::Func block; ///< the same; what a schedule transposes
};

/// How the operands of a contraction are packed, on CPUs (lower/products/contract.h). Columns are counted in panels.
struct PackedStages {
    int width = 0;      ///< columns of a panel
    bool pairs = false; ///< neighbouring depths are multiplied and added in pairs
    bool lhs_depth_contiguous = false, rhs_depth_contiguous = false;
    Halide::Func lhs;       ///< (k, row, batch) or (row, k, batch), as in memory; not there when the operand is read as it is. Pairs along
                            ///< the rows: (k % 2, row, k / 2, batch)
    Halide::Func lhs_rows;  ///< (row, k, batch): decoded, before it is interleaved; for pairs along the rows alone
    Halide::Func rhs;       ///< (column, k, panel, batch). Pairs: (k % 2, column, k / 2, panel, batch)
    Halide::Func rhs_rows;  ///< (column, k, panel, batch) or, where k is contiguous, (k, column, panel, batch): decoded, before it is
                            ///< transposed or interleaved; only there when it is
    Halide::Func rhs_block; ///< like rhs: what a schedule transposes in registers; where k is contiguous and there are no pairs
};

/// Reductions of the epilogue of a contraction, on CPUs (lower/products/contract_reductions.cpp).
struct EpilogueFoldStages {
    Halide::Func terms;               ///< (column, row, panel, batch): what is folded, the identity beyond the last column
    std::vector<Halide::Func> halves; ///< (column, row, panel, batch): half as many columns each time, at last one
    Halide::Func partials; ///< (row, panel) or, where there is one, (row, panel, batch): one panel of one row, kept; a schedule makes it
                           ///< beside the result
    Halide::Func lanes;    ///< (lane): every 16th row
};

/// A sum of products (lower/rows/blocked_sum.h). All are over the same arguments.
struct SumStages {
    Halide::Func value;  ///< what readers see; no stage of its own, unless a schedule keeps it
    Halide::Func last;   ///< an update over the terms of the last block
    Halide::Func before; ///< an update over the blocks before it; not defined where one block is enough
    Halide::Func block;  ///< one of these, with a further argument for each divided axis: an update over its terms
};

struct ContractStages {
    Extent batch = 1, rows = 1, columns = 1, depth = 1; ///< 1 for an axis that the result lacks
    bool has_rows = false, has_columns = false;         ///< axes of the result
    PackedStages packed;
    SumStages product;           ///< (column, row, panel, batch); on GPUs (column, row, batch)
    std::vector<SumStages> sums; ///< of an operand's values, each indexed as a buffer of its result
    EpilogueFoldStages folds;
    TotalStages totals; ///< on GPUs: what the folds are on CPUs
};

struct ScanStages {
    int axis = 0;      ///< buffer dimension that is scanned
    Halide::Func scan; ///< (axes of the array); its update folds
};

struct ScatterStages {
    std::vector<int> whole; ///< buffer dimensions of the result that every window covers
};

/// sort: a network of short lines (lower/sorts/sort_network.cpp), digits of the others (lower/sorts/sort_digits.cpp).
struct SortStages {
    int axis = 0;         ///< buffer dimension that is sorted
    Halide::Func network; ///< (place, two halves that passes go between, other axes); update 0 fills it, update 1 runs the passes
    std::vector<Halide::Func> words; ///< (place, other axes): a key each
    Halide::Func order; ///< (slot, other axes): two halves of places, between which digits go, then the counts. Update 0 clears the counts;
                        ///< then those of every digit; what moves has two steps, its r.x
};

/// window: reductions of windows.
struct WindowStages {
    Halide::Func fold;   ///< (axes of the result): a reduction of large windows
    Halide::Func winner; ///< (axes of the windows): the element that each chooses
};

/// window: a convolution (lower/windows/window_convolution.cpp).
struct ConvolutionStages {
    int width = 0;                              ///< lanes of a register tile
    int lane_dimension = 0, tile_dimension = 0; ///< of the result's buffer
    Extent lanes, tile;                         ///< extents of these axes
    Extent terms;                               ///< of a sum
    Halide::Func lhs;  ///< the padded, dilated and decoded images, axes as in memory; not there when the argument is read as it is
    Halide::Func rhs;  ///< the weights, (column, input feature, places, panel) when features are lanes, else axes as in memory; likewise
    SumStages product; ///< (column, row, panel, other axes): lane number panel * width + column; sums over (input feature, places of the
                       ///< window, last axis first)
};

struct TiledStages {
    int side = 0;   ///< of a tile
    int across = 0; ///< buffer dimension of the shape that tiles run over beside the innermost; 0: none, a tile is side^2 neighbours
    /// Neighbours along each of these that a thread of a GPU may take together; 1 where the extent is not known to be a multiple.
    int together_x = 1, together_y = 1;
    Halide::Func tile;  ///< (axes of the shape): the words of results, then the terms of reductions
    LaneStages of_tile; ///< reductions of each tile; outer arguments: tile_x, tile_y, then the axes that tiles do not run over
    TotalStages whole;  ///< reductions of what the tiles gave, without totals
};

/// Kernels of kind scalar and map have outputs alone.
using Stages = std::variant<std::monostate, TotalStages, ColumnStages, RowStages, TransposeStages, ContractStages, ScanStages,
                            ScatterStages, SortStages, WindowStages, ConvolutionStages, TiledStages>;

} // namespace scalide
