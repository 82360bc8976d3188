#pragma once
#include "lower/values/values.h"

namespace scalide {

/// Position of an element of a window.
struct WindowPlace {
    Index index;         ///< index in the array; within bounds if `room` is positive
    Halide::Expr inside; ///< false: the window is out of bounds, and the mode drops it
    Index room;          ///< not positive: the array is smaller than a window
};

/// The windows of an array (operand 0) whose start indices are data (operand 1). A gather reads them, and a scatter writes them. The array
/// of windows is the result of a gather and operand 2 of a scatter.
class Windows {
public:
    Windows(Values &values, const Node &node);

    /// Returns the position of element `at` of the array of windows.
    WindowPlace place(const Index &at) const;
    /// By axis of the array of windows: the array's axis that a window covers completely for all indices; -1 for other axes.
    std::vector<int> whole_axes() const;
    /// True for an axis within a window, false for an axis that counts windows.
    bool is_window_axis(size_t axis) const;
    const Extents &shape() const { return values_.program().type(windows_).shape; }

private:
    const Extents &array_shape() const { return values_.program().type(node_.operands[0]).shape; }
    Extent size(size_t axis) const;
    /// Limits positions along batching axes to the indices. The lanes of a vector may exceed them, and the condition around a scatter's
    /// updates reads the indices in all lanes. Lanes beyond the last index read the last one. `batch` has an entry for each axis of the
    /// indices, except the axis of index vectors.
    Index inside_of_indices(Index batch) const;

    Values &values_;
    const Node &node_;
    ValueId windows_;
    bool scatters_;
    std::vector<int64_t> window_dims_, map_, batching_, index_batching_;
    std::vector<int> window_of_; ///< by axis of the array: the matching axis of the array of windows; -1: extent 1
};

} // namespace scalide
