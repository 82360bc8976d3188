#include "rulebook/promotion.h"
#include "rulebook/unplaced.h"
#include <algorithm>

namespace scalide {

namespace {

int width_rank(Dtype dtype) {
    if (dtype == Dtype::boolean) return 0;
    return is_integer(dtype) ? 1 : 1 + size_of(dtype);
}

Dtype signed_of_size(int size) { return size == 1 ? Dtype::i8 : size == 2 ? Dtype::i16 : Dtype::i32; }

/// Integers of the same sign are promoted to the wider dtype. A signed and an unsigned dtype are promoted to the signed dtype that holds
/// both, at most i32. i64 stays i64.
Dtype promoted_integers(Dtype a, Dtype b) {
    if (a == Dtype::i64 || b == Dtype::i64) return Dtype::i64;
    if (is_signed(a) == is_signed(b)) return size_of(a) > size_of(b) ? a : b;
    const Dtype signed_one = is_signed(a) ? a : b, unsigned_one = is_signed(a) ? b : a;
    return signed_of_size(std::max(size_of(signed_one), 2 * size_of(unsigned_one)));
}

} // namespace

Dtype promoted_dtype(Dtype a, Dtype b) {
    if (a == b) return a;
    if (is_integer(a) && is_integer(b)) return promoted_integers(a, b);
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
