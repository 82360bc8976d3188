#pragma once
#include "ir/reduction_axes.h"
#include "lower/values/kinds.h"

namespace scalide {

/// How the elements of a reduction node combine. A partial result has one Expr (sum, max, min, prod) or two (argmax, argmin: value and
/// index).
class Reduction {
public:
    Reduction(const Program &program, const Node &node);

    const Node &node() const { return *node_; }
    int size() const;
    /// Returns the neutral element of combine(). argmax of no elements has index 2^31 - 1.
    std::vector<Halide::Expr> identity() const;
    /// Converts a finished partial result to the node's result.
    Halide::Expr result(const std::vector<Halide::Expr> &partial) const;
    /// Returns the partial result of one element. `position` is its index along the reduced axis.
    std::vector<Halide::Expr> term(const Halide::Expr &value, const Halide::Expr &position) const;
    /// Combines two partial results. The order matters only for the rounding of sums and products. NaN wins over numbers; of equal
    /// elements, the smaller index wins.
    std::vector<Halide::Expr> combine(const std::vector<Halide::Expr> &a, const std::vector<Halide::Expr> &b) const;

private:
    bool has_keys() const; ///< partial results are integers with the same order as the floats

    const Node *node_;
    Dtype dtype_;
    bool has_places_;
    bool is_of_magnitudes_; ///< keys are the bits of floats without their sign
};

/// Reductions that share a loop. Their partial results are concatenated.
class ReductionGroup {
public:
    explicit ReductionGroup(std::vector<Reduction> reductions) : reductions_(std::move(reductions)) {}

    const std::vector<Reduction> &reductions() const { return reductions_; }
    Halide::Tuple identity() const;
    Halide::Tuple combine(const std::vector<Halide::Expr> &a, const std::vector<Halide::Expr> &b) const;
    /// Returns the terms of all reductions at one position of the iteration space.
    std::vector<Halide::Expr> terms(Values &values, const Index &index, const Halide::Expr &position) const;
    /// Combines in the order of a balanced tree: (0 1) (2 3) ...
    Halide::Tuple tree(std::vector<std::vector<Halide::Expr>> partials) const;
    /// Binds the result of each reduction to its component of `fold`. The arguments of `fold` are the first axes of the node's result. If
    /// `thread` is given, it is the first argument.
    void bind(Values &values, const Halide::Func &fold, const Halide::Expr &thread = {}) const;

private:
    std::vector<Reduction> reductions_;
};

/// The elements of one partial result: `columns` consecutive elements for each of `steps`.
struct ReductionSpace {
    std::vector<Halide::Var> outer;                                          ///< arguments of the partial results, buffer order
    Halide::Expr columns;                                                    ///< number of consecutive elements
    int lanes;                                                               ///< number of partial results, each of every lanes-th element
    std::vector<Halide::Range> steps;                                        ///< loops around the columns
    std::function<Index(const Index &steps, const Halide::Expr &column)> at; ///< position of an element in the iteration space
    std::function<Halide::Expr(const Index &steps, const Halide::Expr &column)> inside = {}; ///< whether an element belongs to the space;
                                                                                             ///< empty: always
    Halide::Expr is_any = Halide::Internal::const_true();                                    ///< false if nothing may be read
    std::function<std::vector<Halide::Expr>(const Index &index)> terms = {};                 ///< empty: terms of the reduced values
};

/// Reduces the space to one partial result for each index of `outer`, always in the same order. Element i goes to lane i % lanes, and lanes
/// are combined as a balanced tree. On a GPU, each thread has one lane, and the remaining elements are one more vector with a condition.
/// Adds one Func to each list of `stages`, and returns the fold.
Halide::Func reduce_lanes(Lowering &lowering, const ReductionGroup &group, const ReductionSpace &space, LaneStages &stages);
/// Adds only the stage `partial` of reduce_lanes().
Halide::Func add_partial(Lowering &lowering, const ReductionGroup &group, const ReductionSpace &space, LaneStages &stages);

/// Reduces whole arrays of one shape to rank 0 in two levels: blocks of fixed size, then the blocks' results in lanes. The elements after
/// the last block are combined at the end. Binds the reductions. On a GPU these elements are one more block, so there is always at least
/// one block.
void reduce_all(Lowering &lowering, const std::vector<const Node *> &reductions, TotalStages &stages);

/// Returns the reductions, in program order, that reduce exactly these axes of operands with this shape.
std::vector<const Node *> find_reductions(const Program &program, const Extents &shape, const std::vector<int64_t> &axes);

/// Returns the index of row number `row` in row-major order.
Index split_row(const Halide::Expr &row, const Extents &rows, const Values &values);

/// Number of partial results for rows of this many elements: several vectors, if the row is long enough.
constexpr int most_lanes = 64;
int choose_lanes(const Extent &columns);

/// Returns each term if the condition holds, otherwise the identity. A GPU can then read ahead without branches. Indices of argmax and
/// argmin stay, because no index after the end precedes one within the array.
std::vector<Halide::Expr> terms_where(const Halide::Expr &condition, const ReductionGroup &group, const std::vector<Halide::Expr> &terms);

/// Returns the Tuple components of a Func at an index.
std::vector<Halide::Expr> components(const Halide::FuncRef &ref, int size);

} // namespace scalide
