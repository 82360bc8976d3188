#pragma once
#include "lower/kinds.h"

namespace scalide {

/// One reduction node: how its elements combine. A partial result is one Expr (sum, max, min, prod) or two (argmax, argmin: value, index).
class Reduction {
public:
    Reduction(const Program &program, const Node &node);

    const Node &node() const { return *node_; }
    int size() const;
    /// What combines with anything to that. argmax of nothing is index 2^31 - 1.
    std::vector<Halide::Expr> identity() const;
    /// Of a finished partial result.
    Halide::Expr result(const std::vector<Halide::Expr> &partial) const;
    /// The partial result of one element; `position` is its place along the reduced axis.
    std::vector<Halide::Expr> term(const Halide::Expr &value, const Halide::Expr &position) const;
    /// In any order but for the rounding of sums and products; NaN wins, then the smaller index.
    std::vector<Halide::Expr> combine(const std::vector<Halide::Expr> &a, const std::vector<Halide::Expr> &b) const;

private:
    bool has_keys() const; ///< partial results are integers that are ordered as the floats are

    const Node *node_;
    Dtype dtype_;
    bool has_places_;
};

/// Reductions that run in one loop: their partial results side by side.
class ReductionGroup {
public:
    explicit ReductionGroup(std::vector<Reduction> reductions) : reductions_(std::move(reductions)) {}

    const std::vector<Reduction> &reductions() const { return reductions_; }
    Halide::Tuple identity() const;
    Halide::Tuple combine(const std::vector<Halide::Expr> &a, const std::vector<Halide::Expr> &b) const;
    /// The terms of all reductions at one place of the iteration space.
    std::vector<Halide::Expr> terms(Values &values, const Index &index, const Halide::Expr &position) const;
    /// Combines in the order of a balanced tree: (0 1) (2 3) ...
    Halide::Tuple tree(std::vector<std::vector<Halide::Expr>> partials) const;
    /// Binds the result of each reduction to its component of `fold`, whose arguments are the first axes of the node's result; before them
    /// stands `thread`, if it is given.
    void bind(Values &values, const Halide::Func &fold, const Halide::Expr &thread = {}) const;

private:
    std::vector<Reduction> reductions_;
};

/// What one partial result runs over: `columns` consecutive elements, for each of the `steps`.
struct ReductionSpace {
    std::vector<Halide::Var> outer;                                          ///< arguments of the partial results, buffer order
    Halide::Expr columns;                                                    ///< how many elements follow each other
    int lanes;                                                               ///< partial sums over every lanes-th element
    std::vector<Halide::Range> steps;                                        ///< further loops around
    std::function<Index(const Index &steps, const Halide::Expr &column)> at; ///< index of an element in the iteration space
    std::function<Halide::Expr(const Index &steps, const Halide::Expr &column)> inside = {}; ///< absent: every element is one of the space
    Halide::Expr is_any = Halide::Internal::const_true();                                    ///< false where nothing may be read
    std::function<std::vector<Halide::Expr>(const Index &index)> terms = {};                 ///< absent: those of the reduced values
};

/// Reduces the space to one partial result for each place of `outer`, always in the same order: element i goes to lane i % lanes, and lanes
/// combine as a tree. On a GPU, where a thread has one lane, the rest is a whole vector with a condition. Adds one Func to each list of
/// `stages`, and returns the fold.
Halide::Func reduce_lanes(Lowering &lowering, const ReductionGroup &group, const ReductionSpace &space, LaneStages &stages);
/// Its stage `partial` alone.
Halide::Func add_partial(Lowering &lowering, const ReductionGroup &group, const ReductionSpace &space, LaneStages &stages);

/// Reduces whole arrays of one shape to rank 0, in two levels: blocks of fixed size, then their results in lanes, and what is left behind
/// the blocks. Binds the reductions. On a GPU the rest is a last block, so that the blocks are never none.
void reduce_all(Lowering &lowering, const std::vector<const Node *> &reductions, TotalStages &stages);

/// The reductions of a kernel whose operands have this shape and that fold exactly these axes, in order.
std::vector<const Node *> find_reductions(const Program &program, const Extents &shape, const std::vector<int64_t> &axes);
/// The axes that a reduction folds.
std::vector<int64_t> folded_axes(const Node &node);
bool is_reduction(const Node &node);

/// The index of row number `row` in row-major order.
Index split_row(const Halide::Expr &row, const Extents &rows, const Values &values);

/// Partial sums for rows of this many elements: several vectors when there is work for them.
constexpr int most_lanes = 64;
int choose_lanes(const Extent &columns);

/// Each term where the condition holds, else what combines with anything to that: a GPU then reads ahead without branches. The places of
/// argmax and argmin stay: no place behind an array comes before one in it.
std::vector<Halide::Expr> terms_where(const Halide::Expr &condition, const ReductionGroup &group, const std::vector<Halide::Expr> &terms);

/// The Tuple element(s) of a Func at an index.
std::vector<Halide::Expr> components(const Halide::FuncRef &ref, int size);

} // namespace scalide
