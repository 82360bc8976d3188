#pragma once
#include "ir/attribute.h"
#include "ir/type.h"
#include <optional>

namespace scalide {

/// The windows along one axis of an array (LAX reduce_window, conv_general_dilated). First the array is dilated: base_dilation - 1 gaps
/// between its elements. Then `low` and `high` positions are added before and after it (negative: removed). Window number o has the
/// positions o * stride + k * window_dilation for k in 0 .. window - 1.
struct WindowAxis {
    Extent window = 1;
    int64_t stride = 1;
    Extent low = 0, high = 0;
    int64_t base_dilation = 1, window_dilation = 1;

    /// Returns true if each window is exactly one element.
    bool is_trivial() const;
};

/// Returns the dilated extent: 1 + dilation * (extent - 1), or 0 for 0.
Extent dilated(const Extent &extent, int64_t dilation);

/// Returns the number of windows along an axis: floor((padded extent - dilated window) / stride) + 1, at least 0. Returns nothing if this
/// is no polynomial: for a stride above 1, the symbols of the extent must have suitable multiples.
std::optional<Extent> window_count(const Extent &extent, const WindowAxis &axis);

/// Returns the axes of a window operator from its attributes `window`, `strides`, `low`, `high`, `base_dilation` and `window_dilation`.
/// Each has one number for each axis; an absent or empty list is neutral. Throws InternalError if a list has another length than `rank`.
std::vector<WindowAxis> window_axes(const Attributes &attributes, size_t rank);
Attributes window_attributes(const std::vector<WindowAxis> &axes);

/// A convolution (LAX conv_general_dilated). One of the two group counts is 1. Output feature f belongs to group f / (features / groups).
/// It reads the input features of its group, or with batch groups the images of its group.
struct Convolution {
    /// The axes: batch, feature, spatial axes. For rhs: output feature, input feature, spatial axes.
    std::vector<int64_t> lhs_spec, rhs_spec, out_spec;
    std::vector<WindowAxis> spatial; ///< the windows are the spatial extents of rhs; base_dilation is lhs_dilation
    int64_t feature_groups = 1, batch_groups = 1;
};

/// Returns the convolution from the attributes `strides`, `low`, `high`, `lhs_dilation`, `rhs_dilation` (one number for each spatial axis),
/// `lhs_spec`, `rhs_spec`, `out_spec` (empty: 0, 1, 2 ...), `feature_group_count` and `batch_group_count`. `rhs` is the shape of the second
/// operand. Throws InternalError if a list has the wrong length.
Convolution convolution(const Attributes &attributes, const Extents &rhs);
Attributes convolution_attributes(const Convolution &convolution);

} // namespace scalide
