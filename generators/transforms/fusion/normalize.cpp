#include "transforms/fusion/normalize.h"
#include "expr/base_operators.h"
#include "ir/reduction_axes.h"
#include "ir/rewrite.h"
#include "transforms/analysis/operators.h"
#include "transforms/analysis/updates.h"
#include <algorithm>
#include <set>

namespace scalide {

namespace {

constexpr int64_t fewest_columns = 8; ///< a shorter last axis does not fill a vector

/// Appends the nodes that replace one reduction.
class ReductionRewriter {
public:
    ReductionRewriter(Rewriter &rewriter, const Node &node)
        : rewriter_(rewriter), node_(node), operand_(rewriter(node.operands[0])), axes_(reduced_axes(node)) {}

    void run() {
        drop_ones();
        if (axes_.empty()) return rewriter_.map(node_.results[0], fold_nothing());
        if (!folds_one_end()) move_axes();
        rewriter_.map(node_.results[0], fold());
    }

private:
    const Type &type() const { return rewriter_.result().type(operand_); }
    bool is_folded(int64_t axis) const { return std::ranges::find(axes_, axis) != axes_.end(); }

    ValueId add(const std::string &op, std::vector<ValueId> operands, Attributes attributes, const Type &type, const std::string &name) {
        Node node = node_;
        node.op = op;
        node.operands = std::move(operands);
        node.attributes = std::move(attributes);
        return add_node(rewriter_.result(), node, {type}, name)[0];
    }

    /// Reshapes the operand so that no reduced axis has extent 1. Reducing such an axis changes nothing.
    void drop_ones() {
        Extents shape;
        std::vector<int64_t> axes;
        for (int64_t axis = 0; axis < type().rank(); ++axis) {
            const Extent &extent = type().shape[axis];
            if (is_folded(axis) && extent == Extent(1)) continue;
            if (is_folded(axis)) axes.push_back(static_cast<int64_t>(shape.size()));
            shape.push_back(extent);
        }
        if (axes != axes_ && !axes.empty()) operand_ = add("reshape", {operand_}, reshape_attributes(shape), {type().dtype, shape}, "");
        axes_ = axes;
    }

    /// The result if only axes of extent 1 are reduced: the element itself, or index 0 for argmax and argmin.
    ValueId fold_nothing() {
        const Type &result = rewriter_.source().type(node_.results[0]);
        if (node_.attributes.contains("axis")) return full_of_zeros(result);
        const ValueId element = add("reshape", {operand_}, reshape_attributes(result.shape), result, name());
        if (node_.op != "reduce_sum" || !is_float(result.dtype)) return element;
        return add("add", {element, full_of_zeros(result)}, {}, result, name()); // a sum starts from +0, so its result is never -0
    }

    ValueId full_of_zeros(const Type &type) {
        const ValueId zero = add("constant", {}, constant_attributes(0, type.dtype), {type.dtype, {}}, "");
        return type.is_scalar() ? zero : add("broadcast_in_dim", {zero}, broadcast_attributes(type.shape, {}), type, "");
    }

    /// True if the reduced axes are leading or trailing ones. Axes of extent 1 do not count.
    bool folds_one_end() const {
        std::vector<bool> folded;
        for (int64_t axis = 0; axis < type().rank(); ++axis)
            if (type().shape[axis] != Extent(1)) folded.push_back(is_folded(axis));
        return std::ranges::is_sorted(folded) || std::ranges::is_sorted(folded, std::greater<>());
    }

    bool keeps_long_last_axis() const {
        const int64_t last = type().rank() - 1;
        const Extent &extent = type().shape[last];
        return !is_folded(last) && (!extent.is_static() || extent.value() >= fewest_columns);
    }

    void move_axes() {
        const bool are_first = keeps_long_last_axis();
        std::vector<int64_t> permutation = other_axes(type().rank(), axes_);
        const int64_t first = are_first ? 0 : std::ssize(permutation);
        permutation.insert(permutation.begin() + first, axes_.begin(), axes_.end());
        Extents shape;
        for (const int64_t axis : permutation) shape.push_back(type().shape[axis]);
        operand_ = add("transpose", {operand_}, transpose_attributes(permutation), {type().dtype, shape}, "");
        for (size_t i = 0; i < axes_.size(); ++i) axes_[i] = first + static_cast<int64_t>(i);
    }

    ValueId fold() {
        Attributes attributes = node_.attributes;
        if (attributes.contains("axes"))
            attributes["axes"] = to_attribute(axes_);
        else
            attributes["axis"] = Attribute(axes_[0]);
        return add(node_.op, {operand_}, attributes, rewriter_.source().type(node_.results[0]), name());
    }

