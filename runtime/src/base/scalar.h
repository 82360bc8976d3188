#pragma once
#include <cstdint>

namespace scalide {

/// Functions for scalars as numbers, for the dtypes that C has. Low-precision floats are not among them.
bool is_scalar_dtype(int32_t dtype);
void store_scalar(int32_t dtype, int64_t value, void *memory);
double load_scalar(int32_t dtype, const void *memory);

} // namespace scalide
