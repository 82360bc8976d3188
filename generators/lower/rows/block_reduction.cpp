#include "lower/rows/block_reduction.h"
#include <algorithm>

namespace scalide {
using Halide::Expr;
using Halide::Func;
using Halide::Var;

namespace {

constexpr int most_warps = 8, most_neighbours = 8;

class BlockLowering {
public:
    BlockLowering(const ReductionGroup &group, const ReductionSpace &space, const BlockShape &shape, size_t number)
        : group_(group), space_(space), shape_(shape), number_(std::to_string(number)), size_(int(group.identity().size())) {}

    Func build(const Func &partial, LaneStages &stages) {
        BlockReduction made{shape_.warps, shape_.neighbours, {}, Func("warp_" + number_)};
        std::vector<std::vector<Expr>> own;
        const Expr first = (warp_ * warp_threads + thread_) * shape_.neighbours;
        for (int i = 0; i < shape_.neighbours; i++) own.push_back(components(partial(at({first + i})), size_));
        Func last = add_turn(made, group_.tree(own));
        for (int distance = warp_threads / 2; distance > 0; distance /= 2) {
            const auto of = [&](const Expr &thread) { return components(last(at({thread, warp_})), size_); };
            last = add_turn(made, group_.combine(of(thread_), of(partner(thread_, distance))));
        }
        assign(made.warp(at({warp_})), Halide::Tuple(components(last(at({0, warp_})), size_)));
        Func fold("fold_" + number_);
        std::vector<std::vector<Expr>> warps;
        for (int i = 0; i < shape_.warps; i++) warps.push_back(components(made.warp(at({i})), size_));
        assign(fold(space_.outer), group_.tree(warps));
        stages.lane.push_back(partial);
        stages.fold.push_back(fold);
        stages.block.push_back(std::move(made));
        return fold;
    }

private:
    Func add_turn(BlockReduction &made, const Halide::Tuple &value) {
        Func turn("turn_" + number_ + "_" + std::to_string(made.turn.size()));
        assign(turn(at({thread_, warp_})), value);
        made.turn.push_back(turn);
        return turn;
    }

    std::vector<Expr> at(std::vector<Expr> place) const {
        place.insert(place.end(), space_.outer.begin(), space_.outer.end());
        return place;
    }

    const ReductionGroup &group_;
    const ReductionSpace &space_;
    const BlockShape shape_;
    const std::string number_;
    const int size_;
    Var thread_{"thread"}, warp_{"warp"};
};

} // namespace

// Halide knows no bounds of an exclusive or. It turns the clamped difference into one exchange.
Expr partner(const Expr &thread, int distance) {
    return Halide::clamp(thread + distance - (thread / distance) % 2 * (2 * distance), 0, warp_threads - 1);
}

BlockShape block_shape(int64_t columns, int bytes) {
    int neighbours = std::clamp(access_bytes / bytes, 1, most_neighbours);
    while (columns % neighbours != 0) neighbours /= 2;
    const int64_t warps = (columns + neighbours * warp_threads - 1) / (neighbours * warp_threads);
    return {int(std::clamp<int64_t>(warps, 1, most_warps)), neighbours};
}

Func reduce_by_block(Lowering &lowering, const ReductionGroup &group, ReductionSpace space, const BlockShape &shape, LaneStages &stages) {
    space.lanes = shape.elements();
    const Func partial = add_partial(lowering, group, space, stages);
    return BlockLowering(group, space, shape, stages.fold.size()).build(partial, stages);
}

} // namespace scalide
