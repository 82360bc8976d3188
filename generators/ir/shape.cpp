#include "ir/shape.h"

namespace scalide {

Extents without_ones(Extents shape) {
    std::erase(shape, Extent(1));
    return shape;
}

} // namespace scalide
