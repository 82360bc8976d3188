#include "lower/rows/row_warp.h"

namespace scalide {
using Halide::Expr;
using Halide::Func;

namespace {

class WarpReduction {
public:
    WarpReduction(Lowering &lowering, const ReductionGroup &group, const ReductionSpace &space, RowStages &stages)
        : lowering_(lowering), group_(group), space_(space), stages_(stages), size_(int(group.identity().size())) {}

    static_assert(warp_neighbours == 2 && most_lanes == 64);
    // reduce_lanes() combines lane i with i + 16, then with i + 32. The remaining sixteen lanes combine with neighbours at distance 1, 2, 4
    // and 8.
    Func build() {
        const Func partial = add_partial(lowering_, group_, space_, stages_.lanes);
        const Func first = exchange_lanes(8, [&](const Expr &thread) { return partial(at({thread * warp_neighbours + slot_})); });
        const Func second = exchange_lanes(16, [&](const Expr &thread) { return first(at({slot_, thread})); });
        Func last = add("turn", stages_.turn);
        std::vector<std::vector<Expr>> neighbours;
        for (int slot = 0; slot < warp_neighbours; slot++) neighbours.push_back(components(second(at({slot, thread_})), size_));
        assign(last(at({thread_})), group_.tree(neighbours));
        for (const int distance : {1, 2, 4})
            last = exchange(add("turn", stages_.turn), {}, distance, [last, this](const Expr &thread) { return last(at({thread})); });
        return last;
    }

private:
    using Read = std::function<Halide::FuncRef(const Expr &thread)>;

    static Func add(const std::string &name, std::vector<Func> &stages) {
        stages.push_back(Func(name + "_" + std::to_string(stages.size())));
        return stages.back();
    }

    Func exchange_lanes(int distance, const Read &read) { return exchange(add("slot", stages_.slot), {slot_}, distance, read); }

    /// Defines `func` over (slots, thread) as the combined values of two threads at this distance.
    Func exchange(const Func &func, std::vector<Expr> args, int distance, const Read &read) {
        args.emplace_back(thread_);
        assign(func(at(args)), group_.combine(components(read(thread_), size_), components(read(partner(thread_, distance)), size_)));
        return func;
    }

    std::vector<Expr> at(std::vector<Expr> place) const {
        place.insert(place.end(), space_.outer.begin(), space_.outer.end());
        return place;
    }

    Lowering &lowering_;
    const ReductionGroup &group_;
    const ReductionSpace &space_;
    RowStages &stages_;
    int size_;
    Halide::Var slot_{"slot"}, thread_{"thread"};
};

} // namespace

Expr thread_of(const Expr &column) { return column / warp_neighbours % warp_threads; }

Func reduce_in_warp(Lowering &lowering, const ReductionGroup &group, const ReductionSpace &space, RowStages &stages) {
    return WarpReduction(lowering, group, space, stages).build();
}

} // namespace scalide
