#pragma once
#include "base/text.h"
#include "scalide/plan.h"

namespace scalide {

/// The values of a program's symbols.
using SymbolValues = const int32_t *;

/// Computes the extent's value. Returns false if it is outside of [0, 2^31).
bool evaluate(const scalide_extent &extent, SymbolValues symbols, int64_t *value);

/// Returns the symbol of an extent `c * symbol` with c > 0, or -1.
int32_t sole_symbol(const scalide_extent &extent);

/// Multiplies a product of extents by one more extent. The result saturates above SCALIDE_MAX_ELEMENTS, but it is 0 if an extent is 0.
int64_t multiply_extent(int64_t product, int64_t extent);

/// Returns true if scalide_bind would accept extents of this rank and size.
bool has_allowed_size(const scalide_array &array);

/// Computes the number of elements. Returns false if an extent or the number is outside of [0, 2^31), the range of Halide's indices.
bool count_elements(const scalide_extent *shape, int32_t rank, SymbolValues symbols, int64_t *count);

/// Describes a buffer as a dense array without a scale.
scalide_array describe(const scalide_buffer &buffer, SymbolValues symbols, void *data);

/// Prints `4*b + 1` or `[b, 64]`.
Text &print(Text &text, const scalide_program &program, const scalide_extent &extent);
Text &print_shape(Text &text, const scalide_program &program, const scalide_buffer &buffer);

} // namespace scalide
