#include "ir/shape.h"

namespace scalide {

Extents without_ones(Extents shape) {
    std::erase(shape, Extent(1));
    return shape;
}

bool leaves_columns(const Extents &shape, const std::vector<int64_t> &folded) {
    return !without_ones(Extents(shape.begin() + folded.back() + 1, shape.end())).empty();
}

} // namespace scalide
