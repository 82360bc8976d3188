#include "lower/axis_links.h"
#include "expr/base_operators.h"
#include "ir/window.h"
#include <algorithm>

namespace scalide {
namespace {

/// One operand of a node and its first result (a source has no operand: `operand` is -1).
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

/// Axis i is axis i, but for those in `fixed`.
AxisLink link_same(const Pair &pair, const std::vector<int64_t> &fixed = {}) {
    std::vector<int> axes = same(pair.operand_shape());
    for (int64_t axis : fixed) {
        axes[axis] = AxisLink::fixed;
    }
    return make_link(pair, axes, axes);
}

/// Result axis of each operand axis, or a tag of AxisLink; the result's side follows.
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

AxisLink link_rev(const Pair &pair) { return link_same(pair, to_integers(pair.attribute("dimensions"))); }

/// The axes where a list of integers or extents by axis (absent or empty: all `neutral`) is not `neutral`.
std::vector<bool> touched(const Pair &pair, const char *name, const Extents &neutral) {
    std::vector<bool> result(neutral.size(), false);
    const std::vector<Extent> values = axis_values(pair.node, name, neutral);
    for (size_t i = 0; i < neutral.size(); i++) {
        result[i] = !(values[i] == neutral[i]);
    }
    return result;
}

/// Axis i is axis i, but where one of the lists is not neutral.
AxisLink link_untouched(const Pair &pair, const std::vector<std::pair<const char *, Extents>> &lists) {
    std::vector<int64_t> fixed;
    for (const auto &[name, neutral] : lists) {
        const std::vector<bool> is_touched = touched(pair, name, neutral);
        for (size_t i = 0; i < is_touched.size(); i++) {
            if (is_touched[i]) {
                fixed.push_back(int64_t(i));
            }
        }
    }
    return link_same(pair, fixed);
}

AxisLink link_slice(const Pair &pair) {
    const Extents zeros(pair.operand_shape().size(), Extent(0)), ones(zeros.size(), Extent(1));
    return link_untouched(pair, {{"start", zeros}, {"limit", pair.operand_shape()}, {"strides", ones}});
}

AxisLink link_pad(const Pair &pair) {
    if (pair.operand == 1) { // the rank-0 fill
        return link_axes(pair, {});
    }
    const Extents zeros(pair.operand_shape().size(), Extent(0));
    return link_untouched(pair, {{"low", zeros}, {"high", zeros}, {"interior", zeros}});
}

AxisLink link_concatenate(const Pair &pair) { return link_same(pair, {pair.attribute("dimension").integer.value()}); }

AxisLink link_iota(const Pair &pair) {
    std::vector<int> axes(pair.result_shape().size(), AxisLink::free);
    axes[pair.attribute("dimension").integer.value()] = AxisLink::fixed;
    return make_link(pair, {}, axes);
}

AxisLink link_source(const Pair &pair) { return make_link(pair, {}, std::vector<int>(pair.result_shape().size(), AxisLink::free)); }

AxisLink link_reduced(const Pair &pair, const std::vector<int64_t> &reduced, int kind) {
    std::vector<int> axes(pair.operand_shape().size());
    int result_axis = 0;
    for (size_t i = 0; i < axes.size(); i++) {
        bool is_reduced = std::find(reduced.begin(), reduced.end(), int64_t(i)) != reduced.end();
        axes[i] = is_reduced ? kind : result_axis++;
    }
    return link_axes(pair, axes);
}

AxisLink link_reduce(const Pair &pair) { return link_reduced(pair, to_integers(pair.attribute("axes")), AxisLink::reduced); }

AxisLink link_arg(const Pair &pair) { return link_reduced(pair, {pair.attribute("axis").integer.value()}, AxisLink::fixed); }

AxisLink link_scan(const Pair &pair) { return link_same(pair, {pair.attribute("axis").integer.value()}); }

AxisLink link_apart(const Pair &pair) {
    return make_link(pair, std::vector<int>(pair.operand_shape().size(), AxisLink::fixed),
                     std::vector<int>(pair.result_shape().size(), AxisLink::fixed));
}

/// Axis i is axis i, where windows are single elements.
AxisLink link_window(const Pair &pair) {
    std::vector<int64_t> fixed;
    const std::vector<WindowAxis> axes = window_axes(pair.node.attributes, pair.operand_shape().size());
    for (size_t i = 0; i < axes.size(); i++) {
        if (!axes[i].is_trivial()) {
            fixed.push_back(int64_t(i));
        }
    }
    return link_same(pair, fixed);
}

const std::map<std::string, AxisLink (*)(const Pair &)> makers = {
    {"broadcast_in_dim", link_broadcast},
    {"transpose", link_transpose},
    {"reshape", link_reshape},
    {"rev", link_rev},
    {"slice", link_slice},
    {"pad", link_pad},
    {"concatenate", link_concatenate},
    {"iota", link_iota},
    {"constant", link_source},
    {"size", link_source},
    {"reduce_sum", link_reduce},
    {"reduce_max", link_reduce},
    {"reduce_min", link_reduce},
    {"reduce_prod", link_reduce},
    {"reduce_and", link_reduce},
    {"reduce_or", link_reduce},
    {"reduce_xor", link_reduce},
    {"argmax", link_arg},
    {"argmin", link_arg},
    {"dot_general", link_apart},
    {"gather", link_apart},
    {"dynamic_slice", link_apart},
    {"dynamic_update_slice", link_apart},
    {"scatter", link_apart},
    {"scatter_add", link_apart},
    {"scatter_mul", link_apart},
    {"scatter_min", link_apart},
    {"scatter_max", link_apart},
    {"cumsum", link_scan},
    {"cumprod", link_scan},
    {"cummax", link_scan},
    {"cummin", link_scan},
    {"cumlogsumexp", link_scan},
    {"argsort", link_concatenate},
    {"conv_general_dilated", link_apart},
    {"reduce_window_sum", link_window},
    {"reduce_window_max", link_window},
    {"reduce_window_min", link_window},
    {"select_and_scatter_add", link_window},
    {"select_and_gather_add", link_window},
};

AxisLink link_node(const Pair &pair) {
    auto maker = makers.find(pair.node.op);
    if (maker != makers.end()) {
        return maker->second(pair);
    }
    bool is_rank_0 = pair.operand_shape().empty(); // `which` of select_n
    return is_rank_0 ? link_axes(pair, {}) : link_same(pair);
}

/// Values that should share a loop when their shapes are equal.
std::vector<ValueId> loop_values(const Program &program) {
    std::vector<ValueId> values;
    for (const Result &result : program.results) {
        values.push_back(result.value);
        if (result.argument >= 0) {
            values.push_back(program.arguments[result.argument].value);
        }
    }
    for (const Node &node : program.nodes) {
        const BaseOperator *op = find_base_operator(node.op);
        if (op && op->shape == Shape::reduce) {
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

std::vector<Extent> axis_values(const Node &node, const char *name, const Extents &absent) {
    auto found = node.attributes.find(name);
    return found == node.attributes.end() || found->second.list.empty() ? absent : to_extents(found->second);
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
