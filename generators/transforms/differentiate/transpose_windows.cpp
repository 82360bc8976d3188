#include "transforms/differentiate/transpose_windows.h"
#include "ir/window.h"
#include "transforms/analysis/operators.h"

namespace scalide {

namespace {

/// Returns windows over the `count` results that produce an axis of this extent again.
WindowAxis undone(const WindowAxis &axis, const Extent &extent, const Extent &count) {
    const Extent reach = dilated(axis.window, axis.window_dilation) - Extent(1), low = reach - axis.low;
    const Extent high = dilated(extent, axis.base_dilation) + reach - dilated(count, axis.stride) - low;
    return {axis.window, axis.base_dilation, low, high, axis.stride, axis.window_dilation};
}

/// Exchanges images and features in a convolution's axis spec.
std::vector<int64_t> swapped(std::vector<int64_t> spec) {
    std::swap(spec[0], spec[1]);
    return spec;
}

ValueId with_shape(Builder &builder, ValueId value, const Extents &shape) {
    return builder.add_one("reshape", {value}, reshape_attributes(shape));
}

/// Takes the `groups` groups out of axis `from`, of which they are the leading part. Puts them in front of axis `into`.
ValueId move_groups(Builder &builder, ValueId value, int64_t groups, int64_t from, int64_t into) {
    Extents shape = builder.type(value).shape;
    const int64_t rank = std::ssize(shape);
    shape[from] = *shape[from].divide(groups);
    shape.insert(shape.begin() + from, groups);
    const ValueId split = with_shape(builder, value, shape);
    std::vector<int64_t> order;
    for (int64_t axis = 0; axis < rank; axis++) {
        if (axis == into) order.push_back(from);
        order.push_back(axis < from ? axis : axis + 1);
    }
    const ValueId moved = builder.add_one("transpose", {split}, transpose_attributes(order));
    shape = builder.type(moved).shape;
    shape[into] = shape[into] * shape[into + 1];
    shape.erase(shape.begin() + into + 1);
    return with_shape(builder, moved, shape);
}

Extent spatial_extent(const Extents &shape, const std::vector<int64_t> &spec, size_t axis) { return shape[spec[axis + 2]]; }

/// The transposition of one convolution.
class Transposition {
public:
    Transposition(Builder &builder, const Node &node, ValueId ct)
        : builder_(builder), lhs_(node.operands[0]), rhs_(node.operands[1]), ct_(ct),
          forward_(convolution(node.attributes, builder.type(rhs_).shape)) {}

    ValueId of_lhs() {
        const int64_t groups = forward_.feature_groups * forward_.batch_groups;
        ValueId weights = rhs_;
        if (groups > 1) weights = move_groups(builder_, weights, groups, forward_.rhs_spec[0], forward_.rhs_spec[1]);
        const std::vector<int64_t> spatial(forward_.rhs_spec.begin() + 2, forward_.rhs_spec.end());
        if (!spatial.empty()) weights = builder_.add_one("rev", {weights}, {{"dimensions", to_attribute(spatial)}});
        Convolution backward{forward_.out_spec, swapped(forward_.rhs_spec), forward_.lhs_spec, {}, groups, 1};
        for (size_t i = 0; i < forward_.spatial.size(); i++)
            backward.spatial.push_back(undone(forward_.spatial[i], lhs_extent(i), ct_extent(i)));
        const ValueId images = convolve(ct_, weights, backward, builder_.type(lhs_).dtype);
        const bool split = forward_.batch_groups > 1;
        return split ? move_groups(builder_, images, groups, forward_.lhs_spec[1], forward_.lhs_spec[0]) : images;
    }

    ValueId of_rhs() {
        Convolution backward{swapped(forward_.lhs_spec), swapped(forward_.out_spec), swapped(forward_.rhs_spec), {},
                             forward_.batch_groups,      forward_.feature_groups};
        for (size_t i = 0; i < forward_.spatial.size(); i++) {
            const WindowAxis &axis = forward_.spatial[i];
            const Extent weights = dilated(axis.window, axis.window_dilation), results = dilated(ct_extent(i), axis.stride);
            const Extent high = results - dilated(lhs_extent(i), axis.base_dilation) + weights - axis.low - Extent(1);
            backward.spatial.push_back({ct_extent(i), axis.window_dilation, axis.low, high, axis.base_dilation, axis.stride});
        }
        return convolve(lhs_, ct_, backward, builder_.type(rhs_).dtype);
    }

private:
    Extent lhs_extent(size_t axis) const { return spatial_extent(builder_.type(lhs_).shape, forward_.lhs_spec, axis); }
    Extent ct_extent(size_t axis) const { return spatial_extent(builder_.type(ct_).shape, forward_.out_spec, axis); }

    ValueId convolve(ValueId lhs, ValueId rhs, const Convolution &convolution, Dtype dtype) {
        Attributes attributes = convolution_attributes(convolution);
        attributes["preferred"] = std::string(to_string(dtype));
        return builder_.add_one("conv_general_dilated", {lhs, rhs}, attributes);
    }

    Builder &builder_;
    const ValueId lhs_, rhs_, ct_;
    const Convolution forward_;
};

} // namespace

ValueId transpose_window_sum(Builder &builder, const Node &node, ValueId ct) {
    const Extents &shape = builder.type(node.operands[0]).shape, &counts = builder.type(ct).shape;
    std::vector<WindowAxis> axes = window_axes(node.attributes, shape.size());
    for (size_t i = 0; i < axes.size(); i++) axes[i] = undone(axes[i], shape[i], counts[i]);
    return builder.add_one("reduce_window_sum", {ct}, window_attributes(axes));
}

ValueId transpose_convolution(Builder &builder, const Node &node, int operand, ValueId ct) {
    Transposition transposition(builder, node, ct);
    return operand == 0 ? transposition.of_lhs() : transposition.of_rhs();
}

} // namespace scalide
