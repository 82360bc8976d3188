#include "schedules/tile_loops.h"
#include <algorithm>

namespace scalide {

namespace {

int fact(const LoweredKernel &kernel, const char *name) { return int(to_number(kernel.facts.at(name))); }

} // namespace

TileLoops::TileLoops(LoweredKernel &kernel)
    : kernel_(kernel), side_x_(fact(kernel, "side_x")), side_y_(fact(kernel, "side_y")), across_(size_t(fact(kernel, "across"))),
      tile_(kernel.stages.at("tile")[0]), axes_(tile_.args()) {}

int TileLoops::extent_of_tile(size_t d) const {
    if (across_ == 0) return side_x_ * side_y_;
    return d == 0 ? side_x_ : d == across_ ? side_y_ : 1;
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
