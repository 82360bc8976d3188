#include "lower/halide/bf16_pairs.h"
#include "lower/halide/strict.h"
#include "lower/rows/blocked_sum.h"
#include "lower/rows/reduction.h"
#include "lower/values/outputs.h"
#include "lower/values/source_dtype.h"
#include <algorithm>
#include <set>

// column: reductions over leading axes. Rows are summed in blocks of fixed size, and then the blocks are summed, so the order depends only
// on the shape. All reductions of arrays with one shape share a loop.
namespace scalide {
using Halide::Expr;

namespace {

/// Returns the rows of a block: 128, and up to 512 for large arrays. On an H100, 128 rows a thread reach 87 % of the speed of a copy, 256
/// rows 92 % and 512 rows 94 %, because fewer partial sums are written and read (f32[16384, 8192], 2026-11-26). A GPU needs 2^16 threads.
int rows_of_block(const Extent &rows, const Extent &columns) {
    constexpr int least = 128, most = 512;
    constexpr int64_t threads = int64_t(1) << 16;
    int block = least;
    if (!rows.is_static() || !columns.is_static()) return block;
    while (block < most && rows.value() / (2 * block) * columns.value() >= threads) block *= 2;
    return block;
}

/// The reductions over the leading axes of arrays of one shape.
class ColumnReduction {
public:
    ColumnReduction(Lowering &lowering, const std::vector<const Node *> &nodes, int number)
        : lowering_(lowering), group_(reductions_of(lowering.kernel.program, nodes)), size_(int(group_.identity().size())),
          number_(std::to_string(number)), is_gpu_(lowering.target.has_gpu_feature()) {
        const Extents &shape = lowering.kernel.program.type(nodes[0]->operands[0]).shape;
        axes_ = reduced_axes(*nodes[0]);
        for (size_t axis = 0; axis < shape.size(); axis++) (is_folded(axis) ? rows_ : column_shape_).push_back(shape[axis]);
        columns_ = axis_vars(int(column_shape_.size()));
        all_ = lowering.values.extent(element_count(rows_));
        sums_.rows = element_count(rows_);
        sums_.columns = column_shape_.back();
        sums_.others = element_count({column_shape_.begin(), column_shape_.end() - 1});
        sums_.block_rows = rows_of_block(sums_.rows, element_count(column_shape_));
        if (nodes.size() == 1) find_factors(*nodes[0]);
    }

    ColumnSums lower() {
        Halide::Func total = sums_.total = Halide::Func("total_" + number_);
        Expr count = Halide::Internal::simplify(all_ / sums_.block_rows);
        const bool has_blocks = is_gpu_ || !Halide::Internal::is_const_zero(count);
        if (has_blocks) add_blocks(count);
        if (!is_gpu_) add_rest();
        const std::vector<Expr> rest =
            is_whole() ? group_.identity().as_vector() : components(is_gpu_ ? sums_.block(places(count)) : sums_.rest(places()), size_);
        has_blocks &&has_sections(count) ? add_sections(total, rest, count) : add_all(total, rest, has_blocks ? count : 0);
        bound_columns(total);
        return sums_;
    }

private:
    static ReductionGroup reductions_of(const Program &program, const std::vector<const Node *> &nodes) {
        std::vector<Reduction> reductions;
        for (const Node *node : nodes) {
            reductions.emplace_back(program, *node);
        }
        return ReductionGroup(reductions);
    }

    /// Finds the factors of a sum if it is a row times a matrix of bf16 numbers, and if the target adds products of bf16 in pairs.
    void find_factors(const Node &sum) {
        const Values &values = lowering_.values;
        const Node *product = values.producer(sum.operands[0]);
        if (is_gpu_ || lowering_.budgets.bf16_rows == 0 || sum.op != "reduce_sum" || !product || product->op != "mul") return;
        const auto is_bf16 = [&](ValueId value) { return source_dtype(values.program(), value) == Dtype::bf16; };
        const auto is_row = [&](ValueId value) {
            const Expr element = lowering_.values.at(value, this->element(split_row(0, rows_, values)));
            return !Halide::Internal::expr_uses_var(element, columns_.back().name());
        };
        if (!std::ranges::all_of(product->operands, is_bf16) || std::ranges::none_of(product->operands, is_row)) return;
        factors_ = product->operands;
        sums_.group = lowering_.budgets.bf16_rows;
    }

