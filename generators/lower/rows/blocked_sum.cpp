#include "lower/rows/blocked_sum.h"
#include "lower/halide/strict.h"
#include "lower/rows/reduction.h"
#include <algorithm>

namespace scalide {
using Halide::Expr;
using Halide::Func;
using Halide::Var;

namespace {

constexpr int block_terms = 1024;

/// An axis divided into `count` blocks of `size` elements. The last block may have fewer.
struct AxisBlocks {
    Expr size, count;
    bool is_whole = false; ///< all blocks are full
    bool is_one() const { return Halide::Internal::is_const_one(count); }
};

/// Divides an axis into blocks of at most `room` elements. Blocks of a static extent have nearly equal sizes, so that the last one is not
/// much shorter. Sizes are constants, because a division before each loop would cost more than a short last block.
AxisBlocks divide(const Expr &extent, int room) {
    const auto known = Halide::Internal::as_const_int(extent);
    if (!known) return {room, Halide::Internal::simplify((extent + room - 1) / room), room == 1};
    const int64_t count = (*known + room - 1) / room, size = count == 0 ? 1 : (*known + count - 1) / count;
    return {int(size), int(count), size * count == *known};
}

class BlockedSumLowering {
public:
    BlockedSumLowering(const std::vector<Var> &args, const std::vector<SumAxis> &axes, Expr zero, const AddTerm &add_term,
                       const BlockFactors &factors = {}, const SumTiles &tiles = {})
        : args_(args), axes_(axes), zero_(std::move(zero)), add_term_(add_term), factors_(factors), tiles_(tiles) {
        double most = std::max(1, tiles_.step_terms);
        for (const SumAxis &axis : axes_) most *= axis.most;
        if (factors_.size != 0) {
            divide_last_axis();
        } else {
            divide_axes(most <= block_terms || !zero_.type().is_float()); // integer sums have no rounding errors
        }
    }

    SumStages lower() {
        SumStages stages;
        stages.value = Func("product");
        stages.last = Func("last_block");
        add_last(stages.last);
        const Expr last = multiplied_block(stages.last(place({args_.begin(), args_.end()})), Halide::max(all_, 1) - 1);
        if (Halide::Internal::is_const_one(all_)) {
            stages.value(args_) = multiplied_sum(last);
            return stages;
        }
        stages.block = Func("block");
        stages.before = Func("blocks_before");
        add_blocks(stages.before, stages.block);
        const std::vector<Expr> sums = components(stages.before(args_), int(stages.before.outputs()));
        const Expr before = sums.size() == 1 ? sums[0] : strict_add(sums[0], sums[1]);
        // A branch, not a select, because most sums have one block and need not read the earlier ones. For a weight gradient of 512 x 512
        // over 128 rows it takes 4 % of the time. A select takes 7 % (EPYC Zen 4, one thread, 2026-11-25).
        stages.value(args_) = multiplied_sum(branch(all_ > 1, strict_add(before, last), last));
        return stages;
    }

    SumStages lower_in_one_loop() {
        if (Halide::Internal::is_const_one(all_)) return lower();
        SumStages stages;
        stages.value = Func("product");
        stages.last = Func("sum");
        add_in_one_loop(stages.last);
        const std::vector<Expr> sums = components(stages.last(args_), 3);
        stages.value(args_) = without_assumptions(strict_add(strict_add(sums[0], sums[1]), sums[2]));
        return stages;
    }

private:
    static Expr branch(const Expr &condition, const Expr &yes, const Expr &no) {
        return Halide::Internal::Call::make(yes.type(), Halide::Internal::Call::if_then_else, {condition, yes, no},
                                            Halide::Internal::Call::PureIntrinsic);
    }

    /// Returns the sum of a block times the factors of the block. An empty sum has none.
    Expr multiplied_block(const Expr &sum, const Expr &block) const {
        if (factors_.size == 0) return sum;
        const Expr has_terms = Halide::Internal::simplify(axes_.back().extent > 0), product = factors_.multiply(sum, block);
        return Halide::Internal::is_const_one(has_terms) ? product : branch(has_terms, product, sum);
    }

    /// Returns the whole sum times the factors of all its terms.
    Expr multiplied_sum(const Expr &sum) const {
        return without_assumptions(factors_.size == 0 && factors_.multiply ? factors_.multiply(sum, 0) : sum);
    }

