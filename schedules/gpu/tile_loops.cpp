#include "schedules/gpu/tile_loops.h"
#include <algorithm>

namespace scalide {

TileLoops::TileLoops(LoweredKernel &kernel)
    : kernel_(kernel), stages_(std::get<TiledStages>(kernel.stages)), side_(stages_.side), across_(size_t(stages_.across)),
      tile_(stages_.tile), axes_(tile_.args()) {}

int TileLoops::extent_of_tile(size_t d) const {
    if (across_ == 0) return side_ * side_;
    return d == 0 || d == across_ ? side_ : 1;
}

std::vector<Halide::Var> TileLoops::in_order(std::vector<Halide::Var> blocks) const {
    if (across_ == 0) return blocks;
    const auto second = blocks.begin() + 1, across = blocks.begin() + std::ptrdiff_t(across_);
    std::rotate(second, across, across + 1);
    return blocks;
}

void TileLoops::run_together(Halide::Func func, const Halide::Var &block) {
    if (leader_.defined()) {
        func.compute_with(Halide::LoopLevel(leader_, block, 0), Halide::LoopAlignStrategy::AlignStart);
    } else {
        leader_ = func;
        block_ = Halide::LoopLevel(func, block);
    }
}

} // namespace scalide
