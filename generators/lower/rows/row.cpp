#include "expr/base_operators.h"
#include "lower/rows/block_reduction.h"
#include "lower/rows/row_sums.h"
#include "lower/rows/row_warp.h"
#include "lower/rows/whole.h"
#include "lower/shapes/axis_links.h"
#include "lower/shapes/whole_reductions.h"
#include "lower/values/outputs.h"
#include <algorithm>
#include <optional>
#include <set>

// row: reductions over the last axis of arrays of shape rows x columns. There is one axis of rows or none (axes/rows.h). The depth of a
// reduction is the length of the chain of reductions before it. Reductions of one depth share a loop. Stages hold what several loops need.
// `element` holds an expensive value of shape rows x columns, computed once a row, if there is room for a row. `scalar` holds a value of
// shape rows that elements read. On a GPU, `argument` holds an argument that is read once, if there is room. The axes of outputs are the
// row axes y, d2 ... and, if they have columns, x.
namespace scalide {
namespace {

/// From this cost on, an operator costs more than writing a value to the first-level cache and reading it back.
constexpr int expensive = 4;
/// Sums of shorter rows have fewer lanes than a warp (choose_lanes).
constexpr int64_t least_warp = 2 * most_lanes;

/// Shorter rows leave threads of a block without elements.
constexpr int64_t least_block = 256;

/// Chooses which values of a row kernel get a stage, and orders values by depth.
class RowPlan {
public:
    RowPlan(const Program &program, const Halide::Target &target, const Budgets &budgets)
        : program_(program), budgets_(budgets), producers_(producers(program)), depth_(program.values.size(), 0) {
        find_depths();
        find_other_rows();
        place_scalars();
        const bool is_gpu = target.has_gpu_feature();
        const Extent &columns = space().back();
        const bool is_cuda = target.has_feature(Halide::Target::CUDA), is_line = space().size() == 2 && columns.is_static();
        const auto [smallest, largest] = element_bytes();
        if (is_gpu && is_line && columns.value() >= least_warp && columns.value() <= budgets.warp_columns &&
            !has_column_reductions(program))
            warp_ = warp_shape(columns.value(), smallest, largest, moves(), is_cuda);
        if (is_cuda && !warp_ && is_line && columns.value() >= least_block) block_ = block_shape(columns.value(), smallest);
        int64_t free = !is_gpu ? std::numeric_limits<int64_t>::max() : !columns.is_static() ? 0 : room(columns.value());
        while (free > 0 && place_element()) free--;
        for (size_t i = 0; is_gpu && i < program.arguments.size(); i++) {
            if (free > 0 && is_walked(program.arguments[i].value)) {
                kept_.insert(program.arguments[i].value);
                free--;
            }
        }
    }

    /// The warp that computes a row; nothing if none does.
    const std::optional<WarpShape> &warp() const { return warp_; }
    /// The block of threads that reduces a row together; nothing if rows are reduced in lanes.
    const std::optional<BlockShape> &block() const { return block_; }
    /// Arguments that get a stage.
    const std::set<ValueId> &kept() const { return kept_; }

    /// The shape rows x columns that reductions over the last axis read.
    const Extents &space() const {
        for (const Node &node : program_.nodes) {
            if (is_row_reduction(node)) {
                return program_.type(node.operands[0]).shape;
            }
        }
        throw InternalError("internal error: a row kernel has no reduction over its last axis");
    }
    int last_depth() const { return last_depth_; }

    /// The reductions of values with this depth.
    std::vector<const Node *> reductions(int depth) const {
        std::vector<const Node *> found;
        for (const Node &node : program_.nodes) {
            if (is_row_reduction(node) && depth_[node.operands[0]] == depth) {
                found.push_back(&node);
            }
        }
        return found;
    }

    /// The values with this depth that get a stage, in program order.
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
    /// How many rows a block, or a warp, of a GPU can keep.
    int64_t room(int64_t columns) const {
        return warp_ ? budgets_.warp_registers / ((columns + warp_threads - 1) / warp_threads)
                     : budgets_.shared_elements / std::max<int64_t>(columns, 1);
    }

    /// Bytes of the smallest and of the largest element of the rows in memory.
    std::pair<int, int> element_bytes() const {
        std::vector<int> sizes;
        const auto count = [&](ValueId value) {
            const Type &type = program_.type(value);
            if (type.shape == space()) sizes.push_back(size_of(type.dtype));
        };
        for (const Argument &argument : program_.arguments) count(argument.value);
        for (const Result &result : program_.results) count(result.value);
        if (sizes.empty()) return {4, 4};
        return {std::min(4, std::ranges::min(sizes)), std::ranges::max(sizes)};
    }

    bool moves() const {
        return std::ranges::any_of(program_.nodes, [](const Node &node) {
            return find_base_operator(node.op)->shape == Shape::movement && node.op != "broadcast_in_dim";
        });
    }

