#pragma once
#include "schedules/nests.h"

namespace scalide {

/// What schedules of kind tiled share (lower/products/tiled.cpp): the stages of a kernel, and loops over tiles that all of its outputs run
/// together.
class TileLoops {
protected:
    explicit TileLoops(LoweredKernel &kernel);

    /// Elements of a tile along buffer dimension `d` of the shape.
    int extent_of_tile(size_t d) const;
    /// Loops over tiles as tile_fold has its arguments: along the innermost axis, along that which tiles run over beside it, then the
    /// others.
    std::vector<Halide::Var> in_order(std::vector<Halide::Var> blocks) const;
    /// Runs the loop `block` of all that is given here as one loop; the tile is made in it.
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