    const std::string &name() const { return rewriter_.source().value_name(node_.results[0]); }

    Rewriter &rewriter_;
    const Node &node_;
    ValueId operand_;
    std::vector<int64_t> axes_;
};

} // namespace

Program move_reduced_axes(const Program &program) {
    Rewriter rewriter(program);
    rewriter.copy_arguments();
    for (const Node &node : program.nodes) {
        const BaseOperator *op = find_base_operator(node.op);
        internal_check(op != nullptr, "fuse: '" + node.op + "' is no base operator");
        if (op->shape == Shape::reduce)
            ReductionRewriter(rewriter, node).run();
        else
            rewriter.copy(node);
    }
    rewriter.copy_results();
    return remove_dead_nodes(rewriter.take()); // removes the operand of an argmax or argmin over one element
}

namespace {

/// Appends the scatter that replaces one dynamic_update_slice. Axes that the update covers have no start.
void scatter_update(Rewriter &rewriter, const Node &update, const std::vector<int64_t> &axes) {
    const int64_t rank = rewriter.source().type(update.operands[0]).rank();
    const auto add = [&](const std::string &op, std::vector<ValueId> operands, Attributes attributes, const Type &type) {
        Node node = update;
        node.op = op;
        node.operands = std::move(operands);
        node.attributes = std::move(attributes);
        return add_node(rewriter.result(), node, {type}, op == "scatter" ? rewriter.source().value_name(update.results[0]) : "")[0];
    };
    std::vector<ValueId> starts;
    for (const int64_t axis : axes)
        starts.push_back(add("broadcast_in_dim", {rewriter(update.operands[2 + axis])}, broadcast_attributes({Extent(1)}, {}),
                             {Dtype::i32, {Extent(1)}}));
    const Type vector{Dtype::i32, {Extent(std::ssize(axes))}};
    const ValueId indices = axes.size() == 1 ? starts[0] : add("concatenate", starts, {{"dimension", Attribute(int64_t(0))}}, vector);
    const Attributes attributes = {{"update_window_dims", to_attribute(count_up(rank))},
                                   {"inserted_window_dims", to_attribute(std::vector<int64_t>())},
                                   {"scatter_dims_to_operand_dims", to_attribute(axes)},
                                   {"operand_batching_dims", to_attribute(std::vector<int64_t>())},
                                   {"scatter_indices_batching_dims", to_attribute(std::vector<int64_t>())},
                                   {"mode", std::string("clip")}};
    const ValueId array = rewriter(update.operands[0]), window = rewriter(update.operands[1]);
    rewriter.map(update.results[0], add("scatter", {array, indices, window}, attributes, rewriter.source().type(update.results[0])));
}

/// Returns the axes along which an update is smaller than the array.
std::vector<int64_t> partial_axes(const Program &program, const Node &update) {
    const Extents &array = program.type(update.operands[0]).shape, &window = program.type(update.operands[1]).shape;
    std::vector<int64_t> axes;
    for (size_t axis = 0; axis < array.size(); ++axis)
        if (array[axis] != window[axis]) axes.push_back(static_cast<int64_t>(axis));
    return axes;
}

} // namespace

Program scatter_into_arguments(const Program &program) {
    const std::vector<int> makers = producers(program);
    std::set<int> updates; // nodes that update inout arguments
    for (const Result &result : program.results) {
        if (result.argument < 0) continue;
        const std::vector<int> found = updates_between(program, makers, program.arguments[result.argument].value, result.value);
        updates.insert(found.begin(), found.end());
    }
    Rewriter rewriter(program);
    rewriter.copy_arguments();
    for (int index = 0; index < static_cast<int>(program.nodes.size()); ++index) {
        const Node &node = program.nodes[index];
        const bool updates_argument = node.op == "dynamic_update_slice" && updates.contains(index);
        const bool has_i32_starts = std::ranges::all_of(node.operands, [&](ValueId operand) {
            return operand == node.operands[0] || operand == node.operands[1] || program.type(operand).dtype == Dtype::i32;
        });
        const std::vector<int64_t> axes = updates_argument && has_i32_starts ? partial_axes(program, node) : std::vector<int64_t>();
        if (axes.empty())
            rewriter.copy(node);
        else
            scatter_update(rewriter, node, axes);
    }
    rewriter.copy_results();
    return rewriter.take();
}

} // namespace scalide
