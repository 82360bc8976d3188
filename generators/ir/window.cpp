#include "ir/window.h"
#include "expr/error.h"
#include <numeric>

namespace scalide {

namespace {

/// Returns a list attribute. If it is missing or empty, every axis has `fill`.
Extents extents_by_axis(const Attributes &attributes, const std::string &name, size_t rank, int64_t fill) {
    const auto found = attributes.find(name);
    const bool is_given = found != attributes.end() && !found->second.list.empty();
    const Extents values = is_given ? to_extents(found->second) : Extents(rank, Extent(fill));
    internal_check(values.size() == rank, "the attribute " + name + " of a window operator has the wrong length");
    return values;
}

std::vector<int64_t> integers_by_axis(const Attributes &attributes, const std::string &name, size_t rank, int64_t fill) {
    std::vector<int64_t> values;
    for (const Extent &extent : extents_by_axis(attributes, name, rank, fill)) values.push_back(extent.value());
    return values;
}

std::vector<int64_t> spec(const Attributes &attributes, const std::string &name, size_t rank) {
    const auto found = attributes.find(name);
    std::vector<int64_t> axes(rank);
    std::iota(axes.begin(), axes.end(), 0);
    if (found != attributes.end() && !found->second.list.empty()) axes = to_integers(found->second);
    internal_check(axes.size() == rank, "the attribute " + name + " of a convolution has the wrong length");
    return axes;
}

/// The attribute names of the two dilations, which differ between windows and convolutions.
struct Names {
    const char *base_dilation, *window_dilation;
};
constexpr Names of_window{"base_dilation", "window_dilation"}, of_convolution{"lhs_dilation", "rhs_dilation"};

std::vector<WindowAxis> read_axes(const Attributes &attributes, const Extents &windows, const Names &names) {
    const size_t rank = windows.size();
    const Extents low = extents_by_axis(attributes, "low", rank, 0), high = extents_by_axis(attributes, "high", rank, 0);
    const std::vector<int64_t> strides = integers_by_axis(attributes, "strides", rank, 1),
                               base = integers_by_axis(attributes, names.base_dilation, rank, 1),
                               window = integers_by_axis(attributes, names.window_dilation, rank, 1);
    std::vector<WindowAxis> axes;
    for (size_t i = 0; i < rank; i++) axes.push_back({windows[i], strides[i], low[i], high[i], base[i], window[i]});
    return axes;
}

template<typename T>
Attribute list(const std::vector<WindowAxis> &axes, T WindowAxis::*member) {
    std::vector<T> values;
    for (const WindowAxis &axis : axes) values.push_back(axis.*member);
    return to_attribute(values);
}

Attributes write_axes(const std::vector<WindowAxis> &axes, const Names &names) {
    return {{"strides", list(axes, &WindowAxis::stride)},
            {"low", list(axes, &WindowAxis::low)},
            {"high", list(axes, &WindowAxis::high)},
            {names.base_dilation, list(axes, &WindowAxis::base_dilation)},
            {names.window_dilation, list(axes, &WindowAxis::window_dilation)}};
}

/// Returns floor(a / b) for b > 0.
int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

} // namespace

bool WindowAxis::is_trivial() const {
    return window == Extent(1) && stride == 1 && low == Extent(0) && high == Extent(0) && base_dilation == 1 && window_dilation == 1;
}

Extent dilated(const Extent &extent, int64_t dilation) {
    return extent == Extent(0) ? extent : (extent - Extent(1)) * Extent(dilation) + Extent(1);
}

std::optional<Extent> window_count(const Extent &extent, const WindowAxis &axis) {
    const Extent room = dilated(extent, axis.base_dilation) + axis.low + axis.high - dilated(axis.window, axis.window_dilation);
    if (room.is_static()) return room.value() < 0 ? Extent(0) : Extent(floor_divide(room.value(), axis.stride) + 1);
    const int64_t rest = room.constant();
    const auto steps = (room - Extent(rest)).divide(axis.stride);
    if (!steps) return std::nullopt;
    return *steps + Extent(floor_divide(rest, axis.stride) + 1);
}

std::vector<WindowAxis> window_axes(const Attributes &attributes, size_t rank) {
    return read_axes(attributes, extents_by_axis(attributes, "window", rank, 1), of_window);
}

Attributes window_attributes(const std::vector<WindowAxis> &axes) {
    Attributes attributes = write_axes(axes, of_window);
    attributes["window"] = list(axes, &WindowAxis::window);
    return attributes;
}

Convolution convolution(const Attributes &attributes, const Extents &rhs) {
    Convolution result;
    result.lhs_spec = spec(attributes, "lhs_spec", rhs.size());
    result.rhs_spec = spec(attributes, "rhs_spec", rhs.size());
    result.out_spec = spec(attributes, "out_spec", rhs.size());
    Extents windows;
    for (size_t i = 2; i < rhs.size(); i++) windows.push_back(rhs[result.rhs_spec[i]]);
    result.spatial = read_axes(attributes, windows, of_convolution);
    const auto groups = [&](const char *name) {
        const auto found = attributes.find(name);
        return found == attributes.end() ? 1 : found->second.integer.value();
    };
    result.feature_groups = groups("feature_group_count");
    result.batch_groups = groups("batch_group_count");
    return result;
}

Attributes convolution_attributes(const Convolution &convolution) {
    Attributes attributes = write_axes(convolution.spatial, of_convolution);
    attributes["lhs_spec"] = to_attribute(convolution.lhs_spec);
    attributes["rhs_spec"] = to_attribute(convolution.rhs_spec);
    attributes["out_spec"] = to_attribute(convolution.out_spec);
    attributes["feature_group_count"] = convolution.feature_groups;
    attributes["batch_group_count"] = convolution.batch_groups;
    return attributes;
}

} // namespace scalide
