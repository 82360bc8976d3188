#include "lower/products/contract.h"
#include "lower/rows/blocked_sum.h"
#include "lower/rows/reduction.h"
#include <algorithm>

namespace scalide {
using Halide::Expr;
using Halide::Func;
using Halide::Tuple;
using Halide::Var;

namespace {

constexpr int fold_lanes = 16; ///< rows that are reduced in parallel

void define(Halide::FuncRef place, const Tuple &value) {
    if (value.size() == 1) {
        place = value[0];
    } else {
        place = value;
    }
}

/// Reduces epilogue values over all axes.
class FoldLowering {
public:
    FoldLowering(Lowering &lowering, const Contraction &contraction, ReductionGroup group)
        : lowering_(lowering), values_(lowering.values), stages_(contract_stages(lowering).folds), contraction_(contraction),
          group_(std::move(group)), size_(int(group_.identity().size())) {}

    void lower() {
        keep_overwritten();
        group_.bind(values_, fold_lanes_of(partials_of(terms())));
        for (const auto &[argument, kept] : kept_)
            values_.bind(argument, [contraction = contraction_, kept](const Index &index) { return kept(tile_index(contraction, index)); });
    }

private:
    /// Reads overwritten arguments through a copy of the row that is computed next. Input and output are the same memory, which neither
    /// Halide nor LLVM knows. They cannot move the read of an element after its write, because the written value depends on the copy.
    void keep_overwritten() {
        const Program &program = values_.program();
        for (const Result &result : program.results) {
            if (result.argument < 0 || !lowering_.kernel.inputs[result.argument].defined()) continue;
            const ValueId argument = program.arguments[result.argument].value;
            const Func kept = stages_.kept.emplace_back("fold_kept");
            const Halide::RDom once = guard();
            const Expr element = values_.at(argument, result_index(contraction_, place(once)));
            if (is_ragged()) define(kept(column_, row_, panel_, batch_), Tuple(Halide::Internal::make_zero(element.type())));
            define(kept(column_, row_, panel_, batch_), Tuple(element));
            kept_.emplace_back(argument, kept);
        }
        for (const auto &[argument, kept] : kept_)
            values_.bind(argument, [this, kept](const Index &) { return kept(column_, row_, panel_, batch_); });
    }

    Expr column() const { return panel_ * contraction_.width + column_; }
    bool is_ragged() const { return !contraction_.columns.divide(contraction_.width); }

    /// One iteration if the column is one of the result's, otherwise none.
    Halide::RDom guard() const {
        Halide::RDom once(0, 1, "once");
        once.where(column() < values_.extent(contraction_.columns));
        return once;
    }

    /// (batch, row, column) of the arguments
    Index place(const Halide::RDom &once) const {
        const Expr row = Halide::min(row_, values_.extent(contraction_.rows) - 1);
        return {batch_, row, is_ragged() ? column() + once.x : column()};
    }

    /// (column, row, panel, batch). Where the tile exceeds the rows, arguments are read in the last row, and the product at its own row.
    Func terms() {
        const ValueId product = contraction_.node->results[0];
        values_.bind(product, [this](const Index &) {
            return to_result(lowering_, contraction_, contraction_.product(column_, row_, panel_, batch_));
        });
        const Halide::RDom once = guard();
        Func terms = stages_.terms = Func("fold_terms");
        if (is_ragged()) define(terms(column_, row_, panel_, batch_), group_.identity());
        std::vector<Expr> folded = group_.terms(values_, result_index(contraction_, place(once)), 0);
        for (int i = 0; is_ragged() && i < size_; i++) { // a term that reads no argument would not depend on the guard
            folded[i] = Halide::select(once.x == 0, folded[i], group_.identity()[i]);
        }
        define(terms(column_, row_, panel_, batch_), Tuple(folded));
        return terms;
    }

    bool has_batch() const { return contraction_.lhs.batch_axis >= 0; }

