#include "ir/type.h"

namespace scalide {

Extent element_count(const Extents &shape) {
    Extent count = 1;
    for (const Extent &extent : shape) count = count * extent;
    return count;
}

std::string to_string(const Extents &shape) {
    std::string text;
    for (const Extent &extent : shape) text += (text.empty() ? "" : ", ") + to_string(extent);
    return "[" + text + "]";
}

std::string to_string(const Type &type) { return std::string(to_string(type.dtype)) + to_string(type.shape); }

} // namespace scalide