    /// True for an argument of shape rows x columns of which a row reads its own elements only, and which is not overwritten.
    bool is_walked(ValueId argument) const {
        const auto walks = [&](const Node &node) {
            return find_base_operator(node.op)->shape == Shape::elementwise || is_reduction(node) ||
                   std::ranges::find(node.operands, argument) == node.operands.end();
        };
        const auto overwrites = [&](const Result &result) {
            return result.argument >= 0 && program_.arguments[result.argument].value == argument;
        };
        return program_.type(argument).shape == space() && !read_in_other_rows_.contains(argument) &&
               std::ranges::all_of(program_.nodes, walks) && std::ranges::none_of(program_.results, overwrites);
    }

    bool is_row_reduction(const Node &node) const {
        return is_reduction(node) && !is_whole_reduction(program_, node) && !is_column_reduction(program_, node);
    }

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

    /// Finds values that are read in other rows, for example through a transpose or a reversal. A stage holds only one row, so such values
    /// are computed where they are read.
    void find_other_rows() {
        for (size_t i = program_.nodes.size(); i-- > 0;) {
            const Node &node = program_.nodes[i];
            if (is_reduction(node)) continue;
            const bool is_read = reads_other_rows(node) || read_in_other_rows_.contains(node.results[0]);
            if (is_read) read_in_other_rows_.insert(node.operands.begin(), node.operands.end());
        }
    }

    bool reads_other_rows(const Node &node) const {
        if (base_operator(node.op).shape != Shape::movement || program_.type(node.operands[0]).shape != space()) return false;
        const std::vector<int> axes = first_link(program_, node).sides[0].axes;
        for (int axis = 0; axis + 1 < int(axes.size()); axis++)
            if (axes[size_t(axis)] != axis) return true;
        return false;
    }

    /// Gives a stage to values that are computed from reductions once a row and then broadcast to the elements.
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

    /// Records all values that the loop `loop` computes to get `value`.
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

    static constexpr int sums_loop = -1; ///< stands for the loop of running sums

