#include "lower/rows/row_warp.h"
#include <algorithm>

namespace scalide {
using Halide::Expr;
using Halide::Func;

namespace {

class WarpReduction {
public:
    WarpReduction(Lowering &lowering, const ReductionGroup &group, const ReductionSpace &space, const WarpShape &shape, RowStages &stages)
        : lowering_(lowering), group_(group), space_(space), shape_(shape), stages_(stages), size_(int(group.identity().size())) {}

    Func build() {
        const Func partial = add_partial(lowering_, group_, space_, stages_.lanes);
        const Func own = shape_.keeps_order ? exchange_slots(partial) : partial;
        Func last = add("turn", stages_.turn);
        assign(last(at({thread_})), group_.tree(neighbours(own, !shape_.keeps_order)));
        const std::vector<int> distances = shape_.keeps_order ? std::vector{1, 2, 4} : std::vector{16, 8, 4, 2, 1};
        for (const int distance : distances)
            last = exchange(add("turn", stages_.turn), {}, distance, [last, this](const Expr &thread) { return last(at({thread})); });
        return last;
    }

private:
    using Read = std::function<Halide::FuncRef(const Expr &thread)>;

    static Func add(const std::string &name, std::vector<Func> &stages) {
        stages.push_back(Func(name + "_" + std::to_string(stages.size())));
        return stages.back();
    }

    /// reduce_lanes() combines lane i with i + 16, then with i + 32. The remaining sixteen lanes combine with neighbours at distance 1, 2,
    /// 4 and 8.
    Func exchange_slots(const Func &partial) {
        internal_check(shape_.elements() == most_lanes, "the threads of a warp have other lanes than reduce_lanes()");
        const auto lanes = [&](const Expr &thread) { return partial(at({thread * shape_.neighbours + slot_})); };
        const Func first = exchange(add("slot", stages_.slot), {slot_}, 8, lanes);
        return exchange(add("slot", stages_.slot), {slot_}, 16, [&](const Expr &thread) { return first(at({slot_, thread})); });
    }

    /// Returns the partial results of a thread, from a Func over lanes or over (slots, thread).
    std::vector<std::vector<Expr>> neighbours(const Func &own, bool has_lanes) const {
        std::vector<std::vector<Expr>> found;
        for (int slot = 0; slot < shape_.neighbours; slot++) {
            const std::vector<Expr> place = has_lanes ? at({thread_ * shape_.neighbours + slot}) : at({slot, thread_});
            found.push_back(components(own(place), size_));
        }
        return found;
    }

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
    const WarpShape shape_;
    RowStages &stages_;
    int size_;
    Halide::Var slot_{"slot"}, thread_{"thread"};
};

} // namespace

std::optional<WarpShape> warp_shape(int64_t columns, int smallest_bytes, int largest_bytes, bool is_whole, bool is_cuda) {
    const auto fits = [&](const WarpShape &shape) { return !is_whole || shape.padded(columns) == columns; };
    const WarpShape two{2, true};
    if (!is_cuda) return fits(two) ? std::optional(two) : std::nullopt;
    WarpShape shape{std::clamp(2 * access_bytes / largest_bytes, 1, access_bytes / smallest_bytes), false};
    // A fifth more elements cost less than narrow accesses.
    const auto wastes = [&] { return columns % shape.neighbours != 0 || 5 * shape.padded(columns) > 6 * columns; };
    while (shape.neighbours > 1 && (wastes() || !fits(shape))) shape.neighbours /= 2;
    return fits(shape) ? std::optional(shape) : std::nullopt;
}

Expr thread_of(const Expr &column, const WarpShape &shape) { return column / shape.neighbours % warp_threads; }

Func reduce_in_warp(Lowering &lowering, const ReductionGroup &group, const ReductionSpace &space, const WarpShape &shape,
                    RowStages &stages) {
    return WarpReduction(lowering, group, space, shape, stages).build();
}

} // namespace scalide
