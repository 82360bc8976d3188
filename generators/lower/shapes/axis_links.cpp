#include "lower/shapes/axis_links.h"
#include "expr/base_operators.h"
#include "ir/reduction_axes.h"
#include "lower/shapes/axis_attributes.h"
#include <algorithm>

namespace scalide {
namespace {

/// One operand of a node and its first result. A source has no operand; `operand` is -1.
struct Pair {
    const Program &program;
    const Node &node;
    int operand;

    ValueId operand_value() const { return operand < 0 ? -1 : node.operands[operand]; }
    ValueId result_value() const { return node.results[0]; }
    const Extents &operand_shape() const { return program.type(operand_value()).shape; }
    const Extents &result_shape() const { return program.type(result_value()).shape; }
    const Attribute &attribute(const char *name) const { return node.attributes.at(name); }
};

std::vector<int> same(const Extents &shape) {
    std::vector<int> axes(shape.size());
    for (size_t i = 0; i < axes.size(); i++) {
        axes[i] = int(i);
    }
    return axes;
}

AxisLink make_link(const Pair &pair, std::vector<int> operand_axes, std::vector<int> result_axes) {
    return {{{pair.operand_value(), std::move(operand_axes)}, {pair.result_value(), std::move(result_axes)}}};
}

/// Links each axis to the same axis, except those in `fixed`.
AxisLink link_same(const Pair &pair, const std::vector<int64_t> &fixed) {
    std::vector<int> axes = same(pair.operand_shape());
    for (int64_t axis : fixed) {
        axes[axis] = AxisLink::fixed;
    }
    return make_link(pair, axes, axes);
}

/// Links each operand axis to a result axis, or gives it a tag of AxisLink. The result's side follows from this.
AxisLink link_axes(const Pair &pair, const std::vector<int> &operand_axes) {
    std::vector<int> result_axes(pair.result_shape().size(), AxisLink::free);
    for (size_t i = 0; i < operand_axes.size(); i++) {
        if (operand_axes[i] >= 0) {
            result_axes[operand_axes[i]] = int(i);
        }
    }
    return make_link(pair, operand_axes, result_axes);
}

AxisLink link_broadcast(const Pair &pair) {
    std::vector<int> axes;
    for (int64_t axis : to_integers(pair.attribute("dims"))) {
        bool equal = pair.operand_shape()[axes.size()] == pair.result_shape()[axis];
        axes.push_back(equal ? int(axis) : AxisLink::free);
    }
    return link_axes(pair, axes);
}

AxisLink link_transpose(const Pair &pair) {
    std::vector<int64_t> permutation = to_integers(pair.attribute("permutation"));
    std::vector<int> axes(permutation.size());
    for (size_t i = 0; i < permutation.size(); i++) {
        axes[permutation[i]] = int(i);
    }
    return link_axes(pair, axes);
}

AxisLink link_reshape(const Pair &pair) {
    std::vector<Extent> operand = suffix_products(pair.operand_shape()), result = suffix_products(pair.result_shape());
    std::vector<int> axes(pair.operand_shape().size(), AxisLink::free);
    for (size_t i = 0; i < axes.size(); i++) {
        for (size_t j = 0; j < pair.result_shape().size(); j++) {
            if (!(operand[i] == operand[i + 1]) && operand[i] == result[j] && operand[i + 1] == result[j + 1]) {
                axes[i] = int(j);
            }
        }
    }
    AxisLink link = link_axes(pair, axes);
    link.is_reshape = true;
    return link;
}

AxisLink link_source(const Pair &pair) {
    std::vector<int> axes(pair.result_shape().size(), AxisLink::free);
    for (const int64_t axis : touched_axes(pair.node, pair.result_shape())) {
        axes[axis] = AxisLink::fixed;
    }
    return make_link(pair, {}, axes);
}

AxisLink link_reduce(const Pair &pair) {
    const std::vector<int64_t> folded = reduced_axes(pair.node);
    const int kind = touched_axes(pair.node, pair.operand_shape()).empty() ? AxisLink::reduced : AxisLink::fixed;
    std::vector<int> axes(pair.operand_shape().size());
    int result_axis = 0;
    for (size_t i = 0; i < axes.size(); i++) {
        bool is_folded = std::find(folded.begin(), folded.end(), int64_t(i)) != folded.end();
        axes[i] = is_folded ? kind : result_axis++;
    }
    return link_axes(pair, axes);
}

AxisLink link_apart(const Pair &pair) {
    return make_link(pair, std::vector<int>(pair.operand_shape().size(), AxisLink::fixed),
                     std::vector<int>(pair.result_shape().size(), AxisLink::fixed));
}

/// Operators whose result has another order or number of axes than the operand.
const std::map<std::string, AxisLink (*)(const Pair &)> makers = {
    {"broadcast_in_dim", link_broadcast}, {"transpose", link_transpose}, {"reshape", link_reshape}};

AxisLink link_node(const Pair &pair) {
    const BaseOperator &op = base_operator(pair.node.op);
    if (const auto maker = makers.find(pair.node.op); maker != makers.end()) return maker->second(pair);
    if (keeps_axes_apart(pair.node)) return link_apart(pair);
    if (op.shape == Shape::source) return link_source(pair);
    if (op.shape == Shape::reduce) return link_reduce(pair);
    if (pair.operand_shape().empty()) return link_axes(pair, {}); // `which` of select_n, the fill value of pad
    return link_same(pair, touched_axes(pair.node, pair.operand_shape()));
}

/// Returns values that should share a loop if their shapes are equal.
std::vector<ValueId> loop_values(const Program &program) {
    std::vector<ValueId> values;
    for (const Result &result : program.results) {
        values.push_back(result.value);
        if (result.argument >= 0) {
            values.push_back(program.arguments[result.argument].value);
        }
    }
    for (const Node &node : program.nodes) {
        if (is_reduction(node)) {
            values.push_back(node.operands[0]);
        }
    }
    return values;
}

} // namespace

std::vector<Extent> suffix_products(const Extents &shape) {
    std::vector<Extent> products(shape.size() + 1, Extent(1));
    for (size_t i = shape.size(); i-- > 0;) {
        products[i] = shape[i] * products[i + 1];
    }
    return products;
}

AxisLink first_link(const Program &program, const Node &node) { return link_node({program, node, node.operands.empty() ? -1 : 0}); }

std::vector<AxisLink> axis_links(const Program &program) {
    std::vector<AxisLink> links;
    for (const Node &node : program.nodes) {
        if (node.operands.empty()) {
            links.push_back(link_node({program, node, -1}));
        }
        for (int i = 0; i < int(node.operands.size()); i++) {
            links.push_back(link_node({program, node, i}));
        }
    }
    std::map<Extents, ValueId> first;
    for (ValueId value : loop_values(program)) {
        const Extents &shape = program.type(value).shape;
        auto [found, fresh] = first.insert({shape, value});
        if (!fresh) {
            links.push_back({{{found->second, same(shape)}, {value, same(shape)}}});
        }
    }
    return links;
}

} // namespace scalide