    std::vector<std::set<int>> find_users() const {
        std::vector<std::set<int>> users(program_.values.size());
        for (const Node &node : program_.nodes) {
            if (is_reduction(node) && !placed_.count(node.operands[0])) {
                use(node.operands[0], is_column_reduction(program_, node) ? sums_loop : depth_[node.operands[0]], users);
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

    /// Gives a stage to the last expensive element that more than one loop computes.
    bool place_element() {
        const std::vector<std::set<int>> users = find_users();
        for (size_t i = program_.nodes.size(); i-- > 0;) {
            ValueId value = program_.nodes[i].results[0];
            bool is_element = program_.type(value).shape == space();
            if (is_element && users[value].size() > 1 && operator_cost(program_.nodes[i].op) >= expensive && !placed_.count(value) &&
                !read_in_other_rows_.contains(value)) {
                placed_.insert(value);
                return true;
            }
        }
        return false;
    }

    const Program &program_;
    const Budgets &budgets_;
    std::vector<int> producers_;
    std::vector<int> depth_; ///< by value
    int last_depth_ = 0;
    std::optional<WarpShape> warp_;
    std::optional<BlockShape> block_;
    std::set<ValueId> placed_, kept_, read_in_other_rows_;
};

class RowLowering {
public:
    explicit RowLowering(Lowering &lowering)
        : lowering_(lowering), program_(lowering.kernel.program), stages_(lowering.kernel.stages.emplace<RowStages>()),
          plan_(program_, lowering.target, lowering.budgets), vars_(axis_vars(int(plan_.space().size()))) {}

    void lower() {
        stages_.columns = plan_.space().back();
        stages_.rows = element_count({plan_.space().begin(), plan_.space().end() - 1});
        stages_.warp_neighbours = plan_.warp() ? plan_.warp()->neighbours : 0;
        for (size_t i = 0; i < program_.arguments.size(); i++) read_argument(i);
        for (int depth = 0; depth <= plan_.last_depth(); depth++) {
            for (ValueId value : plan_.placed(depth)) {
                place(value);
            }
            reduce(plan_.reductions(depth));
        }
        in_thread(0);
        stages_.sums = sum_columns(lowering_, vars_);
        stages_.stored = store_reduced(lowering_, first_vars(int(vars_.size()) - 1));
        add_outputs([](const Type &type) { return !type.is_scalar(); });
        stages_.whole = reduce_stored(lowering_, stages_.stored);
        add_outputs([](const Type &type) { return type.is_scalar(); });
    }

private:
    void add_outputs(const std::function<bool(const Type &)> &chosen) {
        for (const std::vector<int> &results : results_by_shape(program_)) {
            const Type &type = program_.type(program_.results[results[0]].value);
            if (!chosen(type)) continue;
            in_thread(type.shape == plan_.space() ? own_thread() : Halide::Expr(0));
            add_output(lowering_, results, is_of_columns(type) ? std::vector{vars_.back()} : first_vars(type.rank()));
        }
    }

    /// True for sums over rows. `fuse` does not merge such sums if there are as many columns as rows.
    bool is_of_columns(const Type &type) const { return has_column_reductions(program_) && type.shape == Extents{plan_.space().back()}; }

    /// Sets the thread of a warp in which values of shape rows are read from now on. Each thread has its own copy.
    void in_thread(const Halide::Expr &thread) {
        for (const auto &bind : in_warp_) bind(thread);
    }

    /// Returns the row axes, or all axes if `rank` includes the columns.
    std::vector<Halide::Var> first_vars(int rank) const { return {vars_.begin(), vars_.begin() + rank}; }

    /// Returns the thread of a warp that computes the element of this column.
    Halide::Expr own_thread() const { return plan_.warp() ? thread_of(vars_.back(), *plan_.warp()) : Halide::Expr(0); }

    int64_t columns() const { return plan_.space().back().value(); }
    bool has_padding() const { return plan_.warp() && plan_.warp()->padded(columns()) != columns(); }

    /// Maps columns after the end of a row to its last elements, in whole groups that a thread reads at once.
    Halide::Expr inside(const Halide::Expr &column) const {
        const int neighbours = plan_.warp()->neighbours;
        return inside_line(column, columns(), columns() % neighbours == 0 ? neighbours : 1);
    }

    void read_argument(size_t argument) {
        const ValueId value = program_.arguments[argument].value;
        const Extents &shape = program_.type(value).shape;
        const Halide::ImageParam &input = lowering_.kernel.inputs[argument];
        if (!input.defined() || shape.empty()) return;
        const bool is_padded = has_padding() && shape.back() == plan_.space().back();
        const auto read = [this, input, is_padded](Index index) -> Halide::Expr {
            if (is_padded) index.back() = inside(index.back());
            return input(buffer_order(index));
        };
        if (plan_.kept().count(value)) {
            Halide::Func stage("kept_" + std::to_string(stages_.argument.size()));
            stage(buffer_order(vars_)) = read(Index(vars_.begin(), vars_.end()));
            lowering_.values.bind(value, stage);
            stages_.argument.push_back(stage);
        } else if (is_padded) {
            const Dtype dtype = program_.type(value).dtype;
            lowering_.values.bind(value, [=](const Index &index) { return from_word(dtype, read(index)); });
        }
    }

    void place(ValueId value) {
        const Type &type = program_.type(value);
        const std::vector<Halide::Var> vars = first_vars(type.rank());
        const bool is_element = type.shape == plan_.space(), has_thread = plan_.warp() && !is_element;
        std::vector<Halide::Func> &stages = is_element ? stages_.element : stages_.scalar;
        Halide::Func stage((is_element ? "element_" : "scalar_") + std::to_string(stages.size()));
        std::vector<Halide::Var> args = buffer_order(vars);
        if (has_thread) args.insert(args.begin(), thread_);
        in_thread(is_element ? own_thread() : thread_);
        stage(args) = to_word(type.dtype, lowering_.values.at(value, Index(vars.begin(), vars.end())));
        stages.push_back(stage);
        if (!has_thread) return lowering_.values.bind(value, stage);
        in_warp_.push_back([this, value, stage, dtype = type.dtype](const Halide::Expr &thread) {
            lowering_.values.bind(value, [=](const Index &index) {
                Index place = buffer_order(index);
                place.insert(place.begin(), thread);
                return from_word(dtype, stage(place));
            });
        });
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
        if (plan_.block())
            return group.bind(lowering_.values, reduce_by_block(lowering_, group, in_block(space), *plan_.block(), stages_.lanes));
        if (!plan_.warp()) return group.bind(lowering_.values, reduce_lanes(lowering_, group, space, stages_.lanes));
        const WarpShape &warp = *plan_.warp();
        space.lanes = warp.elements();
        if (has_padding()) {
            space.columns = warp.padded(columns.value());
            space.inside = [count = int(columns.value())](const Index &, const Halide::Expr &column) { return column < count; };
        }
        in_thread(Halide::Var("lane") / warp.neighbours);
        const Halide::Func total = reduce_in_warp(lowering_, group, space, warp, stages_);
        in_warp_.push_back([this, group, total](const Halide::Expr &thread) { group.bind(lowering_.values, total, thread); });
    }

    /// Extends the space of a row to a multiple of the elements that a block reads at once.
    ReductionSpace in_block(ReductionSpace space) const {
        const BlockShape &block = *plan_.block();
        const int64_t columns = plan_.space().back().value();
        const int rounds = int((columns + block.elements() - 1) / block.elements());
        space.columns = rounds * block.elements();
        if (columns % block.elements() == 0) return space;
        space.inside = [columns](const Index &, const Halide::Expr &column) { return column < int(columns); };
        space.at = [at = space.at, columns, neighbours = block.neighbours](const Index &steps, const Halide::Expr &column) {
            return at(steps, inside_line(column, columns, neighbours));
        };
        return space;
    }

    Lowering &lowering_;
    const Program &program_;
    RowStages &stages_;
    RowPlan plan_;
    std::vector<Halide::Var> vars_;
    Halide::Var thread_{"thread"};
    std::vector<std::function<void(const Halide::Expr &thread)>> in_warp_; ///< bind a value of shape rows to the copy of a thread
};

} // namespace

void lower_row(Lowering &lowering) { RowLowering(lowering).lower(); }

} // namespace scalide
