#include "expr/base_operators.h"
#include "lower/outputs.h"
#include "lower/reduction.h"
#include "lower/whole.h"
#include <algorithm>
#include <set>

// Row kernels: reductions over the last axis of arrays of shape rows x columns (any number of row axes). Reductions of one depth, that is,
// with as many reductions below them, run in one loop. An expensive value of shape rows x columns that several loops need is computed once
// a row, into a stage `element`, if there is room for a row; a value of shape rows that elements need, into a stage `scalar`.
//
// stages: partial, lane, fold (lower/reduction.h; outer arguments: the rows), element (x, rows), scalar (rows), those of lower/whole.h
// extents: columns
// Outputs have the row axes y, d2 ... and, if they have columns, x.
namespace scalide {
namespace {

/// From here on an operator costs more than writing a value to the first-level cache and reading it back.
constexpr int expensive = 4;
/// Elements of a row that a block of a GPU keeps in its shared memory (48 KB), beside partial results; the others are computed again.
constexpr int64_t most_shared = 10240;

/// The values of a row kernel in the order in which they are made: by depth.
class RowPlan {
public:
    RowPlan(const Program &program, bool is_gpu) : program_(program), producers_(producers(program)), depth_(program.values.size(), 0) {
        find_depths();
        place_scalars();
        const Extent &columns = space().back();
        const int64_t all = std::numeric_limits<int64_t>::max();
        int64_t free = !is_gpu ? all : columns.is_static() ? most_shared / std::max<int64_t>(columns.value(), 1) : 0;
        while (free > 0 && place_element()) free--;
    }

    /// Rows and columns: the shape that reductions over the last axis read.
    const Extents &space() const {
        for (const Node &node : program_.nodes) {
            if (is_row_reduction(node)) {
                return program_.type(node.operands[0]).shape;
            }
        }
        throw InternalError("internal error: a row kernel has no reduction over its last axis");
    }
    int last_depth() const { return last_depth_; }

    /// The reductions of values of this depth.
    std::vector<const Node *> reductions(int depth) const {
        std::vector<const Node *> found;
        for (const Node &node : program_.nodes) {
            if (is_row_reduction(node) && depth_[node.operands[0]] == depth) {
                found.push_back(&node);
            }
        }
        return found;
    }

    /// Values of this depth that get a stage, in order.
    std::vector<ValueId> placed(int depth) const {
        std::vector<ValueId> values;
        for (const Node &node : program_.nodes) {
            if (placed_.count(node.results[0]) && depth_[node.results[0]] == depth) {
                values.push_back(node.results[0]);
            }
        }
        return values;
    }

private:
    bool is_row_reduction(const Node &node) const { return is_reduction(node) && !is_whole_reduction(program_, node); }

    const Node *producer(ValueId value) const { return producers_[value] < 0 ? nullptr : &program_.nodes[producers_[value]]; }

    void find_depths() {
        for (const Node &node : program_.nodes) {
            int depth = 0;
            for (ValueId operand : node.operands) {
                depth = std::max(depth, depth_[operand]);
            }
            depth_[node.results[0]] = depth + is_reduction(node);
            last_depth_ = std::max(last_depth_, depth_[node.results[0]]);
        }
    }

    /// What is computed from reductions once a row and broadcast to the elements.
    void place_scalars() {
        for (const Node &node : program_.nodes) {
            if (node.op != "broadcast_in_dim") {
                continue;
            }
            const Node *operand = producer(node.operands[0]);
            if (operand && depth_[node.operands[0]] > 0 && !is_reduction(*operand)) {
                placed_.insert(node.operands[0]);
            }
        }
    }

    /// Marks what the loop `loop` computes when it makes `value`.
    void use(ValueId value, int loop, std::vector<std::set<int>> &users) const {
        const Node *node = producer(value);
        if (!node || is_reduction(*node) || !users[value].insert(loop).second) {
            return;
        }
        for (ValueId operand : node->operands) {
            if (!placed_.count(operand)) {
                use(operand, loop, users);
            }
        }
    }