    /// True on a GPU if there are rows, and only whole blocks. Then no thread reads the rows after the last block.
    bool is_whole() const {
        return is_gpu_ && sums_.rows.is_static() && sums_.rows.value() > 0 && sums_.rows.value() % sums_.block_rows == 0;
    }

    bool is_folded(size_t axis) const { return std::ranges::find(axes_, int64_t(axis)) != axes_.end(); }

    /// Inserts row and column indices at their axes. Axes of extent 1 may come before the reduced axes.
    Index element(const Index &rows) const {
        Index index;
        auto row = rows.begin();
        auto column = columns_.begin();
        while (row != rows.end() || column != columns_.end()) index.push_back(is_folded(index.size()) ? *row++ : Expr(*column++));
        return index;
    }

    /// Returns the arguments of a stage: the columns and, if given, a block.
    std::vector<Expr> places(const Expr &block = Expr()) const {
        Index columns(columns_.begin(), columns_.end());
        std::vector<Expr> args = buffer_order(columns);
        if (block.defined()) {
            args.push_back(block);
        }
        return args;
    }

    /// total = rest, followed by each block.
    void add_all(const Halide::Func &total, const std::vector<Expr> &rest, const Expr &count) {
        assign(total(places()), Halide::Tuple(rest));
        if (!Halide::Internal::is_const_zero(count)) {
            const Halide::RDom r(0, count);
            assign(total(places()), group_.combine(components(total(places()), size_), components(sums_.block(places(r)), size_)));
        }
        group_.bind(lowering_.values, total);
    }

    /// Does the same in sections (blocked_sum.h). The components are the full sections, then the open section.
    void add_sections(const Halide::Func &total, const std::vector<Expr> &rest, const Expr &count) {
        const std::vector<Expr> identity = group_.identity().as_vector();
        std::vector<Expr> start = rest;
        start.insert(start.end(), identity.begin(), identity.end());
        assign(total(places()), Halide::Tuple(start));
        const Halide::RDom r(0, count);
        const std::vector<Expr> sums = components(total(places()), 2 * size_), full(sums.begin(), sums.begin() + size_);
        const std::vector<Expr> open(sums.begin() + size_, sums.end());
        const std::vector<Expr> section = group_.combine(open, components(sums_.block(places(r)), size_)).as_vector();
        const std::vector<Expr> more = group_.combine(full, section).as_vector();
        std::vector<Expr> next;
        for (int i = 0; i < size_; i++) next.push_back(Halide::select(ends_section(r), more[i], full[i]));
        for (int i = 0; i < size_; i++) next.push_back(Halide::select(ends_section(r), identity[i], section[i]));
        assign(total(places()), Halide::Tuple(next));
        const Halide::Func sum("sum_" + number_);
        assign(sum(buffer_order(columns_)), group_.combine(full, open));
        group_.bind(lowering_.values, sum);
    }

    /// Bounds the columns. Otherwise Halide computes as many columns as consumers may read, and a reduction rounds this up to whole
    /// vectors. On a GPU, a schedule computes only what one thread needs.
    void bound_columns(Halide::Func func) const {
        if (is_gpu_) return;
        for (size_t i = 0; i < columns_.size(); i++) func.bound(columns_[i], 0, lowering_.values.extent(column_shape_[i]));
    }

    void add_blocks(const Expr &count) {
        Halide::Var block("block");
        Halide::Func func = sums_.block = Halide::Func("block_" + number_);
        std::vector<Halide::Var> args = buffer_order(columns_);
        args.push_back(block);
        assign(func(args), group_.identity());
        bound_columns(func);
        if (!is_gpu_) func.bound(block, 0, count);
        if (!factors_.empty()) return add_pairs(func, places(block), block);
        Halide::RDom r(0, sums_.block_rows);
        accumulate(func, places(block), r, block * sums_.block_rows);
    }