    /// Returns the arguments of a block at which an element is found, from the arguments of the sum.
    std::vector<Expr> place(const std::vector<Expr> &args) const { return tiles_.step_terms != 0 ? tiles_.place(args) : args; }

    void divide_last_axis() {
        for (const SumAxis &axis : axes_) blocks_.push_back({axis.extent, 1, true});
        const Expr &extent = axes_.back().extent;
        blocks_.back() = {factors_.size, Halide::Internal::simplify((extent + factors_.size - 1) / factors_.size)};
        all_ = blocks_.back().count;
    }

    /// Divides axes of static extent first, so that the room that is left for the other axes is static too.
    void divide_axes(bool is_one_block) {
        int room = block_terms / std::max(1, tiles_.step_terms);
        blocks_.resize(axes_.size());
        for (const bool is_known : {true, false}) {
            for (size_t i = 0; i < axes_.size(); i++) {
                const Expr &extent = axes_[i].extent;
                if (Halide::Internal::is_const(extent) != is_known) continue;
                blocks_[i] = is_one_block ? AxisBlocks{extent, 1, true} : divide(extent, room);
                if (const auto size = Halide::Internal::as_const_int(blocks_[i].size); size && *size > 0)
                    room = std::max(1, room / int(*size));
            }
        }
        all_ = 1;
        for (const AxisBlocks &axis : blocks_) all_ = Halide::Internal::simplify(all_ * axis.count);
    }

    /// Adds the terms of the last block, which has the highest index along each axis.
    void add_last(const Func &last) {
        std::vector<Expr> first;
        Halide::Region ranges;
        for (size_t i = 0; i < axes_.size(); i++) {
            first.push_back(Halide::Internal::simplify((Halide::max(blocks_[i].count, 1) - 1) * blocks_[i].size));
            ranges.emplace_back(0, Halide::Internal::simplify(axes_[i].extent - first.back()));
        }
        add_terms(last, args_, Halide::RDom(ranges, "term"), first);
    }

    /// Defines func(vars) as the sum of the terms of `r`, starting at the position `first`.
    void add_terms(Func func, const std::vector<Var> &vars, Halide::RDom r, const std::vector<Expr> &first) {
        if (tiles_.step_terms != 0) return tiles_.define(func, vars, first[0], r.x.extent());
        std::vector<Expr> at;
        for (size_t i = 0; i < axes_.size(); i++) {
            at.push_back(first[i] + r[int(i)]);
            if (axes_[i].has_term) r.where(axes_[i].has_term(at.back()));
        }
        func(vars) = zero_;
        assign(func(vars), over(r, Halide::Tuple(add_term_(func(vars), at))));
    }

    /// Adds all blocks except the last one.
    void add_blocks(Func before, Func block) {
        std::vector<Var> vars = args_;
        std::vector<Expr> first(axes_.size(), 0), of_block(args_.begin(), args_.end());
        Halide::Region counts, sizes;
        for (size_t i = 0; i < axes_.size(); i++) {
            sizes.emplace_back(0, blocks_[i].size);
            if (blocks_[i].is_one()) continue;
            vars.emplace_back("block" + std::to_string(i));
            first[i] = vars.back() * blocks_[i].size;
            counts.emplace_back(0, blocks_[i].count);
        }
        Halide::RDom inside(sizes, "term");
        for (size_t i = 0; counts.size() > 1 && i < axes_.size(); i++) { // along a single axis, all blocks but the last are full
            if (!blocks_[i].is_whole) inside.where(first[i] + inside[int(i)] < axes_[i].extent);
        }
        add_terms(block, vars, inside, first);
        if (counts.size() == 1) counts[0].extent = Halide::Internal::simplify(counts[0].extent - 1);
        Halide::RDom r(counts, "block");
        Expr number = 0, inner = 1; // number of the block in loop order
        for (int i = 0; i < r.dimensions(); i++) {
            of_block.emplace_back(r[i]);
            number = number + r[i] * inner;
            inner = inner * counts[size_t(i)].extent;
        }
        if (counts.size() > 1) r.where(number < all_ - 1);
        const Expr sum = multiplied_block(block(place(of_block)), number);
        has_sections(all_) ? add_sections(before, sum, number) : add_all(before, sum, number);
    }

