#include "rulebook/promotion.h"
#include "rulebook/unplaced.h"
#include <algorithm>

namespace scalide {

namespace {

int width_rank(Dtype dtype) {
    if (dtype == Dtype::boolean) return 0;
    return dtype == Dtype::i32 ? 1 : 1 + size_of(dtype);
}

} // namespace

Dtype promoted_dtype(Dtype a, Dtype b) {
    if (a == b) return a;
    if (width_rank(a) == width_rank(b)) return Dtype::f32;
    return width_rank(a) > width_rank(b) ? a : b;
}

Dtype promoted_dtype(std::span<const Type> types) {
    Dtype dtype = types.front().dtype;
    for (const Type &type : types) dtype = promoted_dtype(dtype, type.dtype);
    return dtype;
}

Extents broadcast_shape(const Extents &a, const Extents &b) {
    if (a.size() < b.size()) return broadcast_shape(b, a);
    Extents shape = a;
    for (size_t i = 0; i < b.size(); i++) {
        Extent &extent = shape[a.size() - b.size() + i];
        if (extent == Extent(1))
            extent = b[i];
        else if (!(b[i] == extent || b[i] == Extent(1)))
            fail_unplaced("shapes must be equal or 1 along each axis", to_string(a) + " and " + to_string(b));
    }
    return shape;
}

} // namespace scalide
