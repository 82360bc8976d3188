#pragma once
#include "ir/dtype.h"
#include "ir/extent.h"

namespace scalide {

using Extents = std::vector<Extent>;

/// Element type and row-major shape (the last axis is contiguous).
struct Type {
    Dtype dtype = Dtype::f32;
    Extents shape;

    int rank() const { return static_cast<int>(shape.size()); }
    bool is_scalar() const { return shape.empty(); }
    bool operator==(const Type &other) const = default;
};

/// Returns the product of all extents; 1 for a scalar.
Extent element_count(const Extents &shape);

/// Returns text such as `f16[b, 64]`.
std::string to_string(const Type &type);
std::string to_string(const Extents &shape);

} // namespace scalide
