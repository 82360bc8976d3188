#pragma once
#include "ir/window.h"

namespace scalide {

/// The windows along one axis of known extents.
class WindowWalk {
public:
    WindowWalk(const WindowAxis &axis, int64_t extent, int64_t count);

    /// Returns the element at position `k` of window `o`, or -1 if there is none (padding, or a gap of the dilated array).
    int64_t element(int64_t o, int64_t k) const { return elements_[o * window_ + k]; }

private:
    int64_t window_;
    std::vector<int64_t> elements_;
};

/// Calls visit(index) for every index of a shape, in row-major order.
template<typename Visit>
void each_index(const std::vector<int64_t> &shape, const Visit &visit) {
    for (const int64_t extent : shape)
        if (extent == 0) return;
    std::vector<int64_t> index(shape.size(), 0);
    for (size_t axis = shape.size(); true;) {
        visit(index);
        for (axis = shape.size(); axis > 0 && ++index[axis - 1] == shape[axis - 1]; axis--) index[axis - 1] = 0;
        if (axis == 0) return;
    }
}

} // namespace scalide
