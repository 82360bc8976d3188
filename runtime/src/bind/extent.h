#pragma once
#include "scalide/plan.h"
#include "text.h"

namespace scalide {

/// Values of a program's symbols.
using SymbolValues = const int32_t *;

/// The extent's value; false when it leaves [0, 2^31).
bool evaluate(const scalide_extent &extent, SymbolValues symbols, int64_t *value);

/// The symbol of an extent `c * symbol`, c > 0, or -1.
int32_t sole_symbol(const scalide_extent &extent);

/// A product of extents times one more: held above SCALIDE_MAX_ELEMENTS once it is there, but 0 where an extent is 0.
int64_t multiply_extent(int64_t product, int64_t extent);

/// Number of elements; false when an extent or the product leaves [0, 2^31), the range of Halide's indices.
bool count_elements(const scalide_extent *shape, int32_t rank, SymbolValues symbols, int64_t *count);

/// A buffer as a dense plain array.
scalide_array describe(const scalide_buffer &buffer, SymbolValues symbols, void *data);

/// `4*b + 1`, `[b, 64]`
Text &print(Text &text, const scalide_program &program, const scalide_extent &extent);
Text &print_shape(Text &text, const scalide_program &program, const scalide_buffer &buffer);

} // namespace scalide