    /// Adds the rows of a block, several at a time.
    void add_pairs(const Halide::Func &func, const std::vector<Expr> &place, const Expr &block) {
        const Halide::RDom r(0, sums_.block_rows / sums_.group);
        Expr sum = func(place);
        for (int row = 0; row < sums_.group; row += 2) {
            const Expr first = block * sums_.block_rows + r * sums_.group + row;
            sum = add_bf16_pair(sum, pair(factors_[0], first), pair(factors_[1], first));
        }
        assign(func(place), over(r, Halide::Tuple(sum)));
    }

    /// Returns the bits of a factor in two adjacent rows.
    std::array<Expr, 2> pair(ValueId factor, const Expr &first) {
        std::array<Expr, 2> bits;
        for (int i = 0; i < 2; i++) {
            const Index rows = split_row(first + i, rows_, lowering_.values);
            bits[size_t(i)] = Halide::cast<uint16_t>(float_bits(lowering_.values.at(factor, element(rows))) >> 16);
        }
        return bits;
    }

    void add_rest() {
        Halide::Func func = sums_.rest = Halide::Func("rest_" + number_);
        assign(func(buffer_order(columns_)), group_.identity());
        bound_columns(func);
        Expr left = Halide::Internal::simplify(all_ % sums_.block_rows);
        Halide::RDom r(0, left);
        accumulate(func, places(), r, Halide::Internal::simplify(all_ - left));
    }

    void accumulate(const Halide::Func &func, const std::vector<Expr> &place, Halide::RDom r, const Expr &first_row) {
        const Expr row = first_row + r, last = Halide::Internal::simplify(all_ - 1);
        const Index rows = split_row(is_gpu_ ? Halide::clamp(row, 0, last) : row, rows_, lowering_.values);
        std::vector<Expr> terms = group_.terms(lowering_.values, element(rows), row);
        if (is_gpu_) {
            terms = terms_where(row < all_, group_, terms);
            r.where(all_ > 0); // an empty array has no elements to read
        }
        assign(func(place), over(r, group_.combine(components(func(place), size_), terms)));
    }

    Lowering &lowering_;
    ReductionGroup group_;
    int size_;
    std::vector<int64_t> axes_;
    Extents rows_, column_shape_;
    std::vector<Halide::Var> columns_;
    Expr all_;
    std::string number_; ///< number of this reduction within the kernel
    bool is_gpu_;
    std::vector<ValueId> factors_; ///< two factors if rows are added in pairs
    ColumnSums sums_;
};

/// By value: the longest chain of reductions that leads to it.
std::vector<int> find_depths(const Program &program) {
    std::vector<int> depths(program.values.size());
    for (const Node &node : program.nodes) {
        int &depth = depths[node.results[0]];
        for (const ValueId operand : node.operands) depth = std::max(depth, depths[operand]);
        depth += is_reduction(node);
    }
    return depths;
}

void reduce(Lowering &lowering, const std::vector<const Node *> &nodes, ColumnStages &stages) {
    if (int(reduced_axes(*nodes[0]).size()) == lowering.kernel.program.type(nodes[0]->operands[0]).rank()) {
        reduce_all(lowering, nodes, stages.whole);
    } else {
        stages.sums.push_back(ColumnReduction(lowering, nodes, int(stages.sums.size())).lower());
    }
}

} // namespace

void lower_column(Lowering &lowering) {
    const Program &program = lowering.kernel.program;
    auto &stages = lowering.kernel.stages.emplace<ColumnStages>();
    const std::vector<int> depths = find_depths(program);
    for (int depth = 0; depth <= std::ranges::max(depths); depth++) {
        std::set<std::pair<Extents, std::vector<int64_t>>> done;
        const auto is_other = [&](const Node *node) { return depths[node->operands[0]] != depth; };
        for (const Node &node : program.nodes) {
            if (!is_reduction(node) || is_other(&node)) continue;
            const Extents &shape = program.type(node.operands[0]).shape;
            const std::vector<int64_t> axes = reduced_axes(node);
            if (!done.insert({shape, axes}).second) continue;
            std::vector<const Node *> nodes = find_reductions(program, shape, axes);
            std::erase_if(nodes, is_other);
            reduce(lowering, nodes, stages);
        }
    }
    for (const std::vector<int> &results : results_by_shape(program)) {
        add_output(lowering, results, axis_vars(program.type(program.results[results[0]].value).rank()));
    }
}

} // namespace scalide
