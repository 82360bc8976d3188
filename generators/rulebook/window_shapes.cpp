#include "rulebook/window_shapes.h"
#include "ir/window.h"
#include "rulebook/unplaced.h"
#include <algorithm>

namespace scalide {

namespace {

using Values = std::span<const StaticValue>;

const Extents &shape(const StaticValue &value) {
    if (value.operand < 0 || value.arrays.empty())
        fail_unplaced("the argument of a shape function must be the name of an operand", to_string(value.value));
    return value.arrays[0].shape;
}

Extents list(const StaticValue &value) {
    if (value.value.kind != Attribute::Kind::list) fail_unplaced("must be a list here", to_string(value.value));
    Extents extents;
    for (const Attribute &element : value.value.list) extents.push_back(to_extent(element));
    return extents;
}

/// Returns a list with one integer >= `least` for each of `count` axes. An empty list means neutral entries.
Attribute integers(const StaticValue &value, const std::string &name, size_t count, int64_t least) {
    const Extents given = list(value);
    if (!given.empty() && given.size() != count)
        fail_unplaced(name + " must have one entry for each of " + std::to_string(count) + " axes", std::to_string(given.size()));
    for (const Extent &extent : given)
        if (!extent.is_static() || extent.value() < least)
            fail_unplaced(name + " must be integers of at least " + std::to_string(least), to_string(extent));
    return value.value;
}

/// Like integers(), for lists of extents of any sign.
Attribute extents(const StaticValue &value, const std::string &name, size_t count) {
    const Extents given = list(value);
    if (!given.empty() && given.size() != count)
        fail_unplaced(name + " must have one entry for each of " + std::to_string(count) + " axes", std::to_string(given.size()));
    return to_attribute(given);
}

Extent count_windows(const Extent &extent, const WindowAxis &axis) {
    const auto count = window_count(extent, axis);
    if (!count) fail_unplaced("strides above 1 need a fixed extent, or symbols in multiples of the stride", to_string(extent));
    return *count;
}

Attribute spec(const StaticValue &value, const std::string &name, size_t rank) {
    std::vector<int64_t> axes = to_integers(integers(value, name, rank, 0));
    std::ranges::sort(axes);
    for (size_t i = 0; i < axes.size(); i++)
        if (axes[i] != static_cast<int64_t>(i)) fail_unplaced(name + " must name each axis once", to_string(value.value));
    return value.value;
}

Attribute groups(const StaticValue &value, const std::string &name) {
    const Extent count = to_extent(value.value);
    if (!count.is_static() || count.value() < 1) fail_unplaced(name + " must be at least 1", to_string(count));
    return value.value;
}

void check_multiple(const Extent &extent, int64_t groups, const std::string &what) {
    if (!extent.divide(groups)) fail_unplaced("the number of " + what + " must be a multiple of the groups", to_string(extent));
}

void check_groups(const Convolution &c, const Extents &lhs, const Extents &rhs) {
    if (c.feature_groups > 1 && c.batch_groups > 1)
        fail_unplaced("feature_group_count or batch_group_count must be 1",
                      std::to_string(c.feature_groups) + " and " + std::to_string(c.batch_groups));
    const Extent expected = rhs[c.rhs_spec[1]] * Extent(c.feature_groups), &features = lhs[c.lhs_spec[1]];
    if (!(features == expected))
        fail_unplaced("the features of lhs must be the input features of rhs times feature_group_count",
                      to_string(features) + " and " + to_string(expected));
    check_multiple(rhs[c.rhs_spec[0]], c.feature_groups * c.batch_groups, "output features");
    check_multiple(lhs[c.lhs_spec[0]], c.batch_groups, "images");
}

/// One spatial axis whose padding follows from a word.
struct Spatial {
    Extent extent;
    int64_t window, stride;
};

struct Padded {
    Extent low, high;
};

/// Padding for ceil(extent / stride) windows. If the total is odd, the extra position is at the end.
Padded same_padding(const Spatial &axis) {
    Extent total = axis.window - std::min(axis.window, axis.stride);
    if (!axis.extent.divide(axis.stride)) {
        if (!axis.extent.is_static()) fail_unplaced("same padding with strides needs a fixed extent", to_string(axis.extent));
        const int64_t rest = axis.extent.value() % axis.stride;
        total = std::max<int64_t>(0, axis.window - rest);
    }
    const int64_t low = total.value() / 2;
    return {low, total - Extent(low)};
}

/// Padding as in jax.lax.conv_transpose: with `same`, the result has extent * stride elements; with `valid`, all elements that a window
/// reaches.
Padded transposed_padding(const Spatial &axis, bool is_same) {
    const int64_t least = axis.window + axis.stride - 2;
    if (!is_same) return {axis.window - 1, least + std::max<int64_t>(0, axis.window - axis.stride) - (axis.window - 1)};
    const int64_t low = axis.stride > axis.window - 1 ? axis.window - 1 : (least + 1) / 2;
    return {low, least - low};
}

/// Returns the axes of windows and strides, the last two arguments. Windows have static extents.
std::vector<Spatial> spatial_axes(const StaticValue &window, const StaticValue &strides) {
    const std::vector<int64_t> windows = to_integers(integers(window, "window", list(window).size(), 1));
    std::vector<int64_t> steps = to_integers(integers(strides, "strides", windows.size(), 1));
    steps.resize(windows.size(), 1);
    std::vector<Spatial> axes;
    for (size_t i = 0; i < windows.size(); i++) axes.push_back({0, windows[i], steps[i]});
    return axes;
}

/// Returns one side of a padding that is given as pairs [low, high], or nothing for a word.
std::optional<Attribute> given_side(const StaticValue &padding, size_t axes, bool is_low) {
    if (padding.value.kind == Attribute::Kind::word) return std::nullopt;
    const std::vector<Attribute> &pairs = padding.value.list;
    if (pairs.size() != axes)
        fail_unplaced("padding must have one pair [low, high] for each of " + std::to_string(axes) + " axes", to_string(padding.value));
    std::vector<Attribute> amounts;
    for (const Attribute &pair : pairs) amounts.push_back(pair.list.at(is_low ? 0 : 1));
    return amounts;
}

Attribute pad(Values v, Extent Padded::*side) {
    std::vector<Spatial> axes = spatial_axes(v[2], v[3]);
    const Extents given = list(v[1]);
    if (given.size() != axes.size()) fail_unplaced("window must have one entry for each axis", to_string(v[2].value));
    if (const auto pairs = given_side(v[0], axes.size(), side == &Padded::low)) return *pairs;
    Extents amounts;
    for (size_t i = 0; i < axes.size(); i++) {
        axes[i].extent = given[i];
        amounts.push_back(v[0].value.word == "same" ? same_padding(axes[i]).*side : Extent(0));
    }
    return to_attribute(amounts);
}

Attribute pad_transposed(Values v, Extent Padded::*side) {
    const std::vector<Spatial> axes = spatial_axes(v[1], v[2]);
    if (const auto pairs = given_side(v[0], axes.size(), side == &Padded::low)) return *pairs;
    Extents amounts;
    for (const Spatial &axis : axes) amounts.push_back(transposed_padding(axis, v[0].value.word == "same").*side);
    return to_attribute(amounts);
}

std::vector<WindowAxis> given_axes(Values v) {
    const size_t rank = shape(v[0]).size();
    if (list(v[1]).size() != rank) fail_unplaced("window must have one entry for each axis", to_string(v[1].value));
    return window_axes({{"window", extents(v[1], "window", rank)},
                        {"strides", integers(v[2], "strides", rank, 1)},
                        {"low", extents(v[3], "low", rank)},
                        {"high", extents(v[4], "high", rank)},
                        {"base_dilation", integers(v[5], "base_dilation", rank, 1)},
                        {"window_dilation", integers(v[6], "window_dilation", rank, 1)}},
                       rank);
}

bool is_below(const Extent &a, const Extent &b) { return a.is_static() && b.is_static() && a.value() < b.value(); }

/// True if every window contains an element: it lies within the array, or it is too long to fall into padding or gaps only.
bool always_meets(const WindowAxis &axis) {
    const bool is_within = axis.base_dilation == 1 && is_below(axis.low, 1) && is_below(axis.high, 1);
    const bool is_long = axis.window_dilation == 1 && is_below(axis.base_dilation - 1, axis.window) && is_below(axis.low, axis.window) &&
                         is_below(axis.high, axis.window);
    return is_within || is_long;
}

} // namespace

Attribute windows_meet(Values v) { return make_flag(std::ranges::all_of(given_axes(v), always_meets)); }

Attribute windowed(Values v) {
    const Extents &from = shape(v[0]);
    const std::vector<WindowAxis> axes = given_axes(v);
    Extents counts;
    for (size_t i = 0; i < axes.size(); i++) counts.push_back(count_windows(from[i], axes[i]));
    return to_attribute(counts);
}

Attribute convolved(Values v) {
    const Extents &lhs = shape(v[0]), &rhs = shape(v[1]);
    if (lhs.size() != rhs.size() || lhs.size() < 2)
        fail_unplaced("operands must have the same rank, at least 2", std::to_string(lhs.size()) + " and " + std::to_string(rhs.size()));
    const size_t rank = rhs.size();
    const Convolution c = convolution({{"strides", integers(v[2], "strides", rank - 2, 1)},
                                       {"low", extents(v[3], "low", rank - 2)},
                                       {"high", extents(v[4], "high", rank - 2)},
                                       {"lhs_dilation", integers(v[5], "lhs_dilation", rank - 2, 1)},
                                       {"rhs_dilation", integers(v[6], "rhs_dilation", rank - 2, 1)},
                                       {"lhs_spec", spec(v[7], "lhs_spec", rank)},
                                       {"rhs_spec", spec(v[8], "rhs_spec", rank)},
                                       {"out_spec", spec(v[9], "out_spec", rank)},
                                       {"feature_group_count", groups(v[10], "feature_group_count")},
                                       {"batch_group_count", groups(v[11], "batch_group_count")}},
                                      rhs);
    check_groups(c, lhs, rhs);
    Extents out(rank);
    out[c.out_spec[0]] = *lhs[c.lhs_spec[0]].divide(c.batch_groups);
    out[c.out_spec[1]] = rhs[c.rhs_spec[0]];
    for (size_t i = 2; i < rank; i++) out[c.out_spec[i]] = count_windows(lhs[c.lhs_spec[i]], c.spatial[i - 2]);
    return to_attribute(out);
}

Attribute padding_low(Values v) { return pad(v, &Padded::low); }
Attribute padding_high(Values v) { return pad(v, &Padded::high); }
Attribute transposed_padding_low(Values v) { return pad_transposed(v, &Padded::low); }
Attribute transposed_padding_high(Values v) { return pad_transposed(v, &Padded::high); }

} // namespace scalide
