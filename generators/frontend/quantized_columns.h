#pragma once
#include "frontend/tensor.h"
#include <optional>

namespace scalide {

/// An array of integers with one factor for each column, and the diagonal as floats if it was extracted (QuantizedValue of Distributed
/// Shampoo). A column is what the first axis runs over; an array of one axis is one column.
struct QuantizedColumns {
    Tensor values;        ///< i8 or i16, the shape of x
    Tensor bucket_size;   ///< f32, the shape of x without its first axis
    Tensor diagonal = {}; ///< f32 [n]; empty if it was not extracted
};

/// Rounds each column to integers: bucket_size is the largest magnitude of the column divided by 127 (i8) or 32767 (i16), and values is
/// x / bucket_size rounded to nearest, ties to even. A column of zeros is divided by 1. extract_diagonal keeps the diagonal of a square
/// matrix as f32, and quantizes the rest. Throws UserError for another dtype, a scalar, or a diagonal of what is not a square matrix.
QuantizedColumns quantize_columns(const Tensor &x, Dtype dtype, bool extract_diagonal = false,
                                  const std::source_location &where = std::source_location::current());

/// Returns values * bucket_size, plus the diagonal, in f32.
Tensor dequantize_columns(const QuantizedColumns &quantized, const std::source_location &where = std::source_location::current());

} // namespace scalide
