#include "transforms/fuse_normalize.h"
#include "expr/base_operators.h"
#include "ir/rewrite.h"
#include <algorithm>

namespace scalide {

namespace {

std::vector<int64_t> reduced_axes(const Node &node) {
    const auto axes = node.attributes.find("axes");
    return axes != node.attributes.end() ? to_integers(axes->second) : std::vector{node.attributes.at("axis").integer.value()};
}

/// True when the axes of extent other than 1 are folded at one end.
bool folds_one_end(const Extents &shape, const std::vector<int64_t> &axes) {
    std::vector<bool> is_folded;
    for (int axis = 0; axis < static_cast<int>(shape.size()); ++axis)
        if (shape[axis] != Extent(1)) is_folded.push_back(std::ranges::find(axes, axis) != axes.end());
    return std::ranges::is_sorted(is_folded) || std::ranges::is_sorted(is_folded, std::greater<>());
}

void reduce_transposed(Rewriter &rewriter, const Node &node) {
    const Type &type = rewriter.source().type(node.operands[0]);
    const std::vector<int64_t> axes = reduced_axes(node);
    std::vector<int64_t> permutation;
    for (int64_t axis = 0; axis < type.rank(); ++axis)
        if (std::ranges::find(axes, axis) == axes.end()) permutation.push_back(axis);
    std::vector<int64_t> last;
    for (size_t i = 0; i < axes.size(); ++i) last.push_back(static_cast<int64_t>(permutation.size() + i));
    permutation.insert(permutation.end(), axes.begin(), axes.end());

    Node transpose = node;
    transpose.op = "transpose";
    transpose.operands = rewriter(node.operands);
    transpose.attributes = {{"permutation", to_attribute(permutation)}};
    Extents shape;
    for (int64_t axis : permutation) shape.push_back(type.shape[axis]);
    Node reduce = node;
    reduce.operands = add_node(rewriter.result(), transpose, {{type.dtype, shape}});
    if (node.attributes.contains("axes"))
        reduce.attributes["axes"] = to_attribute(last);
    else
        reduce.attributes["axis"] = Attribute(last[0]);
    const ValueId old = node.results[0];
    rewriter.map(old, add_node(rewriter.result(), reduce, {rewriter.source().type(old)}, rewriter.source().value_name(old))[0]);
}

} // namespace

Program move_reduced_axes_last(const Program &program) {
    Rewriter rewriter(program);
    rewriter.copy_arguments();
    for (const Node &node : program.nodes) {
        const BaseOperator *op = find_base_operator(node.op);
        internal_check(op != nullptr, "fuse: '" + node.op + "' is no base operator");
        if (op->shape == Shape::reduce && !folds_one_end(program.type(node.operands[0]).shape, reduced_axes(node)))
            reduce_transposed(rewriter, node);
        else
            rewriter.copy(node);
    }
    rewriter.copy_results();
    return rewriter.take();
}

} // namespace scalide