    std::vector<std::set<int>> find_users() const {
        std::vector<std::set<int>> users(program_.values.size());
        for (const Node &node : program_.nodes) {
            if (is_reduction(node) && !placed_.count(node.operands[0])) {
                use(node.operands[0], depth_[node.operands[0]], users);
            }
        }
        for (const Result &result : program_.results) {
            if (!placed_.count(result.value)) {
                use(result.value, last_depth_, users);
            }
        }
        int loop = last_depth_;
        for (ValueId value : placed_) {
            use(value, ++loop, users);
        }
        return users;
    }

    /// Places the last expensive element that more than one loop computes.
    bool place_element() {
        const std::vector<std::set<int>> users = find_users();
        for (size_t i = program_.nodes.size(); i-- > 0;) {
            ValueId value = program_.nodes[i].results[0];
            bool is_element = program_.type(value).shape == space();
            if (is_element && users[value].size() > 1 && operator_cost(program_.nodes[i].op) >= expensive && !placed_.count(value)) {
                placed_.insert(value);
                return true;
            }
        }
        return false;
    }

    const Program &program_;
    std::vector<int> producers_;
    std::vector<int> depth_; ///< by value
    int last_depth_ = 0;
    std::set<ValueId> placed_;
};

class RowLowering {
public:
    explicit RowLowering(Lowering &lowering)
        : lowering_(lowering), program_(lowering.kernel.program), plan_(program_, lowering.target.has_gpu_feature()),
          vars_(axis_vars(int(plan_.space().size()))) {}

    void lower() {
        lowering_.kernel.extents["columns"] = plan_.space().back();
        lowering_.kernel.extents["rows"] = element_count({plan_.space().begin(), plan_.space().end() - 1});
        for (int depth = 0; depth <= plan_.last_depth(); depth++) {
            for (ValueId value : plan_.placed(depth)) {
                place(value);
            }
            reduce(plan_.reductions(depth));
        }
        store_reduced(lowering_, first_vars(int(vars_.size()) - 1));
        add_outputs([](const Type &type) { return !type.is_scalar(); });
        reduce_stored(lowering_);
        add_outputs([](const Type &type) { return type.is_scalar(); });
    }

private:
    void add_outputs(const std::function<bool(const Type &)> &chosen) {
        for (const std::vector<int> &results : results_by_shape(program_)) {
            const Type &type = program_.type(program_.results[results[0]].value);
            if (chosen(type)) {
                add_output(lowering_, results, first_vars(type.rank()));
            }
        }
    }

    /// The row axes, or those and the columns.
    std::vector<Halide::Var> first_vars(int rank) const { return {vars_.begin(), vars_.begin() + rank}; }

    void place(ValueId value) {
        const Type &type = program_.type(value);
        std::vector<Halide::Var> vars = first_vars(type.rank());
        bool is_element = type.shape == plan_.space();
        std::vector<Halide::Func> &stages = lowering_.kernel.stages[is_element ? "element" : "scalar"];
        Halide::Func stage((is_element ? "element_" : "scalar_") + std::to_string(stages.size()));
        stage(buffer_order(vars)) = to_word(type.dtype, lowering_.values.at(value, Index(vars.begin(), vars.end())));
        lowering_.values.bind(value, stage);
        stages.push_back(stage);
    }

    void reduce(const std::vector<const Node *> &nodes) {
        if (nodes.empty()) {
            return;
        }
        std::vector<Reduction> reductions;
        for (const Node *node : nodes) {
            internal_check(program_.type(node->operands[0]).shape == plan_.space(), "reductions of a row kernel have different shapes");
            reductions.emplace_back(program_, *node);
        }
        std::vector<Halide::Var> rows = first_vars(int(vars_.size()) - 1);
        auto at = [rows](const Index &, const Halide::Expr &column) {
            Index index(rows.begin(), rows.end());
            index.push_back(column);
            return index;
        };
        const Extent &columns = plan_.space().back();
        ReductionGroup group(reductions);
        ReductionSpace space{buffer_order(rows), lowering_.values.extent(columns), choose_lanes(columns), {}, at};
        group.bind(lowering_.values, reduce_lanes(lowering_, group, space));
    }

    Lowering &lowering_;
    const Program &program_;
    RowPlan plan_;
    std::vector<Halide::Var> vars_;
};

} // namespace

void lower_row(Lowering &lowering) { RowLowering(lowering).lower(); }

} // namespace scalide
