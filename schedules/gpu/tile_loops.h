#pragma once
#include "schedules/tables/nests.h"

namespace scalide {

/// Shared by the CPU and GPU schedules of kind tiled (lower/products/tiled.cpp): the stages of a kernel, and the loops over tiles that all
/// outputs share.
class TileLoops {
protected:
    explicit TileLoops(LoweredKernel &kernel);

    /// Returns the elements of a tile along buffer dimension `d` of the shape.
    int extent_of_tile(size_t d) const;
    /// Sorts loops over tiles like the arguments of the tiles' reductions: along the innermost axis, along the other axis that tiles cover,
    /// then the others.
    std::vector<Halide::Var> in_order(std::vector<Halide::Var> blocks) const;
    /// Makes all given Funcs share the loop `block`, in which the tile is computed.
    void run_together(Halide::Func func, const Halide::Var &block);

    LoweredKernel &kernel_;
    const TiledStages &stages_;
    int side_;
    size_t across_;
    Halide::Func tile_;
    Halide::LoopLevel block_;
    std::vector<Halide::Var> axes_; ///< of the shape, innermost first

private:
    Halide::Func leader_;
};

} // namespace scalide