    /// (row, panel, batch): the columns of a panel, halved until one is left. It shares the loops of the result, so it has no batch axis if
    /// the result has none.
    Func partials_of(Func halves) {
        for (int width = contraction_.width / 2; width >= 1; width /= 2) {
            const Func next = stages_.halves.emplace_back("fold_halves");
            define(next(column_, row_, panel_, batch_), group_.combine(components(halves(column_, row_, panel_, batch_), size_),
                                                                       components(halves(column_ + width, row_, panel_, batch_), size_)));
            halves = next;
        }
        const Func partials = stages_.partials = Func("fold_partials");
        const std::vector<Var> vars = buffer_order(axis_vars(3)); // loops are matched by name: here x counts panels
        std::vector<Var> place = {vars[1], vars[0]};
        if (has_batch()) {
            place.push_back(vars[2]);
        }
        const Expr batch = has_batch() ? Expr(vars[2]) : 0;
        define(partials(place), Tuple(components(halves(0, vars[1], vars[0], batch), size_)));
        return partials;
    }

    Func fold_lanes_of(const Func &partials) {
        Var lane("lane");
        Expr rows = values_.extent(contraction_.rows);
        Expr panels = (values_.extent(contraction_.columns) + contraction_.width - 1) / contraction_.width;
        Halide::RDom r({{0, (rows + fold_lanes - 1) / fold_lanes}, {0, panels}, {0, values_.extent(contraction_.batch)}}, "r");
        Expr row = r.x * fold_lanes + lane;
        r.where(row < rows);
        // With a static number of rows, Halide 21 loses this condition and computes rows that do not exist.
        std::vector<Expr> place = {Halide::Internal::is_positive_const(rows) ? Halide::min(row, rows - 1) : row, r.y};
        if (has_batch()) {
            place.push_back(r.z);
        }
        const Func lanes = stages_.lanes = Func("fold_lanes");
        define(lanes(lane), group_.identity());
        define(lanes(lane), group_.combine(components(lanes(lane), size_), components(partials(place), size_)));
        std::vector<std::vector<Expr>> parts;
        for (int i = 0; i < fold_lanes; i++) {
            parts.push_back(components(lanes(i), size_));
        }
        const Func fold("fold");
        define(fold(), group_.tree(parts));
        return fold;
    }

    Lowering &lowering_;
    Values &values_;
    EpilogueFoldStages &stages_;
    const Contraction &contraction_;
    ReductionGroup group_;
    int size_;
    std::vector<std::pair<ValueId, Func>> kept_; ///< overwritten arguments, and their copies
    Var column_{"column"}, row_{"row"}, panel_{"panel"}, batch_{"batch"};
};

/// The sum of an operand's values over some of its axes.
SumStages lower_sum(Lowering &lowering, const Reduction &reduction) {
    const Node &node = reduction.node();
    const Extents &shape = lowering.kernel.program.type(node.operands[0]).shape;
    const std::vector<int64_t> folded = reduced_axes(node);
    const std::vector<Var> vars = axis_vars(int(shape.size() - folded.size()));
    std::vector<SumAxis> axes;
    for (int64_t axis : folded) axes.push_back(sum_axis(shape[axis], lowering.kernel));
    return sum_in_blocks(buffer_order(vars), axes, reduction.identity()[0], [&](const Expr &sum, const std::vector<Expr> &at) {
        Index index;
        for (int axis = 0, kept = 0; axis < int(shape.size()); axis++) {
            const auto found = std::ranges::find(folded, axis);
            index.push_back(found == folded.end() ? Expr(vars[kept++]) : at[size_t(found - folded.begin())]);
        }
        return reduction.combine({sum}, {lowering.values.at(node.operands[0], index)})[0];
    });
}

} // namespace

void lower_contract_folds(Lowering &lowering, const Contraction &contraction, const std::vector<const Node *> &reductions) {
    if (reductions.empty()) {
        return;
    }
    std::vector<Reduction> group;
    for (const Node *node : reductions) {
        group.emplace_back(lowering.kernel.program, *node);
    }
    FoldLowering(lowering, contraction, ReductionGroup(group)).lower();
}

void lower_contract_sums(Lowering &lowering, const std::vector<const Node *> &reductions) {
    for (const Node *node : reductions) {
        const SumStages sum = lower_sum(lowering, Reduction(lowering.kernel.program, *node));
        lowering.values.bind(node->results[0], sum.value);
        contract_stages(lowering).sums.push_back(sum);
    }
}

} // namespace scalide
