#pragma once
#include "scalide/scalide.h"

/// Where the elements of an array are. Strides count elements, and an axis of extent 1 has no stride.
namespace scalide {

/// True for row-major elements without gaps, and for an array without elements.
bool is_dense(const scalide_array &array);

/// Offsets from `data` in elements: the lowest and the highest element of an array that has elements.
struct Offsets {
    int64_t lowest, highest;
};
/// Returns false if an offset is too large for an address.
bool find_offsets(const scalide_array &array, Offsets *offsets);

/// The bytes from the lowest to the highest element.
struct MemoryRange {
    uintptr_t begin, end;
};
/// Returns an empty range for an array without memory or elements. The offsets must be in range.
MemoryRange range_of_data(const scalide_array &array);

/// Returns false if two indices may have the same element: an axis must be larger than everything that the smaller axes cover.
bool has_distinct_elements(const scalide_array &array);

/// Returns false if no byte belongs to both arrays. Two blocks of the columns of one matrix are apart, too, although their ranges overlap.
bool share_elements(const scalide_array &a, const scalide_array &b);

} // namespace scalide
