#include "lower/shapes/loop_shapes.h"
#include "expr/base_operators.h"
#include "ir/reduction_axes.h"
#include "ir/rewrite.h"
#include "ir/shape.h"
#include "kinds/access.h"
#include <algorithm>
#include <numeric>

namespace scalide {
namespace {

/// Loop shapes, by shape without axes of extent 1.
using LoopShapes = std::map<Extents, Extents>;

LoopShapes find_loop_shapes(const Program &program) {
    LoopShapes shapes;
    const auto add = [&](ValueId value) {
        const Extents &shape = program.type(value).shape;
        if (!shape.empty()) shapes.insert({without_ones(shape), shape});
    };
    for (const Node &node : program.nodes) {
        const Shape shape = base_operator(node.op).shape;
        if (shape == Shape::scan || shape == Shape::contract) add(node.results[0]);
    }
    for (const Result &result : program.results)
        if (result.argument >= 0) add(program.arguments[result.argument].value);
    return shapes;
}

class LoopShaper {
public:
    explicit LoopShaper(const Program &program) : program_(program), shapes_(find_loop_shapes(program)), rewriter_(program) {}

    Program shape() {
        for (const Argument &argument : program_.arguments) copy_argument(argument);
        for (const Node &node : program_.nodes) copy(node);
        for (Result result : program_.results) {
            result.value = get(result.value, loop_shape(result.value));
            rewriter_.result().results.push_back(result);
        }
        return rewriter_.take();
    }

private:
    const Extents &own_shape(ValueId value) const { return program_.type(value).shape; }

    /// Returns the shape of the loop that has one iteration for each element of `value`, or the value's own shape if there is none.
    const Extents &loop_shape(ValueId value) const {
        const Extents &own = own_shape(value);
        const auto found = own.empty() ? shapes_.end() : shapes_.find(without_ones(own));
        return found == shapes_.end() ? own : found->second;
    }

    /// True if the node reads its operands at the index of its result.
    bool is_in_loop(const Node &node) const {
        const Shape shape = base_operator(node.op).shape;
        if (shape != Shape::elementwise && shape != Shape::movement) return false;
        return access_of(program_, node) == Access::same && shapes_.contains(without_ones(own_shape(node.results[0]))) &&
               !own_shape(node.results[0]).empty();
    }

    bool folds_loop(const Node &node) const {
        return is_reduction(node) && without_ones(own_shape(node.results[0])).empty() &&
               loop_shape(node.operands[0]) != own_shape(node.operands[0]);
    }

    void copy_argument(Argument argument) {
        const auto reads = [&](const Node &node) { return std::ranges::find(node.operands, argument.value) != node.operands.end(); };
        const bool stays = std::ranges::any_of(program_.nodes, [&](const Node &node) { return reads(node) && !is_in_loop(node); });
        const Value &value = program_.values[argument.value];
        const Type type{value.type.dtype, stays ? own_shape(argument.value) : loop_shape(argument.value)};
        rewriter_.map(argument.value, add_value(rewriter_.result(), value.name, type, value.part));
        argument.value = rewriter_(argument.value);
        rewriter_.result().arguments.push_back(argument);
    }

    /// Returns the new value of `old`, in this shape.
    ValueId get(ValueId old, const Extents &shape) {
        Program &result = rewriter_.result();
        const ValueId fresh = rewriter_(old);
        const Type &type = result.type(fresh);
        if (type.shape == shape) return fresh;
        const auto [found, is_new] = reshaped_.insert({{fresh, shape}, -1});
        if (is_new) {
            Node node;
            node.op = "reshape";
            node.operands = {fresh};
            node.attributes["shape"] = to_attribute(shape);
            found->second = add_node(result, node, {{type.dtype, shape}}, program_.value_name(old))[0];
        }
        return found->second;
    }

    void copy(const Node &node) {
        const ValueId old = node.results[0];
        const bool in_loop = is_in_loop(node), folds = folds_loop(node);
        if (in_loop && base_operator(node.op).shape == Shape::movement) return rewriter_.map(old, get(node.operands[0], loop_shape(old)));
        Node fresh = node;
        Type type = program_.type(old);
        for (ValueId &operand : fresh.operands) operand = get(operand, in_loop || folds ? loop_shape(operand) : own_shape(operand));
        if (in_loop) type.shape = loop_shape(old);
        if (folds) fold_loop(fresh, type, loop_shape(node.operands[0]));
        fresh.results.clear();
        rewriter_.map(old, add_node(rewriter_.result(), fresh, {type}, program_.value_name(old))[0]);
    }

    /// Rewrites a reduction of all elements to the loop's shape. It reduces all axes, or (argmax, argmin) the only axis whose extent is not
    /// 1.
    static void fold_loop(Node &node, Type &type, const Extents &shape) {
        std::vector<int64_t> axes(shape.size());
        std::iota(axes.begin(), axes.end(), 0);
        if (!node.attributes.contains("axis")) {
            node.attributes["axes"] = to_attribute(axes);
            type.shape = {};
            return;
        }
        const auto is_one = [&](int64_t axis) { return shape[size_t(axis)] == Extent(1); };
        node.attributes["axis"] = *std::ranges::find_if_not(axes, is_one);
        type.shape.assign(shape.size() - 1, Extent(1));
    }

    const Program &program_;
    LoopShapes shapes_;
    Rewriter rewriter_;
    std::map<std::pair<ValueId, Extents>, ValueId> reshaped_;
};

} // namespace

Program take_loop_shapes(const Program &program) { return LoopShaper(program).shape(); }

} // namespace scalide
