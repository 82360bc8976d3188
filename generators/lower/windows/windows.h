#pragma once
#include "lower/values.h"

namespace scalide {

/// Where an element of a window lies.
struct WindowPlace {
    Index index;         ///< in the array; within it unless `room` says otherwise
    Halide::Expr inside; ///< false: the window is out of bounds, and the mode drops it
    Index room;          ///< not positive: the array has no room for a window at all
};

/// The windows of an array (operand 0) at starts that indices (operand 1) hold: what a gather reads and a scatter writes. The array of
/// windows is the result of a gather and operand 2 of a scatter.
class Windows {
public:
    Windows(Values &values, const Node &node);

    /// Of element `at` of the array of windows.
    WindowPlace place(const Index &at) const;
    /// By axis of the array of windows: the axis of the array whose whole extent it runs over, whatever the indices say; -1 for others.
    std::vector<int> whole_axes() const;
    /// An axis of the array of windows lies within a window; else it counts windows.
    bool is_window_axis(size_t axis) const;
    const Extents &shape() const { return values_.program().type(windows_).shape; }

private:
    const Extents &array_shape() const { return values_.program().type(node_.operands[0]).shape; }
    Extent size(size_t axis) const;
    /// Along batching axes the lanes of a vector may overhang the indices. The condition that a scatter puts around its updates reads them
    /// in all lanes: those beyond the last one read that again. `batch` has an entry for each axis of the indices but that of the vectors.
    Index inside_of_indices(Index batch) const;

    Values &values_;
    const Node &node_;
    ValueId windows_;
    bool scatters_;
    std::vector<int64_t> window_dims_, map_, batching_, index_batching_;
    std::vector<int> window_of_; ///< by axis of the array: the axis of the array of windows that runs over it; -1: extent 1
};

} // namespace scalide