    /// Stores the first block instead of adding it, so that a tile's memory need not be filled with zeros.
    void add_all(Func before, const Expr &block, const Expr &number) {
        before(args_) = Halide::undef(zero_.type());
        before(args_) = strict_add(Halide::select(number == 0, zero_, before(args_)), block);
    }

    /// The components are the sum of full sections and the open section.
    void add_sections(Func before, const Expr &block, const Expr &number) {
        const Expr undefined = Halide::undef(zero_.type());
        before(args_) = Halide::Tuple(undefined, undefined);
        const auto known = [&](int component) { return Halide::select(number == 0, zero_, before(args_)[component]); };
        const Expr full = known(0), section = strict_add(known(1), block), ends = ends_section(number);
        before(args_) = Halide::Tuple(Halide::select(ends, strict_add(full, section), full), Halide::select(ends, zero_, section));
    }

    /// The components are the sum of full sections, the open section and the current block. A block is added to its section when the next
    /// block begins.
    void add_in_one_loop(Func sum) {
        Halide::Region ranges;
        for (const AxisBlocks &axis : blocks_) ranges.emplace_back(0, axis.size);
        for (const AxisBlocks &axis : blocks_) ranges.emplace_back(0, axis.count);
        Halide::RDom r(ranges, "term");
        const int axes = int(axes_.size());
        std::vector<Expr> at;
        Expr begins = Halide::Internal::const_true(), number = 0, inner = 1;
        for (int i = 0; i < axes; i++) {
            at.push_back(r[axes + i] * blocks_[size_t(i)].size + r[i]);
            internal_check(!axes_[size_t(i)].has_term, "a sum in one loop with conditional terms");
            if (!blocks_[size_t(i)].is_whole) r.where(at.back() < axes_[size_t(i)].extent);
            begins = begins && r[i] == 0;
            number = number + r[axes + i] * inner;
            inner = inner * blocks_[size_t(i)].count;
        }
        sum(args_) = Halide::Tuple(zero_, zero_, zero_);
        const Expr full = sum(args_)[0], open = sum(args_)[1], block = sum(args_)[2];
        const Expr is_next = begins && number > 0, section = strict_add(open, block), ends = ends_section(number - 1);
        const Expr more = Halide::select(is_next && ends, strict_add(full, section), full);
        const Expr rest = Halide::select(is_next, Halide::select(ends, zero_, section), open);
        sum(args_) = Halide::Tuple(more, rest, add_term_(Halide::select(is_next, zero_, block), at));
    }

    const std::vector<Var> &args_;
    const std::vector<SumAxis> &axes_;
    const Expr zero_;
    const AddTerm &add_term_;
    const BlockFactors factors_;
    const SumTiles tiles_;
    std::vector<AxisBlocks> blocks_; ///< by axis
    Expr all_;                       ///< total number of blocks
};

} // namespace

SumAxis sum_axis(const Extent &extent, const LoweredKernel &kernel) {
    double most = 0;
    for (const auto &[monomial, coefficient] : extent.terms()) {
        double term = double(coefficient);
        for (const std::string &name : monomial) {
            const auto symbol = std::ranges::find(kernel.program.symbols, name, &Symbol::name);
            term *= double(coefficient > 0 ? symbol->maximum : symbol->minimum);
        }
        most += term;
    }
    return {to_expr(extent, kernel), most};
}

SumStages sum_in_blocks(const std::vector<Var> &args, const std::vector<SumAxis> &axes, const Expr &zero, const AddTerm &add_term,
                        const BlockFactors &factors) {
    return BlockedSumLowering(args, axes, zero, add_term, factors).lower();
}

SumStages sum_in_tiles(const std::vector<Var> &args, const SumAxis &steps, const Expr &zero, const SumTiles &tiles,
                       const BlockFactors &factors) {
    const std::vector<SumAxis> axes = {steps};
    const AddTerm none;
    return BlockedSumLowering(args, axes, zero, none, factors, tiles).lower();
}

SumStages sum_in_one_loop(const std::vector<Var> &args, const std::vector<SumAxis> &axes, const Expr &zero, const AddTerm &add_term) {
    return BlockedSumLowering(args, axes, zero, add_term).lower_in_one_loop();
}

bool has_sections(const Expr &blocks) {
    const auto known = Halide::Internal::as_const_int(blocks);
    return !known || *known > section_blocks;
}

Expr ends_section(const Expr &block) { return block % section_blocks == section_blocks - 1; }

} // namespace scalide
