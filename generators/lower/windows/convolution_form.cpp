#include "lower/windows/convolution_form.h"
#include "lower/halide/amx_tiles.h"
#include "lower/values/source_dtype.h"
#include <algorithm>
#include <cmath>
#include <tuple>

namespace scalide {

namespace {

/// An innermost axis that is shorter leaves the lanes to a longer axis. A depthwise convolution of [b, 15, 13, channels], us with channels
/// / with images as lanes: 4 channels 17 / 81 for 4 images, 409 / 239 for 64; 7 channels 18 / 87 and 217 / 345 (EPYC, AVX2, 2026-11-27).
constexpr int64_t fewest_lanes = 6;

/// Returns the axis of the result along which rows of tiles waste least, the last such one; -1 if all waste too much.
int64_t rows_axis_of_tiles(const Convolution &convolution, const Extents &shape, int fewest) {
    int64_t best = -1;
    double most = 0;
    for (const int64_t axis : convolution.out_spec) {
        if (axis == convolution.out_spec[1] || !shape[axis].is_static() || shape[axis].value() < fewest) continue;
        const double rows = double(shape[axis].value()), used = rows / (std::ceil(rows / amx_side) * amx_side);
        if (used > most || (used == most && axis > best)) std::tie(best, most) = std::tuple(axis, used);
    }
    return best;
}

} // namespace

bool is_at_least(const Extent &extent, int64_t least) { return !extent.is_static() || extent.value() >= least; }

bool is_longer(const Extent &a, const Extent &b) { return !a.is_static() || (b.is_static() && a.value() > b.value()); }

int64_t choose_lane_axis(const Convolution &convolution, const Extents &shape) {
    const auto last = int64_t(shape.size()) - 1, features = convolution.out_spec[1];
    if (is_at_least(shape[last], fewest_lanes)) return last;
    return is_longer(shape[convolution.out_spec[0]], shape[features]) ? convolution.out_spec[0] : features;
}

/// A group of features of its own for each lane has no pairs that all lanes share. A step of tiles is 32 input features of one window
/// position. Images with gaps are not multiplied by tiles, as their sum skips positions.
ConvolutionForm convolution_form(const Program &kernel, const Node &node, const Budgets &budgets) {
    const Extents &weights = kernel.type(node.operands[1]).shape, &shape = kernel.type(node.results[0]).shape;
    const Convolution convolution = scalide::convolution(node.attributes, weights);
    const bool has_lanes = choose_lane_axis(convolution, shape) == convolution.out_spec[1];
    const auto is_exact = [&](ValueId value) { return is_float(kernel.type(value).dtype) && significant_bits(kernel, value) <= 8; };
    const Extent &inputs = weights[convolution.rhs_spec[1]];
    const bool has_pairs = has_lanes && convolution.feature_groups * convolution.batch_groups == 1 && inputs.is_static() &&
                           inputs.value() % 2 == 0 && std::ranges::all_of(node.operands, is_exact);
    if (!has_pairs) return {};
    const bool has_gaps = std::ranges::any_of(convolution.spatial, [](const WindowAxis &axis) { return axis.base_dilation > 1; });
    const bool has_steps = inputs.value() > 0 && inputs.value() % (amx_step_bytes / 2) == 0 && !has_gaps;
    const int64_t rows_axis = rows_axis_of_tiles(convolution, shape, budgets.tile_rows);
    const bool in_tiles =
        budgets.tile_rows > 0 && has_steps && rows_axis >= 0 && is_at_least(shape[convolution.out_spec[1]], budgets.tile_rows);
    if (in_tiles) return {2, true, rows_axis};
    return {budgets.bf16_pairs == 1 ? 2 : 1};
}

} // namespace scalide
