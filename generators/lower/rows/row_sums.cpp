#include "lower/rows/row_sums.h"
#include "ir/shape.h"
#include "lower/rows/whole.h"
#include "lower/shapes/whole_reductions.h"
#include <algorithm>
#include <bit>

namespace scalide {
using Halide::Expr;

bool is_column_reduction(const Program &program, const Node &node) {
    return is_reduction(node) && !is_whole_reduction(program, node) &&
           leaves_columns(program.type(node.operands[0]).shape, reduced_axes(node));
}

bool has_column_reductions(const Program &program) {
    return std::ranges::any_of(program.nodes, [&](const Node &node) { return is_column_reduction(program, node); });
}

int rows_of_block(const Extent &rows) {
    constexpr int most_rows = 64, least_rows = 16, blocks = 1024;
    return rows.is_static() ? int(std::clamp<uint64_t>(std::bit_floor(uint64_t(rows.value()) / blocks), least_rows, most_rows)) : most_rows;
}

namespace {

class SumsOverRows {
public:
    SumsOverRows(Lowering &lowering, const std::vector<Reduction> &reductions, const std::vector<Halide::Var> &axes)
        : lowering_(lowering), group_(reductions), identity_(group_.identity().as_vector()), x_(axes.back()) {
        const Program &program = lowering.kernel.program;
        const Extents &space = program.type(reductions[0].node().operands[0]).shape;
        rows_ = Extents(space.begin(), space.end() - 1);
        columns_ = lowering.values.extent(space.back());
        all_ = lowering.values.extent(element_count(rows_));
        block_rows_ = rows_of_block(element_count(rows_));
        blocks_ = Halide::Internal::simplify((all_ + block_rows_ - 1) / block_rows_);
        last_ = Halide::Internal::simplify(Halide::max(blocks_, 1) - 1); // for an empty array, the first block is read too
    }

    RowSumStages lower() {
        const Halide::Func blocks = running(), lane = lanes(blocks);
        std::vector<std::vector<Expr>> parts;
        for (int i = 0; i < block_lanes; i++) parts.push_back(components(lane(x_, i), size()));
        Halide::Func sum("sum");
        assign(sum(x_), group_.tree(parts));
        group_.bind(lowering_.values, sum);
        return {block_rows_, blocks, lane};
    }

private:
    int size() const { return int(identity_.size()); }

    Halide::Func running() {
        const Halide::Var y("y");
        Halide::RDom r(Halide::Internal::ReductionDomain({{block_row_name, 0, block_rows_}}));
        const Expr row = y * block_rows_ + r;
        const bool is_whole = Halide::Internal::is_const_zero(Halide::Internal::simplify(all_ % block_rows_));
        if (!is_whole || Halide::Internal::is_const_zero(all_)) r.where(row < all_);
        Index index = split_row(row, rows_, lowering_.values);
        index.push_back(x_);
        std::vector<Expr> undefined, before;
        for (const Expr &e : identity_) undefined.push_back(Halide::undef(e.type()));
        Halide::Func sums("running");
        assign(sums(x_, y), Halide::Tuple(undefined));
        const std::vector<Expr> kept = components(sums(x_, y), size());
        for (int i = 0; i < size(); i++) before.push_back(Halide::select(Expr(r) == 0, identity_[i], kept[i]));
        assign(sums(x_, y), group_.combine(before, group_.terms(lowering_.values, index, row)));
        sums.bound(x_, 0, columns_).bound(y, 0, Halide::Internal::simplify(last_ + 1));
        return sums;
    }

    /// Block i goes to lane i % block_lanes. An index after the last block reads the last block and contributes the identity.
    Halide::Func lanes(const Halide::Func &running) {
        const Halide::Var l("block_lane");
        Halide::Func sums("block_lanes");
        assign(sums(x_, l), Halide::Tuple(identity_));
        const Halide::RDom r(0, Halide::Internal::simplify((blocks_ + block_lanes - 1) / block_lanes));
        const Expr block = r * block_lanes + l;
        const bool is_whole = Halide::Internal::is_const_zero(Halide::Internal::simplify(blocks_ % block_lanes));
        // Threads beyond the last column, which complete a warp, read the last column.
        const Expr column = lowering_.target.has_gpu_feature() ? Halide::min(x_, columns_ - 1) : Expr(x_);
        std::vector<Expr> terms = components(running(column, is_whole ? block : Halide::min(block, last_)), size());
        if (!is_whole) {
            for (int i = 0; i < size(); i++) terms[i] = Halide::select(block < blocks_, terms[i], identity_[i]);
        }
        assign(sums(x_, l), over(r, group_.combine(components(sums(x_, l), size()), terms)));
        return sums;
    }

    Lowering &lowering_;
    ReductionGroup group_;
    std::vector<Expr> identity_;
    Halide::Var x_;
    Extents rows_;
    Expr columns_, all_, blocks_, last_;
    int block_rows_ = 0;
};

} // namespace

RowSumStages sum_columns(Lowering &lowering, const std::vector<Halide::Var> &axes) {
    std::vector<Reduction> reductions;
    for (const Node &node : lowering.kernel.program.nodes) {
        if (is_column_reduction(lowering.kernel.program, node)) reductions.emplace_back(lowering.kernel.program, node);
    }
    return reductions.empty() ? RowSumStages() : SumsOverRows(lowering, reductions, axes).lower();
}

} // namespace scalide
