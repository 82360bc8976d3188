#pragma once
#include "ir/attribute.h"
#include "ir/type.h"
#include <optional>

namespace scalide {

/// How windows lie along one axis of an array (LAX reduce_window, conv_general_dilated). The array is dilated (base_dilation - 1 gaps
/// between its elements), then `low` and `high` places are put before and after (negative: taken away). Window number o holds the places
/// o * stride + k * window_dilation for k in 0 .. window - 1.
struct WindowAxis {
    Extent window = 1;
    int64_t stride = 1;
    Extent low = 0, high = 0;
    int64_t base_dilation = 1, window_dilation = 1;

    /// Every element is a window of its own.
    bool is_trivial() const;
};

/// 1 + dilation * (extent - 1); 0 stays 0.
Extent dilated(const Extent &extent, int64_t dilation);

/// How many windows there are along an axis of this extent: floor((padded extent - dilated window) / stride) + 1, at least 0. Nothing
/// when that is no polynomial: a stride above 1 over an extent whose symbols come in other multiples.
std::optional<Extent> window_count(const Extent &extent, const WindowAxis &axis);

/// The axes of a window operator by its attributes `window`, `strides`, `low`, `high`, `base_dilation`, `window_dilation`, lists by axis;
/// absent or empty ones are neutral. Throws InternalError when one has another length than `rank`.
std::vector<WindowAxis> window_axes(const Attributes &attributes, size_t rank);
Attributes window_attributes(const std::vector<WindowAxis> &axes);

/// A convolution, LAX's conv_general_dilated. One of the group counts is 1. Output feature f belongs to group f / (features / groups); it
/// reads the input features, or with batch groups the images, of its group.
struct Convolution {
    /// Axes: batch, feature, then the spatial ones; of rhs: output feature, input feature, spatial.
    std::vector<int64_t> lhs_spec, rhs_spec, out_spec;
    std::vector<WindowAxis> spatial; ///< windows are the spatial extents of rhs, base_dilation is lhs_dilation
    int64_t feature_groups = 1, batch_groups = 1;
};

/// By the attributes `strides`, `low`, `high`, `lhs_dilation`, `rhs_dilation` (by spatial axis), `lhs_spec`, `rhs_spec`, `out_spec`
/// (empty: 0, 1, 2 ...), `feature_group_count` and `batch_group_count`; `rhs` is the shape of the second operand. Throws InternalError
/// when one has the wrong length.
Convolution convolution(const Attributes &attributes, const Extents &rhs);
Attributes convolution_attributes(const Convolution &convolution);

} // namespace scalide
